"""A graph says which of its fields have no effect, and only then."""

from typing import Any

import msgspec

from dynamo_operator.api.component import ComponentSpec, ScalingAdapterSwitch
from dynamo_operator.api.graph import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
    Restart,
)
from dynamo_operator.kube.types.meta import Condition, Metadata
from dynamo_operator.status.graph import graph_status, refused_status
from dynamo_operator.validation import Problem

SWITCHED = ComponentSpec(scaling_adapter=ScalingAdapterSwitch(enabled=True))
OFF = ComponentSpec(scaling_adapter=ScalingAdapterSwitch(enabled=False))


def graph(*stored: Condition, **spec: Any) -> DynamoGraphDeployment:
    status = DynamoGraphDeploymentStatus(conditions=stored)
    metadata = Metadata("chat", generation=2)
    return DynamoGraphDeployment(metadata, DynamoGraphDeploymentSpec(**spec), status)


def limited(graph: DynamoGraphDeployment) -> list[tuple[str, str, str]]:
    """Status, reason and message of the condition, if it is there."""
    conditions = graph_status(graph, {}, ())["conditions"]
    found = [each for each in conditions if each.type == "Limited"]
    return [(each.status, each.reason, each.message) for each in found]


def test_a_graph_of_which_everything_is_done_has_no_such_condition() -> None:
    assert [] == limited(graph(services={"A": OFF}))


def test_each_field_without_effect_is_named() -> None:
    found = limited(graph(services={"B": SWITCHED, "A": SWITCHED, "C": OFF}, restart=Restart("1")))
    fields = "spec.restart, spec.services.A.scalingAdapter.enabled, spec.services.B.scalingAdapter.enabled"
    message = f"This release of the operator does nothing about: {fields}"
    assert [("True", "fields_without_effect", message)] == found


def test_the_condition_is_taken_back() -> None:
    said = Condition("Limited", "True", "fields_without_effect", "m")
    message = "All fields that are set have an effect"
    expected = [("False", "all_fields_have_an_effect", message)]
    assert expected == limited(graph(said))
    taken_back = msgspec.structs.replace(said, status="False")
    assert expected == limited(graph(taken_back))


def test_a_refused_graph_says_it_too() -> None:
    status = refused_status(graph(restart=Restart("1")), [Problem("spec", "is wrong")])
    assert ["Ready", "Limited"] == [each.type for each in status["conditions"]]
