"""`Graph`, and the clusters that it runs in: `AsyncCluster`, and `Cluster` for programs without asyncio.

What talks to a cluster is imported with the first call, so that declaring graphs stays quick.
"""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from functools import partial, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

import msgspec

from dynamo_graphs.builder import GraphBuilder
from dynamo_graphs.objects import InvalidObject, OfflineObject
from dynamo_graphs.rows import Rows
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.types.meta import Key, Kind, Object

if TYPE_CHECKING:
    from dynamo_graphs.changes import Change
    from dynamo_graphs.edits import Edited
    from dynamo_graphs.events import Event
    from dynamo_graphs.explanation import Explanation
    from dynamo_graphs.frontend import Completion
    from dynamo_graphs.history import Revision, Undone
    from dynamo_graphs.logs import Logs
    from dynamo_graphs.ownership import Applied
    from dynamo_graphs.reader import Reading, Target
    from dynamo_operator.shared.conditions import Stated
    from kube_runtime.client.kubeconfig import Overrides

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", bound="ApiObject")
_WRITTEN = ("name", "namespace", "labels", "annotations", "finalizers")
"""Metadata that users write."""


class ApiObject(OfflineObject):
    """An object of one of our kinds. It never changes: what edits it returns a new object.

    Actions are by default on the cluster of kubectl's current context. In Jupyter they work as elsewhere.
    """

    def diff(self, cluster: "Cluster | None" = None) -> "Change":
        """What `apply` would change, and the pods that it would restart. Nothing is changed.

        Its `overwritten` are the fields that others own; with those of controllers and GitOps tools, `apply`
        is a conflict.

        Raises: as `apply`, but no Conflict.
        """
        return (cluster or Cluster()).diff(self)

    def apply(self, cluster: "Cluster | None" = None, *, force: bool = False) -> "Applied":
        """Apply it, as `dynamoctl apply` does: by default to the cluster of kubectl's current context.

        What kubectl or dynamoctl has set before is overwritten, and `force` overwrites what controllers and
        GitOps tools have set, too. It needs the extra `cluster`.

        Raises:
            InvalidObject: it has problems; nothing was asked of the cluster.
            ImportError: a package that talks to clusters is not installed.
            kube_runtime.errors.Conflict: a controller or a GitOps tool owns a field that would change.
        """
        return (cluster or Cluster()).apply(self, force=force)

    def get(self: A, cluster: "Cluster | None" = None) -> A:
        """The object as it is in the cluster, with its status.

        Raises: Missing.
        """
        return (cluster or Cluster()).get(self)

    def wait(
        self: A,
        cluster: "Cluster | None" = None,
        *,
        seconds: float = 1200,
        seen: Callable[[A], object] | None = None,
    ) -> A:
        """The object with its status once it is ready; `seen=print` shows the progress, Jupyter draws it.

        Raises: `dynamo_graphs.NotReady` with the reason, after that many seconds, or once a request failed.
        """
        seen = seen or redrawn(self)
        return (cluster or Cluster()).wait(self, seconds=seconds, seen=seen)

    async def wait_async(
        self: A,
        cluster: "AsyncCluster | None" = None,
        *,
        seconds: float = 1200,
        seen: Callable[[A], object] | None = None,
    ) -> A:
        """As `wait`, for asynchronous programs; `cluster` is an `AsyncCluster` with a connection.

        Raises: as `wait`.
        """
        seen = seen or redrawn(self)
        if cluster is not None:
            return await cluster.wait(self, seconds=seconds, seen=seen)
        async with AsyncCluster() as connected:
            return await connected.wait(self, seconds=seconds, seen=seen)

    def why(self, cluster: "Cluster | None" = None) -> "Explanation":
        """Why it is not ready, and what to do about it, as `dynamoctl why` prints it."""
        return (cluster or Cluster()).why(self)

    def events(self, cluster: "Cluster | None" = None) -> "Rows[Event]":
        """The Events about it, and about all objects of a graph, the newest last."""
        return (cluster or Cluster()).events(self)

    def delete(self, cluster: "Cluster | None" = None, *, seconds: float = 300) -> None:
        """Delete it in the cluster with all that belongs to it, and wait until it is gone.

        Raises: `TimeoutError` if it is still there after that many seconds.
        """
        (cluster or Cluster()).delete(self, seconds=seconds)

    @contextmanager
    def temporary(self: A, cluster: "Cluster | None" = None, *, seconds: float = 1200) -> Iterator[A]:
        """Apply it, wait until it is ready, and delete it at the end, also after an error or Ctrl-C:

            with graph.temporary() as ready:
                print(ready.chat("Hello").text)

        A process that is killed leaves it behind, with its GPUs: `delete` it.

        Raises:
            Exists: it exists already; it is not touched.
            NotReady: it was not ready in time; it is deleted.
        """
        at = cluster or Cluster()
        at.create(self)
        try:
            yield at.wait(self, seconds=seconds, seen=redrawn(self))
        finally:
            at.delete(self)


class Graph(GraphBuilder, ApiObject):
    """An inference graph: frontends, workers and planners that belong together.

    Each method returns a new graph, and raises `InvalidObject` for what would be refused:

        Graph("chat").frontend().worker("decode", model="Qwen/Qwen3-8B", gpus=2, backend="vllm")
    """

    def logs(
        self, service: str = "", cluster: "Cluster | None" = None, *, tail: int = 100, container: str = "main"
    ) -> "Logs":
        """The last lines of each pod of the graph, or of one service; `tail` -1 is all of them."""
        return (cluster or Cluster()).logs(self, service, tail=tail, container=container)

    def scale(self, service: str, replicas: int, cluster: "Cluster | None" = None) -> "Edited":
        """Set the replicas of a service in the cluster, as `dynamoctl scale` does; not in this object."""
        return (cluster or Cluster()).scale(self, service, replicas)

    def suspend(self, cluster: "Cluster | None" = None) -> "Edited":
        """Scale all services to zero until `resume`, as `dynamoctl suspend` does."""
        return (cluster or Cluster()).suspend(self)

    def resume(self, cluster: "Cluster | None" = None) -> "Edited":
        """Restore the replicas of a suspended graph, as `dynamoctl resume` does."""
        return (cluster or Cluster()).resume(self)

    def restart(self, cluster: "Cluster | None" = None) -> "Edited":
        """Restart all services, as `dynamoctl rollout restart` does."""
        return (cluster or Cluster()).restart(self)

    def history(self, cluster: "Cluster | None" = None) -> "Rows[Revision]":
        """The specs that the graph had, the current one last, as `dynamoctl rollout history` lists them."""
        return (cluster or Cluster()).history(self)

    def undo(
        self, revision: int | None = None, cluster: "Cluster | None" = None, *, dry_run: bool = False
    ) -> "Undone":
        """Return to the spec of a revision, by default of the one before; `dry_run` changes nothing."""
        return (cluster or Cluster()).undo(self, revision, dry_run=dry_run)

    def url(self, cluster: "Cluster | None" = None) -> str:
        """The URL of its frontend: that of its Ingress, else the one inside the cluster."""
        return (cluster or Cluster()).url(self)

    def chat(
        self, prompt: str, cluster: "Cluster | None" = None, *, model: str = "", max_tokens: int = 512
    ) -> "Completion":
        """The model's answer to a prompt, with its times; by default of the only model that is served."""
        return (cluster or Cluster()).chat(self, prompt, model=model, max_tokens=max_tokens)


def redrawn(wanted: A) -> Callable[[A], object] | None:
    """In a Jupyter kernel, draw the object and return a function that updates the drawing; else None.

    The display must be created in the thread of the cell; updates may come from other threads.
    """
    jupyter = sys.modules.get("IPython")
    if jupyter is None or not hasattr(jupyter.get_ipython(), "kernel"):
        return None
    shown: Callable[[A], object] = jupyter.display.display(wanted, display_id=True).update
    return shown


class Exists(OperatorError):
    """An object that would be created exists already."""


class NotReady(OperatorError):
    """An object was not ready in time, or failed; `explanation` has the cause and what to do about it."""

    def __init__(self, head: str, explanation: "Explanation") -> None:
        super().__init__("\n".join((head, *explanation.lines)))
        self.explanation = explanation


def _of_state(type_: type[A], state: "Stated") -> A:
    head = {"apiVersion": state.KIND.api_version, "kind": state.KIND.name}
    return type_.from_dict({**head, **msgspec.to_builtins(state)})


def _type_of(wanted: ApiObject | str) -> type[ApiObject]:
    return Graph if isinstance(wanted, str) else type(wanted)


def ignore(_text: str) -> None:
    """Drop the pieces of an answer that is used as a whole."""


class AsyncCluster:
    """A cluster of a kubeconfig, for `async with`. Objects are given as they are; graphs also by name.

    All methods raise `OperatorError`: `Missing` for what does not exist, `ApiError` for what is refused.
    """

    def __init__(
        self,
        *,
        namespace: str = "",
        context: str = "",
        kubeconfig: Path | str | None = None,
        overrides: "Overrides | None" = None,
    ) -> None:
        """A cluster as kubectl finds it: by default the current context and its namespace.

        `overrides` are what kubectl's flags `--cluster`, `--user`, `--as` and `--request-timeout` choose.

        Raises:
            ConfigError: the namespace is not a valid name.
            ImportError: a package that talks to clusters is not installed.
        """
        try:
            from dynamo_graphs.reader import NAME, connected
        except ModuleNotFoundError as error:
            message = "actions on a cluster need `pip install './packages/dynamo-graphs[cluster]'` in a clone"
            raise ImportError(f"{message}: {error}", name=error.name) from error
        if namespace and not NAME.fullmatch(namespace):
            raise ConfigError("namespace", f'invalid name "{namespace}" (for example prod)')
        file = Path(kubeconfig) if kubeconfig else None
        self._connect = partial(connected, namespace, context, file, overrides)
        self._stack = AsyncExitStack()
        self._reading: Reading | None = None

    async def __aenter__(self) -> "AsyncCluster":
        """Connect.

        Raises:
            OperatorError: there are no usable credentials.
        """
        self._reading = await self._stack.enter_async_context(self._connect())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading = None
        await self._stack.aclose()

    @property
    def namespace(self) -> str:
        """The namespace of what is given by name: the chosen one, else that of the context."""
        return self.reading.namespace

    @property
    def reading(self) -> "Reading":
        """What reads objects of any kind for `dynamoctl`; it may change with any version."""
        if self._reading is None:
            raise RuntimeError("expected a connection: use `async with AsyncCluster() as cluster`")
        return self._reading

    @overload
    async def get(self, wanted: str) -> Graph: ...
    @overload
    async def get(self, wanted: A) -> A: ...
    async def get(self, wanted: ApiObject | str) -> ApiObject:
        """The object as it is in the cluster, with its status: a notebook draws a graph with its state.

        Raises: Missing.
        """
        return _type_of(wanted)._stored(await self._target(wanted).raw())  # noqa: SLF001  of our objects

    async def graphs(self) -> list[Graph]:
        """All graphs of the namespace, by name."""
        bodies = await self.reading.documents(DynamoGraphDeployment.KIND, self.namespace)
        return sorted(map(Graph._stored, bodies), key=lambda graph: graph.name)  # noqa: SLF001

    async def apply(self, wanted: ApiObject, *, force: bool = False) -> "Applied":
        """Apply an object, as `dynamoctl apply` does, and with `force` despite a conflict.

        Raises:
            InvalidObject: it has problems; no request was sent.
            Conflict: a controller or a GitOps tool owns a field that would change.
        """
        from dynamo_graphs.ownership import applied

        return await applied(self.reading, *await self._placed(wanted), force=force)

    async def diff(self, wanted: ApiObject) -> "Change":
        """What `apply` would change, and the pods that it would restart; changes nothing.

        Raises: as `apply`, but no Conflict.
        """
        from dynamo_graphs.changes import planned_changes

        (change,) = await planned_changes(self.reading, [await self._placed(wanted)])
        return change

    async def create(self, wanted: ApiObject) -> None:
        """Apply an object that does not exist yet.

        Raises:
            InvalidObject: it has problems; no request was sent.
            Exists: it exists already.
        """
        from dynamo_graphs.ownership import applied
        from dynamo_graphs.reader import NOUNS

        at, (kind, body) = self._target(wanted), await self._placed(wanted)
        if await self.reading.raw(kind, at.key) is not None:
            noun = NOUNS[wanted.TYPE]
            raise Exists(f"{noun} {at.key} exists already (delete it first, or choose another name)")
        await applied(self.reading, kind, body, force=False)

    @asynccontextmanager
    async def temporary(self, wanted: A, *, seconds: float = 1200) -> AsyncIterator[A]:
        """As the method of an object: apply it, wait until it is ready, and delete it at the end.

        Raises:
            Exists: it exists already; it is not touched.
            NotReady: it was not ready in time; it is deleted.
        """
        await self.create(wanted)
        try:
            yield await self.wait(wanted, seconds=seconds)
        finally:
            await self.delete(wanted)

    async def watch(self, wanted: A) -> AsyncGenerator[A, None]:
        """The object now and after each change, until it is deleted."""
        from dynamo_graphs.watching import states

        at = self._target(wanted)
        async with aclosing(states(at.reading.client, at.type_, at.key)) as stream:
            async for state in stream:
                yield _of_state(type(wanted), state)

    @overload
    async def wait(
        self, wanted: str, *, seconds: float = 1200, seen: Callable[[Graph], object] | None = None
    ) -> Graph: ...
    @overload
    async def wait(
        self, wanted: A, *, seconds: float = 1200, seen: Callable[[A], object] | None = None
    ) -> A: ...
    async def wait(
        self, wanted: ApiObject | str, *, seconds: float = 1200, seen: Callable[[Any], object] | None = None
    ) -> ApiObject:
        """The object once it is ready: all replicas of a graph run the newest spec. `seen` gets each change.

        Raises:
            NotReady: it is not ready within that many seconds, or a request failed; with the cause.
            Missing: it was deleted.
        """
        from asyncio import timeout

        from dynamo_graphs.watching import has_failed, states
        from dynamo_operator.shared.conditions import is_ready

        at, type_ = self._target(wanted), _type_of(wanted)
        head = f"{at.key} failed"
        try:
            async with timeout(seconds), aclosing(states(self.reading.client, at.type_, at.key)) as stream:
                async for state in stream:
                    if seen:
                        seen(_of_state(type_, state))
                    if is_ready(state):
                        return await self.get(wanted)
                    if has_failed(state):
                        break
                else:
                    raise at.missing()
        except TimeoutError:
            head = f"{at.key} was not ready within {seconds:g} s"
        raise NotReady(head, await self.why(wanted))

    async def why(self, wanted: ApiObject | str) -> "Explanation":
        """Why it is not ready, and what to do about it, as `dynamoctl why` prints it.

        Raises: Missing.
        """
        from dynamo_graphs.explanation import explained

        at = self._target(wanted)
        return await explained(at.reading, await at.get())

    async def events(self, wanted: ApiObject | str) -> "Rows[Event]":
        """The Events about it, and about all objects of a graph, as `dynamoctl events` prints them.

        Raises: Missing.
        """
        from dynamo_graphs.events import events_of

        return await events_of(self._target(wanted))

    async def logs(
        self, graph: Graph | str, service: str = "", *, tail: int = 100, container: str = "main"
    ) -> "Logs":
        """The last lines of each pod of the graph, or of one service; `tail` -1 is all of them.

        Raises: Missing.
        """
        from dynamo_graphs.logs import Logs, log_query, read_logs

        logs = Logs()
        await read_logs(self._graph(graph), service, log_query(container, tail), logs.write, logs.fail)
        return logs

    async def scale(self, graph: Graph | str, service: str, replicas: int) -> "Edited":
        """Set the replicas of a service, as `dynamoctl scale` does.

        Raises:
            Missing: there is no such graph or service.
            Unwritable: the number is not a multiple of the graph's `spec.replicas`.
        """
        from dynamo_graphs.edits import scaled

        if replicas < 0:
            raise ConfigError("replicas", f"invalid number {replicas} (expected at least 0)")
        return await scaled(self._graph(graph), service, replicas)

    async def suspend(self, graph: Graph | str) -> "Edited":
        """Scale all services to zero until `resume`, as `dynamoctl suspend` does; the spec keeps its numbers.

        Raises: Missing.
        """
        from dynamo_graphs.edits import mark
        from dynamo_operator.labels import SUSPEND

        return await mark(self._graph(graph), SUSPEND, is_on=True)

    async def resume(self, graph: Graph | str) -> "Edited":
        """Restore the replicas of a suspended graph, as `dynamoctl resume` does.

        Raises: Missing.
        """
        from dynamo_graphs.edits import mark
        from dynamo_operator.labels import SUSPEND

        return await mark(self._graph(graph), SUSPEND, is_on=False)

    async def restart(self, graph: Graph | str) -> "Edited":
        """Restart all services, as `dynamoctl rollout restart` does: in the order of `spec.restart.strategy`.

        Raises:
            Missing: there is no such graph.
            Unwritable: a managed rollout replaces the workers already.
        """
        from dynamo_graphs.edits import restart

        return await restart(self._graph(graph))

    async def url(self, graph: Graph | str) -> str:
        """The URL of its frontend: that of its Ingress, else the one inside the cluster.

        Raises: Missing if it has no frontend, or that has no Service yet.
        """
        from dynamo_graphs.frontend import url_of

        return await url_of(self._graph(graph))

    async def history(self, graph: Graph | str) -> "Rows[Revision]":
        """The specs that the graph had, the current one last, as `dynamoctl rollout history` lists them.

        Raises:
            Missing: there is no such graph.
            Unwritable: it keeps no history.
        """
        from dynamo_graphs.history import revisions_in

        return Rows(await revisions_in(self.reading, await self._graph(graph).get()))

    async def undo(
        self, graph: Graph | str, revision: int | None = None, *, dry_run: bool = False
    ) -> "Undone":
        """Return to the spec of a revision, by default of the one before, as `dynamoctl rollout undo` does.

        Replicas stay as they are. With `dry_run` nothing is changed, and `change` is what would be.

        Raises:
            Missing: there is no such graph.
            Unwritable: it has no such revision.
        """
        from dynamo_graphs.history import undo

        return await undo(self._graph(graph), revision, is_dry=dry_run)

    async def delete(self, wanted: ApiObject | str, *, seconds: float = 300) -> None:
        """Delete the object and all that it owns, and wait until it is gone.

        Raises:
            Missing: it does not exist.
            TimeoutError: it is still there after that many seconds.
        """
        from asyncio import timeout

        from dynamo_graphs.watching import states

        at = self._target(wanted)
        client, uid = at.reading.client, (await at.get()).metadata.uid
        await client.delete(at.type_, at.key, uid=uid)
        async with timeout(seconds), aclosing(states(client, at.type_, at.key)) as left:
            async for state in left:
                if state.metadata.uid != uid:
                    return

    async def chat(
        self,
        graph: Graph | str,
        prompt: str,
        *,
        model: str = "",
        max_tokens: int = 512,
        write: Callable[[str], None] = ignore,
    ) -> "Completion":
        """The model's answer, with its times. `write` gets each piece of text as it arrives.

        Raises:
            Missing: there is no frontend, or it serves no such model.
            ApiError: the frontend answers with an error.
        """
        from dynamo_graphs.frontend import conversation

        begun = await conversation(self._graph(graph), model)
        return await begun.ask(prompt, max_tokens=max_tokens, write=write)

    def _target(self, wanted: ApiObject | str) -> "Target[Any]":
        from dynamo_graphs.reader import NAME, Target

        name = wanted if isinstance(wanted, str) else wanted.name
        own = "" if isinstance(wanted, str) else wanted.namespace
        if not NAME.fullmatch(name):
            raise ConfigError("graph", f'invalid name "{name}" (expected a name, for example chat)')
        return Target(self.reading, _type_of(wanted).TYPE, Key(own or self.namespace, name))

    def _graph(self, graph: Graph | str) -> "Target[DynamoGraphDeployment]":
        return self._target(graph)

    async def _placed(self, resource: ApiObject) -> "tuple[Kind, Object]":
        """The object in its namespace, without fields that the API server writes, in a served version.

        Raises: InvalidObject; Missing, if the cluster does not serve its kind.
        """
        from asyncio import to_thread

        from dynamo_graphs.served import in_served_version

        if problems := await to_thread(resource.problems):
            raise InvalidObject(problems)
        kind, body = await in_served_version(self.reading, resource.to_dict())
        body.pop("status", None)
        metadata = {key: value for key, value in body["metadata"].items() if key in _WRITTEN}
        return kind, {**body, "metadata": {"namespace": self.namespace, **metadata}}


def _blocking(
    method: Callable[Concatenate[AsyncCluster, P], Awaitable[T]],
) -> "Callable[Concatenate[Cluster, P], T]":
    """The method of `Cluster` that connects, runs this one of `AsyncCluster`, and disconnects."""

    def call(self: "Cluster", /, *given: P.args, **options: P.kwargs) -> T:
        async def connected() -> T:
            async with self._new() as at:
                return await method(at, *given, **options)

        return _finished(connected())

    update_wrapper(call, method)
    return call


class Cluster:
    """A cluster of a kubeconfig. Objects are given as they are; graphs also by name.

    The methods are those of `AsyncCluster` but for `watch` and `temporary`, and raise the same errors. Each
    call opens and closes a connection of its own.
    """

    def __init__(
        self, *, namespace: str = "", context: str = "", kubeconfig: Path | str | None = None
    ) -> None:
        """A cluster as kubectl finds it: by default the current context and its namespace.

        Raises:
            ConfigError: the namespace cannot be one.
        """
        self._new = partial(AsyncCluster, namespace=namespace, context=context, kubeconfig=kubeconfig)
        self._new()  # checks the namespace at once

    get = _blocking(AsyncCluster.get)
    graphs = _blocking(AsyncCluster.graphs)
    apply = _blocking(AsyncCluster.apply)
    diff = _blocking(AsyncCluster.diff)
    wait = _blocking(AsyncCluster.wait)
    why = _blocking(AsyncCluster.why)
    events = _blocking(AsyncCluster.events)
    create = _blocking(AsyncCluster.create)
    url = _blocking(AsyncCluster.url)
    logs = _blocking(AsyncCluster.logs)
    scale = _blocking(AsyncCluster.scale)
    suspend = _blocking(AsyncCluster.suspend)
    resume = _blocking(AsyncCluster.resume)
    restart = _blocking(AsyncCluster.restart)
    history = _blocking(AsyncCluster.history)
    undo = _blocking(AsyncCluster.undo)
    delete = _blocking(AsyncCluster.delete)
    chat = _blocking(AsyncCluster.chat)


def _finished(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end. Jupyter's thread already runs an event loop: the work gets another thread."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()

    def run() -> T:
        with runner:
            return runner.run(work)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            return done.result()
        except KeyboardInterrupt:  # of a notebook: stop the thread as well
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
            raise
