"""Actions on graphs ask a cluster, and say what is missing where none can be asked."""

import sys
from collections.abc import Callable

import pytest

from dynamo_graphs import Graph, Model, objects

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
