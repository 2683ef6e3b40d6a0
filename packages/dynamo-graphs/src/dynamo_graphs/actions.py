"""Actions of a graph in a cluster. Each method calls that of the same name of the cluster client."""

import sys
from typing import TYPE_CHECKING, cast

from dynamo_graphs.objects import ApiObject

if TYPE_CHECKING:
    from dynamo_graphs.clusters import (
        AsyncClusterClient,
        ClusterClient,
        Completion,
        Explanation,
        Logs,
        Scaled,
        Seen,
    )
    from dynamo_graphs.graph import Graph


class GraphActions(ApiObject):
    """Actions on a graph in a cluster: by default that of kubectl's current context.

    They need the package dynamoctl, else they raise `ImportError`. In Jupyter they work as they do elsewhere.
    """

    @property
    def _graph(self) -> "Graph":
        """The graph: `Graph` is the only subclass."""
        return cast("Graph", self)

    def wait(
        self,
        cluster: "ClusterClient | None" = None,
        *,
        seconds: float = 1200,
        seen: "Seen | None" = None,
    ) -> "Graph":
        """The graph with its status once it is ready; `seen=print` shows the progress, Jupyter draws it.

        Raises: `dynamoctl.client.NotReady` with the reason, after that many seconds.
        """
        seen = seen or redrawn(self._graph)
        return (cluster or _current()).wait(self._graph, seconds=seconds, seen=seen)

    async def wait_async(
        self,
        cluster: "AsyncClusterClient | None" = None,
        *,
        seconds: float = 1200,
        seen: "Seen | None" = None,
    ) -> "Graph":
        """As `wait`, for asynchronous programs; `cluster` is an `AsyncCluster` with a connection.

        Raises: as `wait`.
        """
        seen = seen or redrawn(self._graph)
        if cluster is not None:
            return await cluster.wait(self._graph, seconds=seconds, seen=seen)
        from dynamo_graphs.clusters import connecting

        async with connecting() as connected:
            return await connected.wait(self._graph, seconds=seconds, seen=seen)

    def why(self, cluster: "ClusterClient | None" = None) -> "Explanation":
        """Why the graph is not ready, and what to do about it, as `dynamoctl why` prints it."""
        return (cluster or _current()).why(self._graph)

    def logs(
        self,
        service: str = "",
        cluster: "ClusterClient | None" = None,
        *,
        tail: int = 100,
        container: str = "main",
    ) -> "Logs":
        """The last lines of each pod of the graph, or of one service; `tail` -1 is all of them."""
        return (cluster or _current()).logs(self._graph, service, tail=tail, container=container)

    def scale(
        self, service: str, replicas: int, cluster: "ClusterClient | None" = None
    ) -> "Scaled":
        """Set the replicas of a service in the cluster, as `dynamoctl scale` does; not in this object."""
        return (cluster or _current()).scale(self._graph, service, replicas)

    def delete(self, cluster: "ClusterClient | None" = None, *, seconds: float = 300) -> None:
        """Delete the graph in the cluster with all that belongs to it, and wait until it is gone.

        Raises: `TimeoutError` if it is still there after that many seconds.
        """
        (cluster or _current()).delete(self._graph, seconds=seconds)

    def chat(
        self,
        prompt: str,
        cluster: "ClusterClient | None" = None,
        *,
        model: str = "",
        max_tokens: int = 512,
    ) -> "Completion":
        """The model's answer to a prompt, with its times; by default of the only model that is served."""
        return (cluster or _current()).chat(self._graph, prompt, model=model, max_tokens=max_tokens)


def redrawn(graph: "Graph") -> "Seen | None":
    """In a Jupyter kernel, draw the graph and return a function that updates the drawing; else None.

    The display must be created in the thread of the cell; updates may come from other threads.
    """
    jupyter = sys.modules.get("IPython")
    if jupyter is None or not hasattr(jupyter.get_ipython(), "kernel"):
        return None
    shown: Seen = jupyter.display.display(graph, display_id=True).update
    return shown


def _current() -> "ClusterClient":
    from dynamo_graphs.clusters import current

    return current()
