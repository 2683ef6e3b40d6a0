"""The interface of the cluster clients that the actions of graphs use.

`dynamoctl.client` implements it, without a dependency of this package on dynamoctl; a test compares the two.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from kube_runtime.kind import Object

if TYPE_CHECKING:
    from dynamo_graphs.graph import Graph
    from dynamo_graphs.objects import ApiObject

Seen = Callable[["Graph"], object]
"""A function that is called with the graph whenever it changes in the cluster, such as `print`."""


class Applied(Protocol):
    """An applied object; `verb` is `created`, `configured` or `unchanged`."""

    @property
    def verb(self) -> str: ...
    @property
    def body(self) -> Object: ...


class Effect(Protocol):
    """An effect on the pods of a service, which is restarted, scaled, created or deleted."""

    @property
    def service(self) -> str: ...
    @property
    def verb(self) -> str: ...
    @property
    def text(self) -> str: ...


class Change(Protocol):
    """The result of a diff: the `verb` `create`, `change` or `unchanged`, lines, and effects on pods."""

    @property
    def verb(self) -> str: ...
    @property
    def lines(self) -> Sequence[str]: ...
    @property
    def effects(self) -> Sequence[Effect]: ...


class Explanation(Protocol):
    """The state of a graph, the summary first, and advice."""

    @property
    def said(self) -> Sequence[str]: ...
    @property
    def advice(self) -> Sequence[str]: ...


class Logs(Protocol):
    """Log lines of pods; `unread` has the errors of pods whose log could not be read."""

    @property
    def unread(self) -> Sequence[str]: ...


class Scaled(Protocol):
    """What was written, as a sentence, and the obstacles that keep it from taking effect."""

    @property
    def said(self) -> str: ...
    @property
    def obstacles(self) -> Sequence[str]: ...


class Completion(Protocol):
    """A model's answer, and the seconds until its first token and its last."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def first_seconds(self) -> float | None: ...
    @property
    def seconds(self) -> float: ...


class ClusterClient(Protocol):
    """A cluster, such as `dynamoctl.client.Cluster`."""

    def apply(self, wanted: "ApiObject", *, force: bool = False) -> Applied: ...
    def diff(self, wanted: "ApiObject", *, force: bool = False) -> Change: ...
    def wait(
        self, graph: "Graph | str", *, seconds: float = 1200, seen: Seen | None = None
    ) -> "Graph": ...
    def why(self, graph: "Graph | str") -> Explanation: ...
    def logs(
        self, graph: "Graph | str", service: str = "", *, tail: int = 100, container: str = "main"
    ) -> Logs: ...
    def scale(self, graph: "Graph | str", service: str, replicas: int) -> Scaled: ...
    def delete(self, graph: "Graph | str", *, seconds: float = 300) -> None: ...
    def chat(
        self, graph: "Graph | str", prompt: str, *, model: str = "", max_tokens: int = 512
    ) -> Completion: ...


class AsyncClusterClient(Protocol):
    """A cluster for asynchronous programs, such as `dynamoctl.client.AsyncCluster`."""

    async def wait(
        self, graph: "Graph | str", *, seconds: float = 1200, seen: Seen | None = None
    ) -> "Graph": ...


def current() -> ClusterClient:
    """The cluster of kubectl's current context.

    Raises:
        ImportError: dynamoctl is not installed.
    """
    return cast("ClusterClient", _client("Cluster")())


def connecting() -> AbstractAsyncContextManager[AsyncClusterClient]:
    """A connection to the cluster of kubectl's current context, for `async with`.

    Raises:
        ImportError: dynamoctl is not installed.
    """
    return cast("AbstractAsyncContextManager[AsyncClusterClient]", _client("AsyncCluster")())


def _client(name: str) -> Callable[[], object]:
    """Return a class of `dynamoctl.client`, which depends on this package and is imported on demand.

    Raises:
        ImportError: dynamoctl is not installed.
    """
    try:
        module = import_module("dynamoctl.client")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "dynamoctl":
            raise
        message = "actions on a cluster need the package dynamoctl, which is not installed"
        raise ImportError(message, name="dynamoctl") from error
    return cast("Callable[[], object]", getattr(module, name))
