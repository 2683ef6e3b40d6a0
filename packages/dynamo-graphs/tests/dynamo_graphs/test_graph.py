"""Actions on graphs are the methods of a cluster, which says what is missing where none can be asked."""

import inspect
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from dynamo_graphs import AsyncCluster, Cluster, Graph
from dynamo_graphs.graph import redrawn
from dynamo_graphs.reader import Missing
from scripted.connections import connect_to
from simulated.server import Server

GRAPH = Graph("chat").frontend().worker("Decode", model="Qwen/Qwen3-0.6B")
ARGUMENTS: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {
    "diff": ((), {}),
    "apply": ((), {"force": True}),
    "wait": ((), {"seconds": 7.0, "seen": print}),
    "get": ((), {}),
    "why": ((), {}),
    "events": ((), {}),
    "suspend": ((), {}),
    "resume": ((), {}),
    "restart": ((), {}),
    "history": ((), {}),
    "undo": ((3,), {"dry_run": True}),
    "url": ((), {}),
    "logs": (("Decode",), {"tail": 3, "container": "sidecar"}),
    "scale": (("Decode", 2), {}),
    "delete": ((), {"seconds": 7.0}),
    "chat": (("Hello",), {"model": "qwen", "max_tokens": 9}),
}


def parameters(method: Callable[..., object], but: str) -> list[tuple[str, object]]:
    found = inspect.signature(method).parameters.values()
    return [(each.name, each.default) for each in found if each.name not in ("self", but)]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_action_is_the_method_of_the_cluster(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    def called(self: Cluster, *given: object, **options: object) -> object:
        calls.append((self, given, options))
        return calls

    own, theirs = getattr(Graph, name), getattr(Cluster, name)
    first = next(each for each in inspect.signature(theirs).parameters if each != "self")
    left = [each for each in parameters(theirs, first) if each[0] != "write"]
    assert parameters(own, "cluster") == left
    monkeypatch.setattr(Cluster, name, called)
    given, options = ARGUMENTS[name]
    cluster = Cluster(namespace="ml")
    own(GRAPH, *given, cluster=cluster, **options)
    own(GRAPH, *given, **options)
    (asked, positional, named), (default, *same) = calls
    assert (asked, positional, named) == (cluster, (GRAPH, *given), options)
    assert isinstance(default, Cluster)
    assert same == [positional, named]


async def test_wait_async_waits_on_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    async def wait(self: AsyncCluster, graph: Graph, **options: object) -> Graph:
        calls.append((self, options))
        return graph

    monkeypatch.setattr(AsyncCluster, "wait", wait)
    given = AsyncCluster(namespace="ml")
    assert GRAPH == await GRAPH.wait_async(given, seconds=7, seen=print)
    assert calls == [(given, {"seconds": 7, "seen": print})]


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    for name in ("dynamo_graphs.reader", "kube_runtime.client.connect", "kube_runtime.client.http"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=r"dynamo-graphs\[cluster\]'` in a clone: .*aiohttp"):
        GRAPH.apply()


async def test_a_call_in_a_thread_with_an_event_loop_runs_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    connect_to(Server(), monkeypatch)
    assert [] == Cluster(namespace="ml").graphs()
    with pytest.raises(Missing, match="is not served"):
        Cluster(namespace="ml").get(GRAPH)


def jupyter(shown: list[object], shell: object) -> ModuleType:
    """A module IPython with that shell; what it displays and updates is added to `shown`."""

    def display(graph: Graph, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(graph)
        return SimpleNamespace(update=lambda later: shown.append(("updated", later)))

    found = ModuleType("IPython")
    vars(found).update(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    return found


def test_a_kernel_has_one_display_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setitem(sys.modules, "IPython", jupyter(shown, SimpleNamespace(kernel=1)))
    seen = redrawn(GRAPH)
    assert seen is not None
    later = GRAPH.without("Decode")
    seen(later)
    assert [GRAPH, ("updated", later)] == shown


def test_shells_without_a_kernel_and_programs_without_jupyter_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[object] = []
    for shell in (None, SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "IPython", jupyter(shown, shell))
        assert redrawn(GRAPH) is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert redrawn(GRAPH) is None
    assert [] == shown
