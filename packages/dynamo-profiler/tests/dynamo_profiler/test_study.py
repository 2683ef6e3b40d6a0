"""The profiler as one call: the same answer as the program, in a form for notebooks."""

from dataclasses import replace

import pytest

from dynamo_graphs import Latency
from dynamo_profiler import Refusal
from dynamo_profiler.run import Progress
from dynamo_profiler.spelling import SPELLINGS
from dynamo_profiler.study import Options, study

MODEL, GPU = "Qwen/Qwen3-32B", "h200_sxm"
TARGETS = Latency(first_token_ms=300, next_token_ms=20, input_tokens=4000, output_tokens=500)


def test_candidates_are_rows_and_pictures_and_the_choice_is_a_valid_graph() -> None:
    steps: list[Progress] = []
    found = study(MODEL, gpu=GPU, latency=TARGETS, seen=steps.append, engine="formulas", name="chat")
    page = found.html()
    assert "chat" == found.graph.name
    assert () == found.graph.problems()
    assert len(found.candidates) == len(found.rows()) > len(found.cheapest) > 0
    assert all(entry.meets for entry in found.cheapest if entry.chosen != "if exact")
    assert all(line in page.replace("<code>", "`").replace("</code>", "`") for line in found.lines)
    assert found.svg() in page
    assert "milliseconds to the first token" in page
    assert "milliseconds between two tokens" in page
    layouts = {(candidate.mode, candidate.layout) for candidate in found.candidates}
    # One line along the front, and one for each layout in each of the two pictures against load.
    assert 1 + 2 * len(layouts) == page.count("<polyline")
    assert "<body" not in found._repr_html_()
    assert steps[0].message == found.note


def test_options_reach_the_profiler() -> None:
    apart = study(MODEL, gpu=GPU, latency=TARGETS, engine="formulas", mode="disaggregated")
    assert 2 == len(apart.choice.roles)
    busy = study(MODEL, gpu=GPU, latency=TARGETS, engine="formulas", requests_per_second=50)
    assert busy.choice.gpus > study(MODEL, gpu=GPU, latency=TARGETS, engine="formulas").choice.gpus


def test_messages_name_the_arguments() -> None:
    with pytest.raises(Refusal, match=r"^first_token_ms of 1 ms cannot be met"):
        study(MODEL, gpu=GPU, latency=replace(TARGETS, first_token_ms=1), engine="formulas")
    with pytest.raises(Refusal, match=r'^gpu: unknown GPU "h300" \(expected one of '):
        study(MODEL, gpu="h300", latency=TARGETS)
    with pytest.raises(Refusal, match=r"provide its config\.json with model_config$"):
        study("acme/secret", gpu=GPU, latency=TARGETS)


def test_every_option_of_a_study_has_its_name_in_messages() -> None:
    """Options that no configuration has, such as the name of the graph, are in no message."""
    of_study = {argument for _, argument in SPELLINGS.values() if argument}
    assert {*Options.__annotations__} - {"name", "precision"} <= of_study
