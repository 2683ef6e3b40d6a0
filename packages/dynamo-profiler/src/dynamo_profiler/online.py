"""Measure candidates on the cluster: deploy one, wait, load its frontend, delete it, and so on with the next.

The cheapest comes first, and the first that meets the targets is taken. Each measurement is written to the
ConfigMap `dgdr-measured-NAME` before its graph is deleted, and a graph's name depends on what it is made of.
So a profiler that is killed at any point continues there. The request owns graphs and ConfigMap.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import component_name, service_name
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.status.readiness import is_ready, summary
from dynamo_profiler.choice import Choice
from dynamo_profiler.client import Unanswered, frontend
from dynamo_profiler.configuration import Online
from dynamo_profiler.measurement import Load, Measured
from dynamo_profiler.planner import DATA, mocked_graph
from dynamo_profiler.progress import Phase, Progress
from dynamo_profiler.refusal import Refusal
from dynamo_profiler.run import SearchSpace, to_measure
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.errors import (
    Conflict,
    NotFound,
    OperatorError,
    ServerFailure,
    Throttled,
    Unreachable,
)
from kube_runtime.kind import Key, Object
from kube_runtime.types.core import ConfigMap
from kube_runtime.types.meta import Struct

SHARES_OF_LOAD = (0.5, 1.0)
"""Of the requested load, one after the other: a graph that fails half of it need not see all."""
POLL_SECONDS = 5.0
"""Between two reads of a graph; less in its first seconds."""
GONE_SECONDS = 300.0
"""How long to wait for the pods of a deleted candidate, whose GPUs the next one needs."""
SILENT_SECONDS = 300.0
"""After which an API server that does not answer ends the run."""
ANSWER_SECONDS = 300.0
"""How long a ready graph may take to answer: workers register their model with the frontend."""
_FILE = "measurements.json"
_LABEL = {"app.kubernetes.io/managed-by": "dynamo-profiler"}
T = TypeVar("T")


class _File(Struct, frozen=True):
    """The content of the ConfigMap."""

    candidates: tuple[Measured, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """The request that is profiled for. Without a name there is none, and nothing is owned."""

    name: str = ""
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Identity":
        """From the variables of a profiling Job."""
        return cls(*(environ.get(f"DGDR_{field}", "") for field in ("NAME", "NAMESPACE", "UID")))

    def owner(self, namespace: str) -> Object:
        """The metadata of what it owns in a namespace; empty in another one than its own."""
        if not self.uid or namespace != self.namespace:
            return {}
        kind = DynamoGraphDeploymentRequest.KIND
        reference = {"apiVersion": kind.api_version, "kind": kind.name}
        return {"ownerReferences": [{**reference, "name": self.name, "uid": self.uid}]}


async def measured_choice(
    space: SearchSpace,
    online: Online,
    request: Identity,
    client: Client,
    seen: Callable[[Progress], object],
) -> tuple[Choice, Measured]:
    """The first choice that meets the targets, and what was measured of it. `seen` is called with each step.

    Raises:
        Refusal: none does; it names what was measured of each.
        OperatorError: the API server refuses a request, or does not answer.
    """
    configuration = space.configuration
    bench = _Bench(space, online, request, client, seen)
    measurements = await bench.stored()
    missed: list[str] = []
    choices = to_measure(space, online.candidates)
    for number, choice in enumerate(choices, 1):
        graph = bench.graph(choice)
        name = graph["metadata"]["name"]
        title = f"candidate {number} of {len(choices)}, {name}"
        bench.say(f"{title}: {choice.text()}")
        measured = measurements.get(name)
        if measured is None:
            try:
                measured = measurements[name] = await bench.measure(graph, choice, title)
            except BaseException:  # also if the process is to end
                await bench.remove(name)
                raise
            await bench.store(measurements)
        else:
            bench.say(f"{title}: was measured before")
        await bench.clear(name)
        miss = measured.miss(configuration.targets)
        if not miss:
            bench.say(f"{title} meets the targets: {measured.loads[-1].text()}")
            return choice, measured
        bench.say(f"{title} misses the targets: {miss}")
        missed.append(f"{measured.gpus} GPUs ({name}): {miss}")
    raise Refusal(f"no candidate meets the targets when measured: {'; '.join(missed)}")


@dataclass(frozen=True, slots=True)
class _Bench:
    """The cluster that candidates are measured on."""

    space: SearchSpace
    online: Online
    request: Identity
    client: Client
    seen: Callable[[Progress], object]

    def say(self, text: str) -> None:
        """Report a step."""
        self.seen(Progress(Phase.SELECTING_CONFIG, text))

    def graph(self, choice: Choice) -> Object:
        """The graph of a candidate, named after what it is made of, and after how it is loaded."""
        online, configuration = self.online, self.space.configuration
        graph = self._graph(choice)
        made_of = graph["spec"], repr((configuration.targets, configuration.requests_per_second))
        digest = hashlib.sha256(msgspec.json.encode([*made_of, repr(online), self.request.uid]))
        name = f"{graph['metadata']['name']}-{digest.hexdigest()[:4]}"
        owner = self.request.owner(online.namespace)
        labels = {"labels": {**graph["metadata"].get("labels", {}), **_LABEL}}
        place = {"name": name, "namespace": online.namespace}
        metadata = {**graph["metadata"], **place, **labels, **owner}
        return {**self._graph(choice, data=_data_of(name)), "metadata": metadata}

    def _graph(self, choice: Choice, data: str = DATA) -> Object:
        """Its workers and frontend: a planner would change what is measured. Simulated engines use `data`."""
        graph = self.space.graph(choice)
        if self.online.is_mocked:
            name = graph["metadata"]["name"]
            graph = mocked_graph(name, self.space.configuration, self.space.backend, choice, data)
        services = {
            key: service
            for key, service in graph["spec"]["services"].items()
            if service.get("componentType") != "planner"
        }
        return {**graph, "spec": {**graph["spec"], "services": services}}

    async def stored(self) -> dict[str, Measured]:
        """What was measured before, by the names of graphs."""
        try:
            config_map = await _answered(lambda: self.client.get(ConfigMap, self._file))
        except NotFound:
            return {}
        try:
            text = msgspec.json.decode(config_map.data, type=dict[str, str]).get(_FILE, "{}")
            candidates = msgspec.json.decode(text, type=_File).candidates
        except msgspec.DecodeError as error:
            raise Refusal(f"ConfigMap {self._file} is unreadable, delete it: {error}") from error
        return {candidate.graph: candidate for candidate in candidates}

    async def store(self, measurements: Mapping[str, Measured]) -> None:
        """Keep what was measured; never more than there can be candidates of one request."""
        text = msgspec.json.encode(_File(tuple(measurements.values()))).decode()
        key = self._file
        metadata = {
            "name": key.name,
            "namespace": key.namespace,
            **self.request.owner(key.namespace),
        }
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {_FILE: text},
        }
        await _answered(lambda: self.client.apply(ConfigMap, body, force=False))

    @property
    def _file(self) -> Key:
        name = (
            self.request.name or self.space.graph(to_measure(self.space, 1)[0])["metadata"]["name"]
        )
        return Key(self.request.namespace or self.online.namespace, f"dgdr-measured-{name}")

    async def measure(self, graph: Object, choice: Choice, title: str) -> Measured:
        """Deploy a graph and load it; a problem of the graph is a part of the result."""
        key = Key(self.online.namespace, graph["metadata"]["name"])
        live = await self._deployed(graph, choice)
        loads: list[Load] = []
        try:
            problem = await self._until_ready(key, live.metadata.uid, title)
            if not problem:
                await self._load(live, title, loads)
        except Unanswered as error:
            problem = f"its frontend does not answer: {error}"
        return Measured(key.name, choice.text(), choice.gpus, tuple(loads), problem)

    async def _deployed(self, graph: Object, choice: Choice) -> DynamoGraphDeployment:
        """The graph: the one that a profiler before this one has created, or a new one."""
        key = Key(self.online.namespace, graph["metadata"]["name"])
        try:
            live = await _answered(lambda: self.client.create(DynamoGraphDeployment, graph))
        except Conflict:
            live = await _answered(lambda: self.client.get(DynamoGraphDeployment, key))
            if not self._is_own(live):
                raise Refusal(f"graph {key} is not of this request; delete or rename it") from None
        if self.online.is_mocked:
            reference = {"kind": live.KIND.name, "name": key.name, "uid": live.metadata.uid}
            owner = {"apiVersion": live.KIND.api_version, **reference}
            data = self.space.curves(choice, _data_of(key.name))
            metadata = {**data["metadata"], "namespace": key.namespace, "ownerReferences": [owner]}
            body = {**data, "metadata": metadata}
            await _answered(lambda: self.client.apply(ConfigMap, body, force=False))
        return live

    def _is_own(self, graph: DynamoGraphDeployment) -> bool:
        """Whether a graph was created for this request, or without one, by a profiler."""
        if self.request.owner(graph.metadata.namespace):
            return self.request.uid in (owner.uid for owner in graph.metadata.owner_references)
        return _LABEL.items() <= graph.metadata.labels.items()

    async def _until_ready(self, key: Key, uid: str, title: str) -> str:
        """Wait for the graph. Returns why it is not ready in time, or "" once it is."""
        self.say(f"{title}: waiting until it is ready")
        begun, cause = loop_time(), "it has no status"
        while loop_time() - begun < self.online.deployment_seconds:
            with suppress(Unreachable, ServerFailure, Throttled):
                graph = await self.client.get(DynamoGraphDeployment, key)
                if graph.metadata.uid != uid:
                    return "another graph has its name now"
                if is_ready(graph):
                    return ""
                if (condition := summary(graph)) is not None:
                    cause = f"{condition.reason}: {condition.message}"
            await _pause(begun)
        return f"not ready within {self.online.deployment_seconds:g} s: {cause:.500}"

    async def _load(self, graph: DynamoGraphDeployment, title: str, loads: list[Load]) -> None:
        configuration = self.space.configuration
        [name, *_] = [
            service_name(component_name(graph.metadata.name, key))
            for key, service in graph.spec.services.items()
            if service.component_type == "frontend"
        ] or [""]
        if not name:
            raise Unanswered("it has no service of componentType frontend")
        async with frontend(self.online.address(name), configuration.targets) as client:
            model = await client.warm_up(ANSWER_SECONDS)
            for share in SHARES_OF_LOAD:
                rate = share * configuration.requests_per_second
                self.say(f"{title}: {rate:.3g} requests per second")
                loads.append(await client.load(model, rate, self.online.seconds_per_load))
                if loads[-1].miss(configuration.targets):
                    return

    async def remove(self, name: str) -> None:
        """Delete a candidate's graph, if the API server lets us: there is another error to report."""
        key = Key(self.online.namespace, name)
        try:
            graph = await self.client.get(DynamoGraphDeployment, key)
            if self._is_own(graph):
                await self.client.delete(DynamoGraphDeployment, key, uid=graph.metadata.uid)
        except OperatorError as error:
            self.say(f"graph {key} was not deleted: {error}")

    async def clear(self, name: str) -> None:
        """Delete a candidate's graph and wait until it is gone, with its pods."""
        key = Key(self.online.namespace, name)
        begun = loop_time()
        while loop_time() - begun < GONE_SECONDS:
            with suppress(Unreachable, ServerFailure, Throttled, Conflict):
                try:
                    graph = await self.client.get(DynamoGraphDeployment, key)
                except NotFound:
                    return
                if not self._is_own(graph):
                    return
                if not graph.metadata.deletion_timestamp:
                    await self.client.delete(DynamoGraphDeployment, key, uid=graph.metadata.uid)
                    continue
            await _pause(begun)
        self.say(f"graph {key} is still being deleted")


def _data_of(graph: str) -> str:
    """The ConfigMap with the curves of a candidate's simulated engines."""
    return f"{graph}-{DATA}"


async def _answered(ask: Callable[[], Awaitable[T]]) -> T:
    """What the API server answers, for which it has time: hours of measurements should survive its restart.

    Raises:
        OperatorError: it refuses, or has not answered for `SILENT_SECONDS`.
    """
    begun = loop_time()
    while True:
        try:
            return await ask()
        except (Unreachable, ServerFailure, Throttled):
            if loop_time() - begun > SILENT_SECONDS:
                raise
            await _pause(begun)


async def _pause(begun: float) -> None:
    """Wait before the next read; the longer it has taken, the longer."""
    await asyncio.sleep(min(POLL_SECONDS, max(0.5, (loop_time() - begun) / 5)))
