"""A simulated cluster with models and the pods of their base model, whose workers are simulated as well.

Workers behave like real ones: a load of a name that is there is a success, whatever its address, and their
actions take time, in which the operator may be stopped.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.plan.lora_calls import Call, Ending, LoraVerb, Reply
from dynamo_graphs.product import FIELD_MANAGER
from dynamo_graphs.types.selected import ModelService
from dynamo_operator.lora.calls import ModelCalls
from dynamo_operator.lora.controller import ModelController
from dynamo_operator.lora.read import SLICE_SELECTOR
from dynamo_operator.reconcile.pods import SELECTOR
from dynamo_operator.reconcile.report import Reporter
from dynamo_operator.reconcile.transforms import reduced_pod
from kube_runtime.apply.status_patch import StatusRateLimit
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer
from kube_runtime.client.requests import Client
from kube_runtime.client.transport import Transport
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.kind import Key, Object
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.core import Pod, Service
from kube_runtime.types.discovery import EndpointSlice
from simulated.managed import managed
from simulated.server import Server

MODELS = DynamoModel.KIND.path()
SLICES = EndpointSlice.KIND.path()
PODS = Pod.KIND.path()
SERVICES = Service.KIND.path()
NAMESPACE = "team-b"
BASE = "orion/base-13b"
START = datetime(2026, 1, 1, tzinfo=UTC)
URI = "s3://vault/legal-v2"

DONE = Reply(Ending.DONE)
UNABLE = Reply(Ending.UNABLE, "cannot manage LoRAs: status 404")


@dataclass
class Worker:
    """One worker: what it has loaded, and how it answers. `answer` None means: as it should."""

    loaded: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])
    answer: Reply | None = None
    takes_seconds: float = 0.1
    hangs: bool = False

    async def call(self, call: Call) -> Reply:
        self.asked.append(f"{call.verb} {call.name}".strip())
        await asyncio.sleep(10**6 if self.hangs else self.takes_seconds)
        if self.answer is not None:
            return self.answer
        match call.verb:
            case LoraVerb.LOAD:
                self.loaded.setdefault(call.name, call.uri)
            case LoraVerb.UNLOAD:
                self.loaded.pop(call.name, None)
            case LoraVerb.LIST:
                return Reply(Ending.DONE, loaded=frozenset(self.loaded))
        return DONE


class Cluster:
    """An API server, workers behind addresses, and the operator, which can be stopped and started."""

    def __init__(self, seed: int = 0, *, timeout_seconds: float = 120.0) -> None:
        self.server = Server(seed)
        self.storage = self.server.storage
        self.workers: dict[str, Worker] = {}
        self.at_once = self.most_at_once = 0
        self.timeout_seconds = timeout_seconds
        self.may_call = True
        self.silence = ""

    @asynccontextmanager
    async def operator(self, transport: Transport | None = None) -> AsyncIterator[None]:
        """Have a fresh operator run meanwhile, its caches full. None means: the server itself."""
        client, self.cache = Client(transport or self.server, field_manager=FIELD_MANAGER), Cache()
        metrics = RuntimeMetrics()
        events = EventWriter(client, instance="a", metrics=metrics)
        writer = Writer(client, self.cache)
        manager = Manager(client, self.cache, metrics=metrics, events=events)
        manager.inform(Informer(DynamoModel))
        manager.inform(Informer(ModelService))
        manager.inform(Informer(EndpointSlice, labels=SLICE_SELECTOR))
        manager.inform(Informer(Pod, labels=SELECTOR, transform=reduced_pod))
        calls = ModelCalls(
            self._workers, now=self.now, may_call=lambda _: self.may_call, silence=self.silence
        )
        reporter = Reporter(writer, events.recorder("dynamomodel"), StatusRateLimit(2.0), client)
        controller = ModelController(self.cache, reporter, calls)
        calls.wake = manager.control(controller).wake
        manager.serve(calls)
        async with managed(manager, settle_seconds=5):
            yield

    @asynccontextmanager
    async def _workers(self) -> AsyncIterator["Cluster"]:
        yield self

    async def call(
        self, address: str, call: Call, *, timeout_seconds: float | None = None
    ) -> Reply:
        """A call to a worker, or to an unused address."""
        worker = self.workers.get(address)
        if worker is None:
            return Reply(Ending.FAILED, "no answer")
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            async with asyncio.timeout(timeout_seconds or self.timeout_seconds):
                return await worker.call(call)
        except TimeoutError:
            return Reply(Ending.FAILED, "no answer within the limit")
        finally:
            self.at_once -= 1

    def now(self) -> datetime:
        """The simulated time of day."""
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    # What users do, and what Kubernetes does.

    def has_model(self, name: str = "legal", *, type_: str = "lora", **spec: Any) -> None:
        """Have a model."""
        body: Object = {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "modelName": "legal-v2",
                "baseModelName": BASE,
                "modelType": type_,
                "source": {"uri": URI},
                **spec,
            },
        }
        self.storage.create(MODELS, body)

    def edit(self, name: str = "legal", **spec: Any) -> None:
        """Have a user change the spec of a model."""
        self.storage.merge(MODELS, Key(NAMESPACE, name), {"spec": spec})

    def annotate(self, annotations: dict[str, str | None], name: str = "legal") -> None:
        """Have a user annotate a model. None means: take the annotation away."""
        change = {"metadata": {"annotations": annotations}}
        self.storage.merge(MODELS, Key(NAMESPACE, name), change)

    def delete(self, name: str = "legal") -> None:
        """Have a user delete a model."""
        self.storage.delete(MODELS, Key(NAMESPACE, name), {})

    def has_service(self, base: str = BASE) -> None:
        """Have the Service of a base model, as components make it."""
        name = names.model_service_name(base)
        found = {labels.BASE_MODEL_HASH: names.model_hash(base), labels.MANAGED_BY: labels.MANAGER}
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "labels": found,
            "annotations": {labels.BASE_MODEL: base},
        }
        self.storage.create(SERVICES, {"metadata": metadata})

    def has_pods(
        self,
        count: int = 2,
        *,
        first: int = 0,
        base: str = BASE,
        more: dict[str, str] | None = None,
        ready: bool = True,
        network: str = "",
    ) -> list[Worker]:
        """Have pods that serve the base model, in a slice of their own."""
        found = []
        for number in range(first, first + count):
            host = f"{network or f'10.8.{number // 250}'}.{number % 250 + 1}"
            worker = self.workers[f"http://{host}:9090"] = Worker()
            found.append(worker)
            metadata = {
                "name": f"w-{number}",
                "namespace": NAMESPACE,
                "labels": {
                    labels.COMPONENT: "Worker",
                    labels.GRAPH: "chat",
                    labels.BASE_MODEL_HASH: names.model_hash(base),
                    **(more or {}),
                },
            }
            self.storage.create(
                PODS, {"metadata": metadata, "status": pod_status(host, ready=ready)}
            )
        ends = [self._end(number, ready=ready) for number in range(first, first + count)]
        service = names.model_service_name(base)
        for number in range(0, count, 100):
            self.has_slice(
                f"{service}-{first + number}", service, base, ends[number : number + 100]
            )
        return found

    def has_slice(self, name: str, service: str, base: str, ends: list[Object]) -> None:
        """Have an EndpointSlice."""
        found = {
            "kubernetes.io/service-name": service,
            labels.BASE_MODEL_HASH: names.model_hash(base),
        }
        metadata = {"name": name, "namespace": NAMESPACE, "labels": found}
        self.storage.create(SLICES, {"metadata": metadata, "endpoints": ends})

    def _end(self, number: int, *, ready: bool) -> Object:
        pod = self.storage.read(PODS, Key(NAMESPACE, f"w-{number}"))
        target = {"kind": "Pod", "name": f"w-{number}", "uid": pod["metadata"]["uid"]}
        hosts = [each["ip"] for each in pod["status"]["podIPs"]]
        return {"addresses": hosts, "conditions": {"ready": ready}, "targetRef": target}

    def set_pods(self, numbers: range, *, ready: bool = True, restarts: int = 0) -> None:
        """Have the pods of one slice become ready or not, and its endpoints with them."""
        for number in numbers:
            key = Key(NAMESPACE, f"w-{number}")
            host = self.storage.read(PODS, key)["status"]["podIPs"][0]["ip"]
            status = pod_status(host, ready=ready, restarts=restarts)
            self.storage.merge(PODS, key, {"status": status}, "status")
        name = f"{names.model_service_name(BASE)}-{numbers.start}"
        ends = [self._end(number, ready=ready) for number in numbers]
        self.storage.merge(SLICES, Key(NAMESPACE, name), {"endpoints": ends})

    # What there is.

    def model(self, name: str = "legal") -> Object | None:
        """A model. None means: there is none."""
        return self.storage.objects.get(MODELS, {}).get(Key(NAMESPACE, name))

    def status(self, name: str = "legal") -> Object:
        """The status of a model."""
        found = self.storage.read(MODELS, Key(NAMESPACE, name))
        status: Object = found.get("status", {})
        return status

    def condition(self, type_: str = "EndpointsReady", name: str = "legal") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        found = [each for each in self.status(name)["conditions"] if each["type"] == type_]
        return found[0]["status"], found[0]["reason"], found[0]["message"]

    def events(self) -> list[tuple[str, str]]:
        """Reasons and messages of all events."""
        found = self.storage.objects.get("/api/v1/events", {}).values()
        return sorted((each["reason"], each["message"]) for each in found)

    def asked(self, verb: str = "") -> int:
        """How many calls workers have had."""
        every = (each for worker in self.workers.values() for each in worker.asked)
        return sum(each.startswith(verb) for each in every)

    def writes(self, path: str = MODELS) -> int:
        """How often the operator has written an object of that sort."""
        return sum(
            each.method != "GET"
            and each.path.split("/namespaces/")[0] == path.rpartition("/")[0]
            and f"/{path.rpartition('/')[2]}/" in each.path
            for each in self.server.requests
        )

    async def until(self, outcome: Callable[[], Any], within_seconds: float = 60.0) -> None:
        """Return when that is so."""
        for _ in range(int(within_seconds * 10)):
            if outcome():
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"not within {within_seconds} s")


@asynccontextmanager
async def loaded(
    name: str = "legal", *, pods: int = 1
) -> AsyncIterator[tuple[Cluster, list[Worker]]]:
    """A cluster whose one model is loaded into all its pods, and their workers; the operator runs."""
    cluster = Cluster()
    workers = cluster.has_pods(pods)
    cluster.has_model(name)
    async with cluster.operator():
        await asyncio.sleep(5)
        assert [{"legal-v2": URI}] * pods == [each.loaded for each in workers]
        yield cluster, workers


def pod_status(host: str, *, ready: bool = True, restarts: int = 0) -> Object:
    """The status of a pod with that address."""
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [{"name": "main", "ready": ready, "restartCount": restarts}],
        "podIPs": [{"ip": host}],
    }
