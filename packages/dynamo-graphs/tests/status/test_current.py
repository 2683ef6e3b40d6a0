"""The counts of a component are current when nothing below it is still to see its newest spec."""

import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import (
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    DynamoComponentDeploymentStatus,
)
from dynamo_operator.graph.status import is_current
from kube_runtime.types.meta import Condition, Metadata

NEWEST = 4


def component(
    status: str, reason: str, *, replicas: int = 0, observed: int = NEWEST
) -> DynamoComponentDeployment:
    available = Condition("Available", status, reason, "its message", observed_generation=observed)
    return DynamoComponentDeployment(
        Metadata("chat-decode", generation=NEWEST),
        DynamoComponentDeploymentSpec(replicas=replicas),
        DynamoComponentDeploymentStatus((available,), observed),
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (component("True", "DeploymentReady"), True),
        (component("True", "DeploymentReady", observed=NEWEST - 1), False),
        (component("False", "DeploymentNotReady"), False),
        (component("False", "SomeLeaderWorkerSetsNotReady"), False),
        (component("False", "DeploymentNotReady", replicas=1), True),
        (component("False", "name_conflict"), True),
        (DynamoComponentDeployment(Metadata("chat-decode", generation=1)), False),
    ],
)
def test_whether_counts_are_current(given: DynamoComponentDeployment, expected: bool) -> None:
    assert expected == is_current(given)


def test_of_a_paused_component_nothing_newer_is_waited_for() -> None:
    silent = DynamoComponentDeployment(
        Metadata("chat-decode", generation=NEWEST, annotations={labels.PAUSED: "true"})
    )
    assert is_current(silent)
