"""A simulated cluster with models, pods of their base model, and workers.

Like real workers, these accept a load of a loaded name whatever its URI, and their actions take time, in
which a test may stop the operator.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from dynamo_operator import FIELD_MANAGER, labels, names
from dynamo_operator.component.read import SELECTOR, reduced_pod
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.calls import Caller, ModelCalls
from dynamo_operator.models.controller import ModelController
from dynamo_operator.models.plan import Call, Ending, LoraVerb, Reply
from dynamo_operator.models.read import SLICE_SELECTOR
from dynamo_operator.shared.cluster import ModelService
from dynamo_operator.shared.report import Reporter
from kube_runtime.apply.status import StatusRateLimit
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client, Transport
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import EndpointSlice, Pod, Service
from kube_runtime.types.meta import Key, Object
from kube_runtime.wire import path_of
from simulated.managed import managed
from simulated.server import Server

MODELS = path_of(DynamoModel.KIND)
SLICES = path_of(EndpointSlice.KIND)
PODS = path_of(Pod.KIND)
SERVICES = path_of(Service.KIND)
NAMESPACE = "team-b"
BASE = "orion/base-13b"
START = datetime(2026, 1, 1, tzinfo=UTC)
URI = "s3://vault/legal-v2"

DONE = Reply(Ending.DONE)
UNABLE = Reply(Ending.UNABLE, "cannot manage LoRAs: status 404")


@dataclass
class Worker:
    """One worker: its loaded LoRAs, and the reply to all calls if `answer` is not None."""

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
    """An API server, workers by address, and an operator, which can be stopped and started again."""

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
        """Run a new operator, by default on the server; its caches are synced when the block starts."""
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
    async def _workers(self) -> AsyncIterator[Caller]:
        yield self.call

    async def call(self, address: str, call: Call, timeout_seconds: float | None = None) -> Reply:
        """Call the worker with that address, if any."""
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

    # Actions of users and of Kubernetes.

    def has_model(self, name: str = "legal", *, type_: str = "lora", **spec: Any) -> None:
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
        self.storage.merge(MODELS, Key(NAMESPACE, name), {"spec": spec})

    def annotate(self, annotations: dict[str, str | None], name: str = "legal") -> None:
        """Annotate a model as a user; None removes the annotation."""
        change = {"metadata": {"annotations": annotations}}
        self.storage.merge(MODELS, Key(NAMESPACE, name), change)

    def delete(self, name: str = "legal") -> None:
        self.storage.delete(MODELS, Key(NAMESPACE, name), {})

    def has_service(self, base: str = BASE) -> None:
        """Create the Service of a base model, as components do."""
        name = names.model_service_name(base)
        hash_ = names.model_hash(base)
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {labels.BASE_MODEL_HASH: hash_, labels.MANAGED_BY: labels.MANAGER},
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
        """Create pods that serve the base model, with EndpointSlices; return their workers."""
        workers = []
        for number in range(first, first + count):
            host = f"{network or f'10.8.{number // 250}'}.{number % 250 + 1}"
            worker = self.workers[f"http://{host}:9090"] = Worker()
            workers.append(worker)
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
            self.storage.create(PODS, {"metadata": metadata, "status": pod_status(host, ready=ready)})
        ends = [self._end(number, ready=ready) for number in range(first, first + count)]
        service = names.model_service_name(base)
        for number in range(0, count, 100):
            self.has_slice(f"{service}-{first + number}", service, base, ends[number : number + 100])
        return workers

    def has_slice(self, name: str, service: str, base: str, ends: list[Object]) -> None:
        slice_labels = {"kubernetes.io/service-name": service, labels.BASE_MODEL_HASH: names.model_hash(base)}
        metadata = {"name": name, "namespace": NAMESPACE, "labels": slice_labels}
        self.storage.create(SLICES, {"metadata": metadata, "endpoints": ends})

    def _end(self, number: int, *, ready: bool) -> Object:
        pod = self.storage.read(PODS, Key(NAMESPACE, f"w-{number}"))
        target = {"kind": "Pod", "name": f"w-{number}", "uid": pod["metadata"]["uid"]}
        hosts = [ip["ip"] for ip in pod["status"]["podIPs"]]
        return {"addresses": hosts, "conditions": {"ready": ready}, "targetRef": target}

    def set_pods(self, numbers: range, *, ready: bool = True, restarts: int = 0) -> None:
        """Make the pods of one EndpointSlice ready or not, and its endpoints with them."""
        for number in numbers:
            key = Key(NAMESPACE, f"w-{number}")
            host = self.storage.read(PODS, key)["status"]["podIPs"][0]["ip"]
            status = pod_status(host, ready=ready, restarts=restarts)
            self.storage.merge(PODS, key, {"status": status}, "status")
        name = f"{names.model_service_name(BASE)}-{numbers.start}"
        ends = [self._end(number, ready=ready) for number in numbers]
        self.storage.merge(SLICES, Key(NAMESPACE, name), {"endpoints": ends})

    # The state of the cluster.

    def model(self, name: str = "legal") -> Object | None:
        return self.storage.objects.get(MODELS, {}).get(Key(NAMESPACE, name))

    def status(self, name: str = "legal") -> Object:
        status: Object = self.storage.read(MODELS, Key(NAMESPACE, name)).get("status", {})
        return status

    def condition(self, type_: str = "EndpointsReady", name: str = "legal") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        [condition] = [c for c in self.status(name)["conditions"] if c["type"] == type_]
        return condition["status"], condition["reason"], condition["message"]

    def events(self) -> list[tuple[str, str]]:
        events = self.storage.objects.get("/api/v1/events", {}).values()
        return sorted((event["reason"], event["message"]) for event in events)

    def asked(self, verb: str = "") -> int:
        """The number of calls to workers, or of those with that verb."""
        calls = (call for worker in self.workers.values() for call in worker.asked)
        return sum(call.startswith(verb) for call in calls)

    def writes(self, path: str = MODELS) -> int:
        """The number of writes to objects of that collection."""
        return sum(
            request.method != "GET"
            and request.path.split("/namespaces/")[0] == path.rpartition("/")[0]
            and f"/{path.rpartition('/')[2]}/" in request.path
            for request in self.server.requests
        )

    async def until(self, outcome: Callable[[], Any], within_seconds: float = 60.0) -> None:
        for _ in range(int(within_seconds * 10)):
            if outcome():
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"not within {within_seconds} s")


@asynccontextmanager
async def loaded(name: str = "legal", *, pods: int = 1) -> AsyncIterator[tuple[Cluster, list[Worker]]]:
    """A cluster with a running operator whose one model is loaded into all pods, and their workers."""
    cluster = Cluster()
    workers = cluster.has_pods(pods)
    cluster.has_model(name)
    async with cluster.operator():
        await asyncio.sleep(5)
        assert [{"legal-v2": URI}] * pods == [worker.loaded for worker in workers]
        yield cluster, workers


def pod_status(host: str, *, ready: bool = True, restarts: int = 0) -> Object:
    """The status of a pod with that IP address."""
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [{"name": "main", "ready": ready, "restartCount": restarts}],
        "podIPs": [{"ip": host}],
    }
