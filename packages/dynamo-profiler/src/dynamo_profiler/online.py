"""Measure candidates on the cluster: deploy one, wait, load its frontend, delete it, continue with the next.

The cheapest comes first, and the first that meets the targets wins. Each measurement goes to the ConfigMap
`dgdr-measured-NAME` before its graph is deleted, and a graph's name contains a hash of its spec. So a
profiler that is killed at any point continues there. The request owns the graphs and the ConfigMap.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import component_name, service_name
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.conditions import is_ready, summary
from dynamo_profiler import Refusal
from dynamo_profiler.choice import Choice
from dynamo_profiler.client import Load, Measured, RequestFailed, frontend
from dynamo_profiler.configuration import Online
from dynamo_profiler.planner import DATA, mocked_graph
from dynamo_profiler.run import OnStep, Phase, Progress, SearchSpace, to_measure
from kube_runtime.client.client import Client
from kube_runtime.errors import Conflict, NotFound, OperatorError, ServerFailure, Throttled, Unreachable
from kube_runtime.times import loop_time
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Key, Object, Struct, from_json, owner_reference

SHARES_OF_LOAD = (0.5, 1.0)
"""Shares of the requested load, in order: a graph that fails at half of it need not get all."""
POLL_SECONDS = 5.0
"""Interval between reads of a graph; shorter at first."""
DELETION_SECONDS = 300.0
"""Time to wait for the pods of a deleted candidate, whose GPUs the next one needs."""
API_RETRY_SECONDS = 300.0
"""An API server that does not respond for so long ends the run."""
MODEL_SECONDS = 300.0
"""Time for a ready graph to serve its model, which workers register with the frontend."""
_FILE = "measurements.json"
_LABEL = {"app.kubernetes.io/managed-by": "dynamo-profiler"}
T = TypeVar("T")


class _File(Struct, frozen=True):
    """The content of the ConfigMap."""

    candidates: tuple[Measured, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """The request that is profiled. Without a name there is none, and nothing is owned."""

    name: str = ""
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Identity":
        """Read the environment variables of a profiling Job."""
        return cls(*(environ.get(f"DGDR_{field}", "") for field in ("NAME", "NAMESPACE", "UID")))

    def owns(self, namespace: str) -> bool:
        """Whether the request owns what the profiler creates in a namespace: in its own."""
        return bool(self.uid) and namespace == self.namespace


async def measured_choice(
    space: SearchSpace, online: Online, request: Identity, client: Client, on_step: OnStep
) -> tuple[Choice, Measured]:
    """The first choice that meets the targets, and its measurement. Calls `on_step` with each step.

    Raises:
        Refusal: no candidate meets the targets; it names the measurements of each.
        OperatorError: the API server refuses a request or does not respond.
    """
    configuration = space.configuration
    bench = _Bench(space, online, request, client, on_step)
    measurements = await bench.stored()
    missed: list[str] = []
    choices = to_measure(space, online.candidates)
    for number, choice in enumerate(choices, 1):
        graph = bench.graph(choice)
        name = graph["metadata"]["name"]
        title = f"candidate {number} of {len(choices)}, {name}"
        bench.report(f"{title}: {choice.text()}")
        measured = measurements.get(name)
        if measured is None:
            try:
                measured = measurements[name] = await bench.measure(graph, choice, title)
            except BaseException:  # SIGTERM cancels this task
                await bench.remove(name)
                raise
            await bench.store(measurements)
        else:
            bench.report(f"{title}: was measured before")
        await bench.clear(name)
        miss = measured.miss(configuration.targets)
        if not miss:
            bench.report(f"{title} meets the targets: {measured.loads[-1].text()}")
            return choice, measured
        bench.report(f"{title} misses the targets: {miss}")
        missed.append(f"{measured.gpus} GPUs ({name}): {miss}")
    raise Refusal(f"no candidate meets the targets when measured: {'; '.join(missed)}")


@dataclass(frozen=True, slots=True)
class _Bench:
    """The cluster that candidates are measured on."""

    space: SearchSpace
    online: Online
    request: Identity
    client: Client
    on_step: OnStep

    def report(self, text: str) -> None:
        """Report a step."""
        self.on_step(Progress(Phase.SELECTING_CONFIG, text))

    def graph(self, choice: Choice) -> Object:
        """The graph of a candidate; its name has a hash of its spec and of the load."""
        online, configuration = self.online, self.space.configuration
        graph = self._graph(choice)
        hashed = graph["spec"], repr((configuration.targets, configuration.requests_per_second))
        digest = hashlib.sha256(msgspec.json.encode([*hashed, repr(online), self.request.uid]))
        name = f"{graph['metadata']['name']}-{digest.hexdigest()[:4]}"
        labels = {"labels": {**graph["metadata"].get("labels", {}), **_LABEL}}
        place = {"name": name, "namespace": online.namespace}
        metadata = {**graph["metadata"], **place, **labels, **self._owned(online.namespace)}
        return {**self._graph(choice, data=_data_of(name)), "metadata": metadata}

    def _owned(self, namespace: str) -> Object:
        """The metadata with the owner reference to the request, if it owns objects there."""
        if not self.request.owns(namespace):
            return {}
        kind = self.client.stored(DynamoGraphDeploymentRequest.KIND)
        return {"ownerReferences": [owner_reference(kind, self.request.name, self.request.uid)]}

    def _graph(self, choice: Choice, data: str = DATA) -> Object:
        """Its workers and frontend, without a planner, which would scale it. Simulated engines use `data`."""
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
        """Earlier measurements, by the names of the graphs."""
        try:
            config_map = await _retried(lambda: self.client.get(ConfigMap, self._file))
        except NotFound:
            return {}
        try:
            text = from_json(config_map.data, dict[str, str]).get(_FILE, "{}")
            candidates = from_json(text, _File).candidates
        except msgspec.DecodeError as error:
            raise Refusal(f"ConfigMap {self._file} is unreadable, delete it: {error}") from error
        return {candidate.graph: candidate for candidate in candidates}

    async def store(self, measurements: Mapping[str, Measured]) -> None:
        """Write the measurements, of which there are at most as many as candidates."""
        text = msgspec.json.encode(_File(tuple(measurements.values()))).decode()
        key = self._file
        metadata = {"name": key.name, "namespace": key.namespace, **self._owned(key.namespace)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_FILE: text}}
        await _retried(lambda: self.client.apply(ConfigMap, body, force=False))

    @property
    def _file(self) -> Key:
        name = self.request.name or self.space.graph(to_measure(self.space, 1)[0])["metadata"]["name"]
        return Key(self.request.namespace or self.online.namespace, f"dgdr-measured-{name}")

    async def measure(self, graph: Object, choice: Choice, title: str) -> Measured:
        """Deploy a graph and load it. A failure of the graph is part of the result."""
        key = Key(self.online.namespace, graph["metadata"]["name"])
        live = await self._deployed(graph, choice)
        loads: list[Load] = []
        try:
            problem = await self._until_ready(key, live.metadata.uid, title)
            if not problem:
                await self._load(live, title, loads)
        except RequestFailed as error:
            problem = f"its frontend does not answer: {error}"
        return Measured(key.name, choice.text(), choice.gpus, tuple(loads), problem)

    async def _deployed(self, graph: Object, choice: Choice) -> DynamoGraphDeployment:
        """Create the graph, or adopt that of an earlier process of this profiler."""
        key = Key(self.online.namespace, graph["metadata"]["name"])
        try:
            live = await _retried(lambda: self.client.create(DynamoGraphDeployment, graph))
        except Conflict:
            live = await _retried(lambda: self.client.get(DynamoGraphDeployment, key))
            if not self._is_own(live):
                raise Refusal(f"graph {key} is not of this request; delete or rename it") from None
        if self.online.is_mocked:
            data = self.space.curves(choice, _data_of(key.name))
            owner = owner_reference(self.client.stored(live.KIND), live.metadata.name, live.metadata.uid)
            owners = {"namespace": key.namespace, "ownerReferences": [owner]}
            body = {**data, "metadata": data["metadata"] | owners}
            await _retried(lambda: self.client.apply(ConfigMap, body, force=False))
        return live

    def _is_own(self, graph: DynamoGraphDeployment) -> bool:
        """Whether a profiler created this graph for this request, or without one."""
        if self.request.owns(graph.metadata.namespace):
            return self.request.uid in (owner.uid for owner in graph.metadata.owner_references)
        return _LABEL.items() <= graph.metadata.labels.items()

    async def _until_ready(self, key: Key, uid: str, title: str) -> str:
        """Wait for the graph; return "" once it is ready, or why it is not ready in time."""
        self.report(f"{title}: waiting until it is ready")
        started, cause = loop_time(), "it has no status"
        while loop_time() - started < self.online.deployment_seconds:
            with suppress(Unreachable, ServerFailure, Throttled):
                graph = await self.client.get(DynamoGraphDeployment, key)
                if graph.metadata.uid != uid:
                    return "another graph has its name now"
                if is_ready(graph):
                    return ""
                if (condition := summary(graph)) is not None:
                    cause = f"{condition.reason}: {condition.message}"
            await _pause(started)
        return f"not ready within {self.online.deployment_seconds:g} s: {cause:.500}"

    async def _load(self, graph: DynamoGraphDeployment, title: str, loads: list[Load]) -> None:
        configuration = self.space.configuration
        [name, *_] = [
            service_name(component_name(graph.metadata.name, key))
            for key, service in graph.spec.services.items()
            if service.component_type == "frontend"
        ] or [""]
        if not name:
            raise RequestFailed("it has no frontend")
        async with frontend(self.online.address(name), configuration.targets) as client:
            model = await client.warm_up(MODEL_SECONDS)
            for share in SHARES_OF_LOAD:
                rate = share * configuration.requests_per_second
                self.report(f"{title}: {rate:.3g} requests per second")
                loads.append(await client.load(model, rate, self.online.seconds_per_load))
                if loads[-1].miss(configuration.targets):
                    return

    async def remove(self, name: str) -> None:
        """Delete a candidate's graph after an error, and only report if that fails."""
        key = Key(self.online.namespace, name)
        try:
            graph = await self.client.get(DynamoGraphDeployment, key)
            if self._is_own(graph):
                await self.client.delete(DynamoGraphDeployment, key, uid=graph.metadata.uid)
        except OperatorError as error:
            self.report(f"graph {key} was not deleted: {error}")

    async def clear(self, name: str) -> None:
        """Delete a candidate's graph and wait until it and its pods are gone."""
        key = Key(self.online.namespace, name)
        started = loop_time()
        while loop_time() - started < DELETION_SECONDS:
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
            await _pause(started)
        self.report(f"graph {key} is still being deleted")


def _data_of(graph: str) -> str:
    return f"{graph}-{DATA}"


async def _retried(request: Callable[[], Awaitable[T]]) -> T:
    # Measurements should survive a restart of the API server.
    started = loop_time()
    while True:
        try:
            return await request()
        except (Unreachable, ServerFailure, Throttled):
            if loop_time() - started > API_RETRY_SECONDS:
                raise
            await _pause(started)


async def _pause(started: float) -> None:
    # The longer it has taken already, the longer the wait.
    await asyncio.sleep(min(POLL_SECONDS, max(0.5, (loop_time() - started) / 5)))
