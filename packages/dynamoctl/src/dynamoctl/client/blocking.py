"""`Cluster`: the client for notebooks and programs without asyncio.

Each call opens and closes its own connection. Jupyter already runs an event loop in the thread; calls then
run in another one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from dynamo_graphs import ApiObject, Graph
from dynamoctl.change.apply import Applied
from dynamoctl.change.diff import Change
from dynamoctl.change.edits import Scaled
from dynamoctl.client.asynchronous import AsyncCluster, Logs
from dynamoctl.frontend.chat import Completion, ignore
from dynamoctl.inspect.explanation import Explanation

T = TypeVar("T")


class Cluster:
    """A cluster of a kubeconfig. Graphs are given as `Graph` or by name.

    The methods are those of `AsyncCluster` but for `watch`, and raise the same errors.
    """

    def __init__(
        self, *, namespace: str = "", context: str = "", kubeconfig: Path | str | None = None
    ) -> None:
        """A cluster as kubectl finds it: by default the current context and its namespace.

        Raises:
            ConfigError: the namespace cannot be one.
        """
        self._new = partial(
            AsyncCluster, namespace=namespace, context=context, kubeconfig=kubeconfig
        )
        self._new()  # checks the namespace at once

    def get(self, graph: Graph | str) -> Graph:
        """The graph as it is in the cluster, with its status."""
        return self._run(lambda at: at.get(graph))

    def graphs(self) -> list[Graph]:
        """All graphs of the namespace, by name."""
        return self._run(lambda at: at.graphs())

    def apply(self, wanted: ApiObject, *, force: bool = False) -> Applied:
        """Apply an object without problems; `force` takes over fields of other field managers."""
        return self._run(lambda at: at.apply(wanted, force=force))

    def diff(self, wanted: ApiObject, *, force: bool = False) -> Change:
        """What `apply` would change, and the pods that it would restart; changes nothing."""
        return self._run(lambda at: at.diff(wanted, force=force))

    def wait(
        self,
        graph: Graph | str,
        *,
        seconds: float = 1200,
        seen: Callable[[Graph], object] | None = None,
    ) -> Graph:
        """The graph once it is ready, or `NotReady` with the reason; `seen=print` shows the progress."""
        return self._run(lambda at: at.wait(graph, seconds=seconds, seen=seen))

    def why(self, graph: Graph | str) -> Explanation:
        """Why the graph is not ready, and what to do about it."""
        return self._run(lambda at: at.why(graph))

    def logs(
        self, graph: Graph | str, service: str = "", *, tail: int = 100, container: str = "main"
    ) -> Logs:
        """The last lines of each pod of the graph, or of one service."""
        return self._run(lambda at: at.logs(graph, service, tail=tail, container=container))

    def scale(self, graph: Graph | str, service: str, replicas: int) -> Scaled:
        """Set the replicas of a service."""
        return self._run(lambda at: at.scale(graph, service, replicas))

    def delete(self, graph: Graph | str, *, seconds: float = 300) -> None:
        """Delete the graph and all that it owns, and wait until it is gone."""
        self._run(lambda at: at.delete(graph, seconds=seconds))

    def chat(
        self,
        graph: Graph | str,
        prompt: str,
        *,
        model: str = "",
        max_tokens: int = 512,
        write: Callable[[str], None] = ignore,
    ) -> Completion:
        """The model's answer, with its times. `write` gets each piece of text as it arrives."""
        return self._run(
            lambda at: at.chat(graph, prompt, model=model, max_tokens=max_tokens, write=write)
        )

    def _run(self, call: Callable[[AsyncCluster], Awaitable[T]]) -> T:
        async def connected() -> T:
            async with self._new() as at:
                return await call(at)

        return _finished(connected)


def _finished(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run the work to its end, also where an event loop is already running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()

    def run() -> T:
        with runner:
            return runner.run(work())

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            return done.result()
        except KeyboardInterrupt:  # of a notebook: stop the thread as well
            loop.call_soon_threadsafe(_cancel_all, loop)
            raise


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
