"""Rows of services: what is desired by the spec, and what the status reports."""

import pytest

from dynamo_graphs.services import Service, services
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.shared.conditions import Stated
from kube_runtime.types.meta import Metadata
from stated import a_component, a_condition, a_graph, a_pod, counts, late

SUSPENDED = a_condition("Suspended", "True", "suspended")


@pytest.mark.parametrize(
    ("stated", "rows"),
    [
        (
            a_graph(services={"w": counts(), "f": counts(readyReplicas=None, availableReplicas=1)}),
            [Service(name, 1, ready=1, updated=1, ready_of_newest=1) for name in ("f", "w")],
        ),
        (a_component(), [Service("w", 1)]),
        (DynamoComponentDeployment(Metadata("chat", "prod")), [Service("chat", 1)]),
        (
            a_graph(SUSPENDED, services={"w": counts(0, replicas=0, updatedReplicas=0)}),
            [Service("w", 0, ready=0, updated=0)],
        ),
        (DynamoModel(Metadata("lora", "prod")), []),
    ],
    ids=["graph", "component without a status", "component without a spec", "suspended", "another kind"],
)
def test_a_row_has_what_is_desired_and_what_is_reported(stated: Stated, rows: list[Service]) -> None:
    assert rows == services(stated)


def test_a_row_has_the_reason_and_the_blocked_pods() -> None:
    (row,) = services(a_graph(services={"w": late("pods_not_ready", a_pod("Error"), message="w: 0/1")}))
    assert ("pods_not_ready", "w: 0/1", "Error") == (row.reason, row.message, row.blocked_pods[0].reason)
