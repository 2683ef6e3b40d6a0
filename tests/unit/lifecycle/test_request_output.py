"""What profiling has left: read whatever it is, and refused in words that name the place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.lifecycle.request_output import (
    BadOutput,
    Found,
    additional,
    additional_text,
    found,
    progress,
)

GRAPH = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "generated", "creationTimestamp": None},
    "spec": {"services": {"Frontend": {"componentType": "frontend", "unknown": {"kept": 1}}}},
    "status": {},
}
CURVES = {"kind": "ConfigMap", "metadata": {"name": "curves"}, "data": {"a": "1"}}


def read(text: str, **more: bool) -> Found:
    """What is found in the results."""
    data = {"config_with_planner.yaml": text, "mocker_config_with_planner.yaml": text}
    return found(data, "dgdr-output-r", is_mocked=more.get("is_mocked", False), name="r")


def stream(*documents: object) -> str:
    """Documents as one text."""
    return "\n---\n".join(map(json.dumps, documents))


def bomb() -> str:
    """A short text that stands for a billion values."""
    lines = ["kind: X", "a: &a0 [x, x, x, x, x, x, x, x, x]"]
    for at in range(1, 9):
        lines.append(f"b{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        stream(GRAPH, CURVES),
        stream(CURVES, GRAPH),
        "---\n" + stream(GRAPH, CURVES),
        stream(None, "text", {"no": "kind"}, GRAPH, CURVES),
    ],
)
def test_the_graph_is_found_wherever_it_stands(text: str) -> None:
    result = read(text)
    assert "generated" == result.graph["metadata"]["name"]
    assert ["curves"] == [each["metadata"]["name"] for each in result.config_maps]
    assert {"name": "generated"} == result.graph["metadata"]
    assert "status" not in result.graph


def test_a_field_that_we_do_not_know_survives() -> None:
    services = read(stream(GRAPH)).graph["spec"]["services"]
    assert {"kept": 1} == services["Frontend"]["unknown"]


def test_the_last_of_several_graphs_counts() -> None:
    other = {**GRAPH, "metadata": {"name": "last"}}
    assert "last" == read(stream(GRAPH, other)).graph["metadata"]["name"]


def test_a_graph_without_a_name_gets_that_of_the_request() -> None:
    assert "r" == read(stream({**GRAPH, "metadata": None})).graph["metadata"]["name"]


def test_other_kinds_are_left_out_and_named() -> None:
    service = {"kind": "Service", "metadata": {"name": "x"}}
    result = read(stream(GRAPH, service, {"kind": "ConfigMap"}))
    assert ("Service x", "ConfigMap") == result.ignored
    assert () == result.config_maps
    assert "Service x" in result.warnings[0]


def test_a_date_is_a_text_and_a_number_a_key() -> None:
    text = "kind: ConfigMap\nmetadata: {name: d}\ndata: {2: 2026-11-21, yes: a}\n---\n" + stream(
        GRAPH
    )
    assert {"2": "2026-11-21", "true": "a"} == read(text).config_maps[0]["data"]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "no DynamoGraphDeployment found"),
        ("a: [", "it is no YAML"),
        ("\t- a", "it is no YAML"),
        (stream({**GRAPH, "spec": {"services": []}}), "failed to convert"),
        (stream({**GRAPH, "spec": None}), "failed to convert"),
        ("[" * 100_000, "failed to extract DGD"),
        ("kind: X\na: &a [*a]", "more than 200000 values"),
        (bomb(), "more than 200000 values"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_cause(text: str, cause: str) -> None:
    with pytest.raises(BadOutput, match=r"config_with_planner\.yaml") as refused:
        read(text)
    assert cause in str(refused.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(BadOutput, match=r"key mocker_config_with_planner\.yaml not found"):
        found({}, "dgdr-output-r", is_mocked=True, name="r")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(BadOutput, match=r"config_with_planner\.yaml"):
        read(text)


@given(st.text(max_size=200))
def test_any_status_is_read(text: str) -> None:
    assert len(progress({"profiler_status.yaml": text}).message) <= 200


def test_config_maps_come_back_from_the_text_that_keeps_them() -> None:
    kept = additional_text((CURVES, {**CURVES, "metadata": {"name": "more"}}))
    assert ["curves", "more"] == [each["metadata"]["name"] for each in additional(kept)]


def test_config_maps_that_no_annotation_can_hold_are_refused() -> None:
    large = {**CURVES, "data": {"a": "x" * 250_001}}
    with pytest.raises(BadOutput, match=r"exceeds maximum annotation size \(250000 bytes\)"):
        additional_text((large,))


def test_new_names_reach_the_config_maps() -> None:
    result = read(stream(GRAPH, CURVES))
    renamed = result.renamed(result.graph, {"curves": "curves-r"})
    assert ["curves-r"] == [each["metadata"]["name"] for each in renamed.config_maps]
