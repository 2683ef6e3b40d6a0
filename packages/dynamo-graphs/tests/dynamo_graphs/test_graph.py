"""Actions on graphs ask a cluster, and say what is missing where none can be asked."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from dynamo_graphs import Graph, Model, objects
from dynamo_graphs.graph import redrawn

GRAPH = Graph("chat").frontend().worker("Decode", model="Qwen/Qwen3-0.6B")
ACTIONS: dict[str, Callable[[], object]] = {
    "diff": GRAPH.diff,
    "apply": Model.lora("l", model="l", base="b", uri="hf://l/l").apply,
    "wait": GRAPH.wait,
    "why": GRAPH.why,
    "logs": GRAPH.logs,
    "scale": lambda: GRAPH.scale("Decode", 2),
    "delete": GRAPH.delete,
    "chat": lambda: GRAPH.chat("Hello"),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_without_dynamoctl_an_action_names_it(action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dynamoctl", None)
    monkeypatch.delitem(sys.modules, "dynamoctl.client", raising=False)
    with pytest.raises(ImportError, match="need the package dynamoctl, which is not installed"):
        ACTIONS[action]()


def test_a_dependency_that_is_missing_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"{name} needs aiohttp", name="aiohttp")

    monkeypatch.setattr(objects, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match="client needs aiohttp"):
        GRAPH.apply()


GRAPH_REDRAWN = Graph("chat").frontend()


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
    seen = redrawn(GRAPH_REDRAWN)
    assert seen is not None
    later = GRAPH_REDRAWN.worker("decode", model="Qwen/Qwen3-8B")
    seen(later)
    assert [GRAPH_REDRAWN, ("updated", later)] == shown


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_a_shell_without_a_kernel_has_none(shell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setitem(sys.modules, "IPython", jupyter(shown, shell))
    assert redrawn(GRAPH_REDRAWN) is None
    assert [] == shown


def test_programs_without_jupyter_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert redrawn(GRAPH_REDRAWN) is None
