"""An object is ready if its summary condition is true for its newest spec."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.validate import component_problems
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.graph.validate import graph_inoperative, graph_problems
from dynamo_operator.models.api import DynamoModel, DynamoModelStatus
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestStatus
from dynamo_operator.shared.conditions import Stated, failed_status, in_v1beta1, is_behind, is_ready
from dynamo_operator.versions.conversion import ConversionError, convert
from former_fields import former_fields_in
from kube_runtime.types.meta import Condition, Metadata
from kube_runtime.wire import decode
from reviews.asking import SETTINGS
from reviews.rows import ROWS, Row

TYPES: dict[str, tuple[Any, Any]] = {
    "DynamoGraphDeployment": (
        DynamoGraphDeployment,
        lambda graph: [*graph_problems(graph, SETTINGS), *graph_inoperative(graph)],
    ),
    "DynamoComponentDeployment": (
        DynamoComponentDeployment,
        lambda component: component_problems(component, SETTINGS),
    ),
}
PRESERVED = re.compile(r"metadata\.annotations\[nvidia\.com/.*")
"""A problem of what v1beta1 has no field for, and an annotation preserves."""


def rows_of_components() -> Iterator[Row]:
    for row in ROWS:
        try:
            converted = row.new["kind"] in TYPES and convert(row.new, "nvidia.com/v1beta1")
        except ConversionError:  # what the schema refuses first
            continue
        if converted:
            yield row


@pytest.mark.parametrize("row", [*rows_of_components()], ids=lambda row: row.name)
def test_a_status_in_v1beta1_names_no_field_that_is_not_there(row: Row) -> None:
    type_, find = TYPES[row.new["kind"]]
    resource = decode(type_, msgspec.json.encode(row.new))
    texts = [str(problem) for problem in in_v1beta1(resource, find(resource))]
    assert not [text for text in texts if former_fields_in(PRESERVED.sub("", text))]


NEWEST = Metadata("chat", generation=4)
DELETED = Metadata("chat", generation=4, deletion_timestamp="2026-01-01T00:00:00Z")


def graph(
    status: str, observed: int | None, *, seen: int, metadata: Metadata = NEWEST
) -> DynamoGraphDeployment:
    ready = Condition("Ready", status, "r", "m", observed_generation=observed)
    reported = DynamoGraphDeploymentStatus(conditions=(ready,), observed_generation=seen)
    return DynamoGraphDeployment(metadata, status=reported)


def model(status: str, observed: int) -> DynamoModel:
    ready = Condition("EndpointsReady", status, "r", "m", observed_generation=observed)
    return DynamoModel(NEWEST, status=DynamoModelStatus(conditions=(ready,)))


def request(observed: int) -> DynamoGraphDeploymentRequest:
    succeeded = Condition("Succeeded", "True", "r", "m", observed_generation=observed)
    reported = DynamoGraphDeploymentRequestStatus(conditions=(succeeded,))
    return DynamoGraphDeploymentRequest(NEWEST, status=reported)


@pytest.mark.parametrize(
    ("stated", "ready", "behind"),
    [
        (graph("True", 4, seen=4), True, False),
        (graph("True", 3, seen=3), False, True),  # of the spec before
        (graph("False", 4, seen=4), False, False),
        (graph("False", 4, seen=3), False, False),  # the newest spec was refused
        (graph("True", None, seen=4), True, False),  # of an operator that writes no generation there
        (graph("True", None, seen=3), False, True),
        (graph("True", 4, seen=4, metadata=DELETED), False, False),
        (DynamoGraphDeployment(NEWEST), False, True),
        (model("True", 4), True, False),
        (model("True", 3), False, True),
        (request(1), True, False),  # it follows the spec that was accepted
        (DynamoGraphDeploymentRequest(NEWEST), False, True),
    ],
)
def test_a_condition_counts_for_the_spec_that_it_is_about(
    stated: Stated, *, ready: bool, behind: bool
) -> None:
    assert (ready, behind) == (is_ready(stated), is_behind(stated))


def test_a_request_that_is_held_keeps_the_generation_of_its_last_report() -> None:
    held = failed_status(DynamoGraphDeploymentRequest, ("Succeeded",), request(1).status, 4, "r", "m")
    assert 1 == held.conditions[0].observed_generation
