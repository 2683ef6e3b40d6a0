"""Waiting in Jupyter replaces one drawing; elsewhere nothing is drawn. `tests/notebooks` runs a real one."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from dynamo_graphs import Graph
from dynamo_graphs.graph import redrawn

GRAPH = Graph("chat").frontend()


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
    later = GRAPH.worker("decode", model="Qwen/Qwen3-8B")
    seen(later)
    assert [GRAPH, ("updated", later)] == shown


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_a_shell_without_a_kernel_has_none(shell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setitem(sys.modules, "IPython", jupyter(shown, shell))
    assert redrawn(GRAPH) is None
    assert [] == shown


def test_programs_without_jupyter_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert redrawn(GRAPH) is None
