"""A component keeps the reasons that programs know, and says beside them which pod it is."""

from typing import Any

import pytest

from dynamo_operator.component.api import (
    BlockedPod,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    DynamoComponentDeploymentStatus,
    Multinode,
    ServiceReplicaStatus,
)
from dynamo_operator.component.pods import UNKNOWN, Diagnosis, Readiness
from dynamo_operator.component.status import component_status
from dynamo_operator.shared.conditions import ComponentReason, GraphReason
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.types.meta import Condition, Metadata, OwnerReference

COUNTS = ServiceReplicaStatus("Deployment", "chat-decode", 2, 2, 1, 1)
POD = BlockedPod("x-0", "OOMKilled")
CRASHING = Diagnosis(GraphReason.PODS_CRASHING, "pod x-0 OOMKilled", (POD,), 2)
STARTING = Diagnosis(GraphReason.PODS_NOT_READY, "pod x-0 NotReady", (POD,), 2)
READY = Readiness(is_ready=True, reason=ComponentReason.DEPLOYMENT_READY, message="is ready")


def a_component(
    *, available: str = "False", reason: str | None = None, nodes: int = 1, observed: int = 3
) -> DynamoComponentDeployment:
    owner = OwnerReference("DynamoGraphDeployment", "chat", "u", "nvidia.com/v1alpha1")
    metadata = Metadata("chat-decode", "prod", generation=3, owner_references=(owner,))
    spec = DynamoComponentDeploymentSpec(
        service_name="Decode", multinode=Multinode(nodes) if nodes > 1 else None
    )
    conditions = (Condition("Available", available),)
    service = ServiceReplicaStatus("Deployment", "chat-decode", 2, 2, reason=reason)
    status = DynamoComponentDeploymentStatus(conditions, observed, service=service)
    return DynamoComponentDeployment(metadata, spec, status)


def late(**state: bool) -> Readiness:
    return Readiness(
        is_ready=False,
        reason=ComponentReason.DEPLOYMENT_NOT_READY,
        message="Deployment is not ready: 1 of 2",
        **state,
    )


def of(
    readiness: Readiness, diagnosis: Diagnosis = UNKNOWN, **component: Any
) -> DynamoComponentDeploymentStatus:
    return component_status(a_component(**component), readiness, COUNTS, (), diagnosis)


def service_of(status: DynamoComponentDeploymentStatus) -> ServiceReplicaStatus:
    assert status.service is not None
    return status.service


def test_the_condition_keeps_its_reason_and_names_the_pod() -> None:
    status = of(late(), CRASHING)
    condition = status.conditions[1]
    assert ("Available", "DeploymentNotReady") == (condition.type, condition.reason)
    assert "Deployment is not ready: 1 of 2; pod x-0 OOMKilled" == condition.message
    service = service_of(status)
    assert ("pods_crashing", "pod x-0 OOMKilled", 2, "prod-chat") == (
        service.reason,
        service.message,
        service.scheduled_replicas,
        service.runtime_namespace,
    )
    assert ["x-0"] == [pod.name for pod in service.blocked_pods]


def test_a_hundred_refused_objects_fit_into_a_message() -> None:
    refused = [
        Blocked(Obstacle.REJECTED, "LeaderWorkerSet", f"chat-{index}", f"{index}: {'quota ' * 60}")
        for index in range(100)
    ]
    status = component_status(a_component(), late(), COUNTS, refused)
    message = status.conditions[1].message
    assert message.startswith("0: quota")
    assert "97 more" in message
    assert len(message) <= 1024


def test_a_component_that_is_ready_explains_nothing() -> None:
    service = service_of(of(READY, CRASHING))
    assert (None, None, ()) == (service.reason, service.message, service.blocked_pods)
    assert 2 == service.scheduled_replicas


def test_what_is_not_known_is_absent() -> None:
    service = service_of(of(late()))
    assert (None, None) == (service.reason, service.scheduled_replicas)
    assert "chat-decode: Deployment is not ready: 1 of 2" == service.message


@pytest.mark.parametrize(
    ("component", "readiness", "expected"),
    [
        ({}, late(is_rolling=True), "pods_not_ready"),
        ({}, late(is_rolling=True, has_older=True), "updating"),
        ({"available": "True"}, late(is_rolling=True), "updating"),
        ({"available": "True"}, late(), "pods_not_ready"),
        ({"reason": "updating", "observed": 3}, late(), "updating"),
        ({"reason": "updating", "observed": 2}, late(is_rolling=True), "updating"),
        ({"reason": "updating", "observed": 2}, late(), "pods_not_ready"),
    ],
)
def test_an_update_is_distinguished_from_pods_that_do_not_get_ready(
    component: dict[str, Any], readiness: Readiness, expected: str
) -> None:
    assert expected == service_of(of(readiness, STARTING, **component)).reason


def test_pods_that_crash_during_an_update_are_not_hidden_by_it() -> None:
    readiness = late(is_rolling=True, has_older=True)
    assert "pods_crashing" == service_of(of(readiness, CRASHING)).reason


def test_pods_are_selected_by_their_workload_and_of_several_nodes_only_leaders_count() -> None:
    one = of(READY)
    assert {"nvidia.com/selector": "chat-decode"} == one.pod_selector
    assert "nvidia.com/selector=chat-decode" == one.selector
    several = of(READY, nodes=2)
    assert "role" not in several.pod_selector
    assert (several.selector or "").endswith(",role=leader")
