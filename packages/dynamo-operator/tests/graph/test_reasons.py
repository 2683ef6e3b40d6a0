"""A graph that is not ready names one cause and its progress, in stable words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from dynamo_graphs.schema import status_problems
from dynamo_operator.component.api import (
    BlockedPod,
    ComponentSpec,
    Multinode,
    ResourceItem,
    Resources,
    ServiceReplicaStatus,
)
from dynamo_operator.component.pods import Diagnosis
from dynamo_operator.component.readiness import diagnosed
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
    ProgressStatus,
)
from dynamo_operator.graph.service import ServiceView
from dynamo_operator.graph.status import GraphStatus, goal_hash, graph_status
from kube_runtime.apply.status import with_transition_times
from kube_runtime.types.meta import Condition, Metadata, Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOUR_GPUS = Resources(limits=ResourceItem(gpu="4"))
SERVICES = {
    "Decode": ComponentSpec(replicas=4, resources=FOUR_GPUS),
    "Prefill": ComponentSpec(resources=FOUR_GPUS, multinode=Multinode(2)),
    "Frontend": ComponentSpec(),
}


def a_graph(**status: Any) -> DynamoGraphDeployment:
    spec = DynamoGraphDeploymentSpec(services=SERVICES, progress_deadline_seconds=600)
    stored = DynamoGraphDeploymentStatus(**status)
    return DynamoGraphDeployment(Metadata("chat", generation=2), spec, stored)


def reached(ready: int, since: str = "2025-12-31T23:00:00Z") -> ProgressStatus:
    return ProgressStatus(ready, since, 2, goal_hash(a_graph(), is_suspending=False))


def was(ready: str, reason: str) -> tuple[Condition, ...]:
    return (Condition("Ready", ready, reason, observed_generation=1),)


def counts(ready: int = 3, **fields: Any) -> ServiceReplicaStatus:
    return ServiceReplicaStatus("Deployment", "chat-decode", 4, 4, ready, ready, **fields)


def late(
    reason: str | None = None, message: str | None = None, *, ready: int = 3, **view: Any
) -> ServiceView:
    counted = counts(ready, reason=reason, message=message)
    return ServiceView("chat-decode", counted, 4, obstacles=("3 of 4 are available",), **view)


READY = ServiceView("chat-frontend", counts(1), 1)


def of(graph: DynamoGraphDeployment | None = None, **services: ServiceView) -> GraphStatus:
    return graph_status(graph or a_graph(), services, (), now=NOW)


def reason(status: GraphStatus) -> str:
    reason: str = status.status.conditions[0].reason
    return reason


def message(status: GraphStatus) -> str:
    message: str = status.status.conditions[0].message
    return message


def progressing(status: GraphStatus) -> tuple[str, str]:
    condition = status.status.conditions[-1]
    assert "Progressing" == condition.type
    assert 2 == condition.observed_generation
    return condition.status, condition.reason


def test_one_service_gives_the_graph_its_reason() -> None:
    status = of(Decode=late("image_pull_failed", "pod x-0 no"), Frontend=READY)
    assert "image_pull_failed" == reason(status)
    assert "Decode: 3/4 ready; pod x-0 no" == message(status)
    assert "1/2" == status.status.ready_services


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("pods_crashing", "pods_crashing"),
        ("config_error", "mixed_not_ready_reasons"),
        (None, "pods_crashing"),
    ],
)
def test_several_services_give_one_reason(other: str | None, expected: str) -> None:
    status = of(Decode=late("pods_crashing", "a"), Prefill=late(other, "b", ready=0))
    assert expected == reason(status)
    assert "Decode: 3/4 ready; a | Prefill: 0/4 ready; b" == message(status)


def test_without_a_known_cause_objects_are_named() -> None:
    status = of(Decode=late())
    assert "some_resources_are_not_ready" == reason(status)
    assert "Resources not ready: chat-decode: 3 of 4 are available" == message(status)


STARTING = "pods_not_ready"
BEFORE = {"Decode": counts(reason="updating")}


@pytest.mark.parametrize(
    ("graph", "service", "expected"),
    [
        (a_graph(), late(STARTING, is_rolling=True), STARTING),
        (a_graph(), late(STARTING, has_older=True), "updating"),
        (a_graph(), late("updating"), "updating"),
        (a_graph(conditions=was("True", "r")), late(STARTING, is_rolling=True), "updating"),
        (a_graph(conditions=was("True", "r")), late(is_rolling=True), "updating"),
        (a_graph(conditions=was("True", "r")), late(STARTING), STARTING),
        (a_graph(services=BEFORE, observed_generation=2), late(STARTING), "updating"),
        (a_graph(services=BEFORE, observed_generation=1), late(STARTING), STARTING),
        (a_graph(services=BEFORE), late(STARTING, is_rolling=True), "updating"),
        (a_graph(progress=reached(4)), late("updating", has_older=True), STARTING),
        (a_graph(services=BEFORE), late("pods_crashing", has_older=True), "pods_crashing"),
    ],
)
def test_an_update_is_distinguished_from_a_failure(
    graph: DynamoGraphDeployment, service: ServiceView, expected: str
) -> None:
    status = of(graph, Decode=service)
    assert expected == reason(status)
    assert expected == status.status.services["Decode"].reason


def test_a_service_that_is_ready_explains_nothing() -> None:
    old = counts(4, reason="updating", message="m", blocked_pods=(BlockedPod("x-0", "r"),))
    service = of(Decode=ServiceView("chat-decode", old, 4)).status.services["Decode"]
    assert (None, None, ()) == (service.reason, service.message, service.blocked_pods)


def test_gpus_are_those_of_all_nodes_of_all_replicas() -> None:
    assert 4 * 4 + 2 * 4 == of(Decode=late()).status.gpus


def test_progress_is_stored_and_looked_at_again_at_the_deadline() -> None:
    status = of(Decode=late(ready=3, requeue_after_seconds=900.0))
    assert reached(3, "2026-01-01T00:00:00Z") == status.status.progress
    assert 600.0 == status.requeue_after_seconds
    assert ("True", "updating") == progressing(status)


def test_a_stalled_graph_reports_it_and_continues() -> None:
    status = of(a_graph(progress=reached(3)), Decode=late(STARTING, ready=2))
    assert ("False", "progress_deadline_exceeded") == progressing(status)
    assert ("pending", STARTING, None) == (status.status.state, reason(status), status.requeue_after_seconds)


def test_a_graph_that_is_ready_is_complete() -> None:
    status = of(a_graph(progress=reached(3)), Frontend=READY)
    assert ("True", "update_complete") == progressing(status)
    assert (None, None) == (status.status.progress, status.requeue_after_seconds)


def test_nothing_is_said_anew_because_time_passes() -> None:
    graph = a_graph(progress=reached(3, "2025-12-31T23:59:59Z"))
    first = graph_status(graph, {"Decode": late(STARTING)}, (), now=NOW)
    later = graph_status(graph, {"Decode": late(STARTING)}, (), now=NOW + timedelta(seconds=9))
    assert first.status == later.status


@pytest.mark.parametrize(
    ("graph", "exists", "expected"),
    [
        (a_graph(), False, "initializing"),
        (a_graph(state="initializing"), False, "initializing"),
        (a_graph(state="initializing"), True, "pending"),
        (a_graph(state="pending"), False, "pending"),
        (a_graph(state="successful"), False, "pending"),
    ],
)
def test_a_graph_initializes_until_something_of_it_is_seen(
    graph: DynamoGraphDeployment, expected: str, *, exists: bool
) -> None:
    assert expected == of(graph, Decode=late(exists=exists)).status.state


@pytest.mark.parametrize(
    ("reason_", "expected"),
    [
        ("suspended", ("pending", "suspended", "text")),
        ("suspending", ("pending", "suspended", "text")),
        ("resuming", ("successful", "all_resources_are_ready", "All resources are ready")),
        ("resumed", ("successful", "all_resources_are_ready", "All resources are ready")),
    ],
)
def test_a_suspended_graph_is_not_ready_and_only_one_that_is_going_has_something_to_reach(
    reason_: str, expected: tuple[str, str, str]
) -> None:
    suspended = Condition("Suspended", "Unknown", reason_, "text")
    status = graph_status(a_graph(), {"Frontend": READY}, (), now=NOW, suspended=suspended)
    assert expected == (status.status.state, reason(status), message(status))
    assert (reason_ != "suspending") == (status.status.progress is None)


def test_a_graph_at_zero_has_no_service_that_serves() -> None:
    suspended = Condition("Suspended", "True", "suspended", "text")
    status = graph_status(a_graph(), {"Frontend": READY}, (), now=NOW, suspended=suspended)
    assert "0/1" == status.status.ready_services
    assert "The graph is suspended" == status.status.conditions[-1].message


def test_a_suspension_that_hangs_exceeds_the_deadline() -> None:
    suspended = Condition("Suspended", "Unknown", "suspending", "Replicas are going")
    goal = goal_hash(a_graph(), is_suspending=True)
    graph = a_graph(progress=ProgressStatus(1, "2025-12-31T23:00:00Z", 2, goal))
    status = graph_status(graph, {"Frontend": READY}, (), now=NOW, suspended=suspended)
    assert ("False", "progress_deadline_exceeded") == progressing(status)
    assert status.status.conditions[-1].message.endswith("Suspending the graph, since 2025-12-31T23:00:00Z")


@pytest.mark.parametrize(
    ("replicas", "updated", "ready", "expected"),
    [(5, 1, 4, 0), (5, 2, 4, 1), (4, 4, 3, 3), (4, 3, 4, 3), (1, 4, 1, 1)],
)
def test_replicas_of_an_older_spec_do_not_count_as_ready(
    replicas: int, updated: int, ready: int, expected: int
) -> None:
    counted = ServiceReplicaStatus("Deployment", "chat-decode", replicas, updated, ready)
    assert expected == ServiceView("chat-decode", counted, 4).ready_of_newest


@pytest.mark.parametrize(("of_pods", "ready", "expected"), [(0, 1, 1), (3, 1, 3), (None, 1, None)])
def test_a_ready_replica_counts_as_scheduled_before_its_pod_is_seen(
    of_pods: int | None, ready: int, expected: int | None
) -> None:
    counted = ServiceReplicaStatus("Deployment", "chat-decode", 4, 4, ready)
    assert expected == diagnosed(counted, Diagnosis(scheduled_replicas=of_pods)).scheduled_replicas


def test_our_schema_takes_all_that_we_say() -> None:
    pod = BlockedPod("x-0", "OOMKilled", "main", "m", "2026-01-01T00:00:00Z", 3)
    counted = counts(
        reason="pods_crashing",
        message="m",
        blocked_pods=(pod,) * 5,
        scheduled_replicas=3,
        component_names=("a", "b"),
        runtime_namespace="ns",
    )
    status = of(Decode=ServiceView("chat-decode", counted, 4, obstacles=("o",))).status
    conditions = with_transition_times(status.conditions, (), now="2026-01-01T00:00:00Z")
    status = status.with_conditions(conditions)
    stored: Object = msgspec.json.decode(msgspec.json.encode(status))
    assert () == status_problems(DynamoGraphDeployment, stored)
