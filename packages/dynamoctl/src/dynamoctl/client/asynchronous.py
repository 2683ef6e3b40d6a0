"""`AsyncCluster`: the functions behind the commands, with objects of `dynamo_graphs` in and out."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dynamo_graphs import ApiObject, Graph, InvalidObject
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import is_ready
from dynamoctl.change.apply import Applied, applied
from dynamoctl.change.diff import Change, planned_changes
from dynamoctl.change.edits import Scaled, scaled
from dynamoctl.cluster.target import NAME, Cluster, Target, cluster
from dynamoctl.cluster.watching import states
from dynamoctl.frontend.chat import Completion, completion, ignore, served_model
from dynamoctl.frontend.forward import frontend_of
from dynamoctl.inspect.explanation import Explanation
from dynamoctl.inspect.logs import PodLog, log_query, pod_selector, pods_of
from dynamoctl.inspect.tree import explained
from dynamoctl.options import LogOptions, Where
from dynamoctl.screen import LogLine
from kube_runtime.errors import ApiError, ConfigError, OperatorError
from kube_runtime.kind import Key, Object


class NotReady(OperatorError):
    """A graph was not ready in time; `explanation` has the cause and what to do about it."""

    def __init__(self, graph: Key, seconds: float, explanation: Explanation) -> None:
        lines = (f"{graph} was not ready within {seconds:g} s", *explanation.lines)
        super().__init__("\n".join(lines))
        self.explanation = explanation


@dataclass(slots=True)
class Logs:
    """Lines with the name of their pod, pod by pod; `unread` has the pods without a readable log, and why."""

    lines: list[tuple[str, LogLine]] = field(default_factory=list[tuple[str, LogLine]])
    unread: list[str] = field(default_factory=list[str])

    def write(self, pod: str, line: LogLine) -> None:
        """Add a line."""
        self.lines.append((pod, line))

    def __str__(self) -> str:
        return "\n".join(f"{pod}  {line.text}" for pod, line in self.lines)


class AsyncCluster:
    """A cluster of a kubeconfig, for `async with`. Graphs are given as `Graph` or by name.

    All methods raise `OperatorError`: `Missing` for what does not exist, `ApiError` for what is refused.
    """

    def __init__(
        self, *, namespace: str = "", context: str = "", kubeconfig: Path | str | None = None
    ) -> None:
        """A cluster as kubectl finds it: by default the current context and its namespace.

        Raises:
            ConfigError: the namespace is not a valid name.
        """
        if namespace and not NAME.fullmatch(namespace):
            raise ConfigError("namespace", f'invalid name "{namespace}" (for example prod)')
        self._where = Where(namespace, context, Path(kubeconfig) if kubeconfig else None)
        self._stack = AsyncExitStack()
        self._cluster: Cluster | None = None

    async def __aenter__(self) -> "AsyncCluster":
        """Connect.

        Raises:
            OperatorError: there are no usable credentials.
        """
        self._cluster = await self._stack.enter_async_context(cluster(self._where))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._cluster = None
        await self._stack.aclose()

    async def get(self, graph: Graph | str) -> Graph:
        """The graph as it is in the cluster, with its status: a notebook draws it with its state.

        Raises: Missing.
        """
        return Graph.from_dict(await self._target(graph).raw())

    async def graphs(self) -> list[Graph]:
        """All graphs of the namespace, by name."""
        kind = DynamoGraphDeployment.KIND
        bodies = await self._at.reading.all_raw(kind, self._at.namespace)
        return sorted(map(Graph.from_dict, bodies), key=lambda graph: graph.name)

    async def apply(self, wanted: ApiObject, *, force: bool = False) -> Applied:
        """Apply an object, as `dynamoctl apply` does. `force` takes over fields of other field managers.

        Raises:
            InvalidObject: it has problems; no request was sent.
            Conflict: other field managers own fields that would change.
        """
        body = await self._placed(wanted)
        return await applied(self._at.reading, wanted.TYPE.KIND, body, force=force)

    async def diff(self, wanted: ApiObject, *, force: bool = False) -> Change:
        """What `apply` would change, and the pods that it would restart; changes nothing.

        Raises: as `apply`.
        """
        body = await self._placed(wanted)
        (change,) = await planned_changes(self._at.reading, [(wanted.TYPE.KIND, body)], force=force)
        return change

    async def watch(self, graph: Graph | str) -> AsyncGenerator[Graph, None]:
        """The graph now and after each change, until it is deleted."""
        at = self._target(graph)
        async with aclosing(states(at.reading.client, at.type_, at.key)) as stream:
            async for state in stream:
                yield _as_graph(state)

    async def wait(
        self,
        graph: Graph | str,
        *,
        seconds: float = 1200,
        seen: Callable[[Graph], object] | None = None,
    ) -> Graph:
        """The graph once it is ready: all replicas run the newest spec. `seen` is called at each change.

        Raises:
            NotReady: it is not ready within that many seconds; with the cause.
            Missing: it was deleted.
        """
        at = self._target(graph)
        try:
            async with (
                asyncio.timeout(seconds),
                aclosing(states(at.reading.client, at.type_, at.key)) as stream,
            ):
                async for state in stream:
                    if seen is not None:
                        seen(_as_graph(state))
                    if is_ready(state):
                        return await self.get(graph)
        except TimeoutError:
            raise NotReady(at.key, seconds, await self.why(graph)) from None
        raise at.missing()

    async def why(self, graph: Graph | str) -> Explanation:
        """Why the graph is not ready, and what to do about it, as `dynamoctl why` prints it.

        Raises: Missing.
        """
        at = self._target(graph)
        return await explained(at.reading, await at.get())

    async def logs(
        self, graph: Graph | str, service: str = "", *, tail: int = 100, container: str = "main"
    ) -> Logs:
        """The last lines of each pod of the graph, or of one service; `tail` -1 is all of them.

        Raises: Missing.
        """
        at = self._target(graph)
        query = log_query(LogOptions(tail=tail, container=container))
        selector = pod_selector(await at.get(), service)
        logs = Logs()
        for pod in await pods_of(at, service, selector):
            try:
                await PodLog(at.reading.transport, pod, query, logs.write).print()
            except ApiError as error:
                logs.unread.append(f"{pod.metadata.name}: {error}")
        return logs

    async def scale(self, graph: Graph | str, service: str, replicas: int) -> Scaled:
        """Set the replicas of a service, as `dynamoctl scale` does.

        Raises:
            Missing: there is no such graph or service.
            Unwritable: the number is not a multiple of the graph's `spec.replicas`.
        """
        if replicas < 0:
            raise ConfigError("replicas", f"invalid number {replicas} (expected at least 0)")
        return await scaled(self._target(graph), service, replicas)

    async def delete(self, graph: Graph | str, *, seconds: float = 300) -> None:
        """Delete the graph and all that it owns, and wait until it is gone.

        Raises:
            Missing: it does not exist.
            TimeoutError: it is still there after that many seconds.
        """
        at = self._target(graph)
        live = await at.get()
        await at.reading.client.delete(at.type_, at.key, uid=live.metadata.uid)
        async with (
            asyncio.timeout(seconds),
            aclosing(states(at.reading.client, at.type_, at.key)) as left,
        ):
            async for state in left:
                if state.metadata.uid != live.metadata.uid:
                    return

    async def chat(
        self,
        graph: Graph | str,
        prompt: str,
        *,
        model: str = "",
        max_tokens: int = 512,
        write: Callable[[str], None] = ignore,
    ) -> Completion:
        """The model's answer, with its times. `write` gets each piece of text as it arrives.

        Raises:
            Missing: there is no frontend, or it serves no such model.
            ApiError: the frontend answers with an error.
        """
        frontend = await frontend_of(self._target(graph))
        chosen = await served_model(frontend, model)
        messages: list[Object] = [{"role": "user", "content": prompt}]
        return await completion(frontend, chosen, messages, max_tokens=max_tokens, write=write)

    @property
    def _at(self) -> Cluster:
        if self._cluster is None:
            raise RuntimeError("expected a connection: use `async with AsyncCluster() as cluster`")
        return self._cluster

    def _target(self, graph: Graph | str) -> Target[DynamoGraphDeployment]:
        name = graph if isinstance(graph, str) else graph.name
        own = "" if isinstance(graph, str) else graph.namespace
        if not NAME.fullmatch(name):
            raise ConfigError("graph", f'invalid name "{name}" (expected a name, for example chat)')
        key = Key(own or self._at.namespace, name)
        return Target(self._at.reading, DynamoGraphDeployment, key)

    async def _placed(self, resource: ApiObject) -> Object:
        """The object in its namespace, without fields that the API server writes.

        Raises: InvalidObject.
        """
        if problems := await asyncio.to_thread(resource.problems):
            raise InvalidObject(problems)
        body = resource.to_dict()
        body.pop("status", None)
        metadata = {key: value for key, value in body["metadata"].items() if key in _WRITTEN}
        return {**body, "metadata": {"namespace": self._at.namespace, **metadata}}


_WRITTEN = ("name", "namespace", "labels", "annotations", "finalizers")
"""Metadata that users write."""


def _as_graph(graph: DynamoGraphDeployment) -> Graph:
    kind = graph.KIND
    head = {"apiVersion": kind.api_version, "kind": kind.name}
    return Graph.from_dict({**head, **msgspec.json.decode(msgspec.json.encode(graph))})
