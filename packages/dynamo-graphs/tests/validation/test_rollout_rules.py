"""Who replaces workers is one of two words, or not said at all."""

import pytest

from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from specs import a_graph, a_service

MODE = "nvidia.com/worker-rollout"


def problems(mode: str) -> list[str]:
    graph = a_graph({"W": a_service()}, metadata={"annotations": {MODE: mode}})
    return [str(problem) for problem in graph_problems(graph, RenderSettings())]


@pytest.mark.parametrize("mode", ["managed", "native"])
def test_the_two_words_are_fine(mode: str) -> None:
    assert [] == problems(mode)


@pytest.mark.parametrize("mode", ["", "Managed", "manged"])
def test_another_word_is_refused(mode: str) -> None:
    (problem,) = problems(mode)
    assert "expected managed or native" in problem
    assert f"metadata.annotations[{MODE}]" in problem
