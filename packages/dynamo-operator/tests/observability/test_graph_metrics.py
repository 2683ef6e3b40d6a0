"""What is counted of each graph."""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from dynamo_operator.component.api import (
    ComponentSpec,
    DynamoComponentDeployment,
    ServiceReplicaStatus,
)
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.observability import ObjectGauges
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from kube_runtime.types.meta import Condition, Metadata, R, Resource

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Objects:
    """A cache with these objects."""

    def __init__(self, *objects: Resource) -> None:
        self._objects = objects

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:  # noqa: ARG002  the cache's
        return (each for each in self._objects if isinstance(each, type_))


def lines(*objects: Resource) -> list[str]:
    registry = CollectorRegistry()
    registry.register(ObjectGauges(Objects(*objects), now=lambda: NOW))
    text = generate_latest(registry).decode()
    others = ("#", "dynamo_operator_resources_total{", "dynamo_operator_model_endpoints{")
    return [line for line in text.splitlines() if not line.startswith(others)]


def a_graph(ready: str, reason: str = "", **annotations: str) -> DynamoGraphDeployment:
    moment = "2026-01-02T03:03:05Z"
    return DynamoGraphDeployment(
        Metadata("chat", "lab", annotations=annotations),
        spec=DynamoGraphDeploymentSpec(services={"decode": ComponentSpec(replicas=4)}),
        status=DynamoGraphDeploymentStatus(
            conditions=(Condition("Ready", ready, reason, last_transition_time=moment),),
            services={"decode": ServiceReplicaStatus("Deployment", "chat-decode", 4, 4, 3)},
            gpus=8,
        ),
    )


def test_a_time_that_a_user_wrote_into_a_status_ends_no_scrape() -> None:
    hostile = msgspec.structs.replace(
        a_graph("True"),
        metadata=Metadata("evil", "lab"),
        status=DynamoGraphDeploymentStatus(
            conditions=(
                Condition("Ready", "True", last_transition_time="2026-01-01T00:00:00+99:99"),
            )
        ),
    )
    seconds = [line for line in lines(hostile, a_graph("True")) if "state_seconds" in line]
    assert [
        'dynamo_operator_graph_state_seconds{graph="chat",namespace="lab",ready="true"} 60.0'
    ] == seconds


def test_a_graph_that_waits() -> None:
    assert [
        'dynamo_operator_graph_ready{graph="chat",namespace="lab"} 0.0',
        'dynamo_operator_graph_state_seconds{graph="chat",namespace="lab",ready="false"} 60.0',
        'dynamo_operator_graph_gpus_desired{graph="chat",namespace="lab"} 8.0',
        'dynamo_operator_graph_replicas_desired{graph="chat",namespace="lab",service="decode"} 4.0',
        'dynamo_operator_graph_replicas_ready{graph="chat",namespace="lab",service="decode"} 3.0',
    ] == lines(a_graph("False"))


def test_a_ready_graph() -> None:
    found = lines(a_graph("True"))
    assert 'dynamo_operator_graph_ready{graph="chat",namespace="lab"} 1.0' in found


def test_how_long_a_suspended_graph_is_not_ready_is_not_told() -> None:
    told = [line for line in lines(a_graph("False", "suspended")) if "state_seconds" in line]
    assert [] == told


def test_a_graph_without_a_status_counts_as_not_ready_and_has_no_guesses() -> None:
    bare = DynamoGraphDeployment(Metadata("chat", "lab"))
    assert ['dynamo_operator_graph_ready{graph="chat",namespace="lab"} 0.0'] == lines(bare)


@pytest.mark.parametrize(
    "type_",
    [
        DynamoComponentDeployment,
        DynamoGraphDeployment,
        DynamoGraphDeploymentRequest,
        DynamoGraphDeploymentScalingAdapter,
        DynamoModel,
    ],
)
def test_paused_objects_are_counted_by_kind(type_: type[Resource]) -> None:
    def told(value: str) -> list[str]:
        paused = type_(Metadata("chat", "lab", annotations={"nvidia.com/paused": value}))
        return [line for line in lines(paused) if "paused_objects" in line]

    labels = f'namespace="lab",resource_type="{type_.KIND.name}"'
    assert [f"dynamo_operator_paused_objects{{{labels}}} 1.0"] == told("true")
    assert [] == told("yes")


def test_without_graphs_there_is_nothing() -> None:
    assert [] == lines()
