"""An object is ready if its summary condition is true for its newest spec."""

import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.models.api import DynamoModel, DynamoModelStatus
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestStatus
from dynamo_operator.shared.conditions import Stated, failed_status, is_behind, is_ready
from kube_runtime.types.meta import Condition, Metadata

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
