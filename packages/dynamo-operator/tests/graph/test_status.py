"""A graph's status says what its components are and why it is not ready, and its Events each change once."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_graphs.schema import status_problems
from dynamo_operator import labels
from dynamo_operator.component import status as component_statuses
from dynamo_operator.component.api import (
    BlockedPod,
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    DynamoComponentDeploymentStatus,
    Multinode,
    ResourceItem,
    Resources,
    ServiceReplicaStatus,
)
from dynamo_operator.component.diagnosis import Diagnosis
from dynamo_operator.component.service import ServiceView, WorkerRevision
from dynamo_operator.component.status import NO_DEPLOYMENT, diagnosed
from dynamo_operator.features.rollouts.plan import Rollout
from dynamo_operator.features.rollouts.revisions import Member, Revisions
from dynamo_operator.graph import status as graph_statuses
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
    ProgressStatus,
    RestartStatus,
    RollingUpdateStatus,
)
from dynamo_operator.graph.decide import graph_stop
from dynamo_operator.graph.status import (
    GraphProgress,
    TimedStatus,
    component_views,
    goal_hash,
    graph_progress,
    graph_status,
    is_current,
    refused_status,
    status_events,
)
from dynamo_operator.names import GROVE, on_provider
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import Problem
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.apply.status import with_transition_times
from kube_runtime.types.meta import Condition, Metadata, Object, Resource, Status
from specs import a_graph, a_service

GRAPH = DynamoGraphDeployment(
    Metadata("chat", generation=2), status=DynamoGraphDeploymentStatus(observed_generation=1)
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
COMPONENT = DynamoComponentDeployment(
    Metadata("chat-decode", generation=4), status=DynamoComponentDeploymentStatus(observed_generation=1)
)
COUNTS = ServiceReplicaStatus("Deployment", "chat-decode", 2, 2, 1, 1)
CONTESTED = Blocked(Obstacle.CONTESTED, "Service", "chat-decode", "another client reverts it")
TAKEN = Blocked(Obstacle.NAME_CONFLICT, "Service", "chat-decode", "Service chat-decode is taken")
MISTAKES = [Problem("spec.a", "is wrong"), Problem("spec.b", "is missing")]


def component(available: str, observed: int = 4, message: str = "its message") -> Any:
    """A component whose `Available` is that, about that generation."""
    condition = Condition("Available", available, "r", message, observed_generation=observed)
    status = DynamoComponentDeploymentStatus((condition,), observed, service=COUNTS)
    return DynamoComponentDeployment(COMPONENT.metadata, status=status)


def of(
    *components: DynamoComponentDeployment | None, blocked: tuple[Blocked, ...] = ()
) -> DynamoGraphDeploymentStatus:
    """The status of a graph with these components."""
    named = {f"S{n}": (f"chat-s{n}", component) for n, component in enumerate(components)}
    views = component_views(GRAPH, named)
    return graph_statuses.graph_status(GRAPH, views, blocked, now=NOW).status


def without_grove() -> Status:
    """The status of a graph on Grove in a cluster that does not have it."""
    stop = graph_stop(on_provider(GRAPH, GROVE), Facts(), ())
    assert stop is not None
    return stop.status


def an_old_generation() -> Rollout:
    """A rollout that replaces a component of service S0."""
    old = component("True")
    old = msgspec.structs.replace(old, spec=DynamoComponentDeploymentSpec(service_name="S0"))
    return Rollout(Revisions(old=(Member(old, "", ""),)), WorkerRevision())


def ready(status: Status) -> tuple[str, str, str]:
    """Status, reason and message of `Ready`."""
    condition = status.conditions[0]
    return condition.status, condition.reason, condition.message


def test_each_component_that_waits_is_named_with_its_cause() -> None:
    status = of(component("False", message="0 of 1"), None, component("True"), component("True", 3))
    causes = (
        "chat-s0: 0 of 1; chat-s1: it is being created; "
        "chat-s3: the operator has not observed its newest spec yet"
    )
    assert ("some_resources_are_not_ready", f"Resources not ready: {causes}") == ready(status)[1:]
    assert "pending" == status.state


def test_a_service_has_counts_before_its_component_exists() -> None:
    message = "chat-s0: it is being created"
    expected = ServiceReplicaStatus("Deployment", "chat-s0", 0, 0, message=message)
    assert expected == of(None).services["S0"]


def test_a_graph_initializes_until_a_component_reports() -> None:
    silent = DynamoComponentDeployment(COMPONENT.metadata)
    assert "initializing" == of(None, silent).state
    assert "pending" == of(None, component("False")).state


def test_an_older_generation_of_workers_counts_and_is_in_the_way() -> None:
    workers = an_old_generation()
    views = component_views(GRAPH, {"S0": ("chat-s0-new", component("True"))}, workers)
    status = graph_statuses.graph_status(GRAPH, views, (), now=NOW).status
    assert ("False", "updating") == ready(status)[:2]
    assert "chat-decode: its successor is replacing it" in ready(status)[2]
    assert 4 == status.services["S0"].replicas
    assert 2 == status.services["S0"].updated_replicas


def test_an_older_generation_that_serves_is_no_progress() -> None:
    new = component("False", message="0 of 2")
    own = msgspec.structs.replace(COUNTS, ready_replicas=0, available_replicas=0)
    status = msgspec.structs.replace(new.status, service=own)
    new = msgspec.structs.replace(new, status=status)
    views = component_views(GRAPH, {"S0": ("chat-s0-new", new)}, an_old_generation())
    assert (1, 0) == (views["S0"].counts.ready_replicas, views["S0"].ready_of_newest)


def test_counts_of_an_older_spec_are_no_progress() -> None:
    views = component_views(GRAPH, {"S0": ("chat-s0", component("True", 3))})
    assert 0 == views["S0"].ready_of_newest


def test_a_paused_component_that_is_behind_is_named() -> None:
    behind = component("True", 3)
    metadata = msgspec.structs.replace(behind.metadata, annotations={labels.PAUSED: "true"})
    paused = msgspec.structs.replace(behind, metadata=metadata)
    text = "it is paused (annotation nvidia.com/paused)"
    assert f"chat-s0: {text}" in ready(of(paused))[2]
    done = component("True")
    kept = msgspec.structs.replace(done, metadata=metadata)
    assert "True" == ready(of(kept))[0]
    old = an_old_generation()
    member = msgspec.structs.replace(old.revisions.old[0].component, metadata=metadata)
    workers = dataclasses.replace(old, revisions=Revisions(old=(Member(member, "", ""),)))
    views = component_views(GRAPH, {"S0": ("chat-s0-new", component("True"))}, workers)
    assert all(
        "chat-decode: it belongs to an older revision and is paused" in t for t in views["S0"].obstacles
    )


@pytest.mark.parametrize(
    ("blocked", "state", "reason"),
    [(TAKEN, "failed", "name_conflict"), (CONTESTED, "pending", "some_resources_are_not_ready")],
)
def test_what_was_not_applied_is_not_ready_and_is_no_observation(
    blocked: Blocked, state: str, reason: str
) -> None:
    status = of(component("True"), blocked=(blocked,))
    assert ("False", reason, blocked.message) == ready(status)
    assert (state, 1) == (status.state, status.observed_generation)
    own = component_statuses.component_status(
        COMPONENT, replace(NO_DEPLOYMENT, is_ready=True), None, (blocked,)
    )
    assert (1, "False") == (own.observed_generation, own.conditions[1].status)


def test_a_refused_spec_is_no_observation_and_its_conditions_name_it() -> None:
    statuses: tuple[Any, ...] = (
        refused_status(GRAPH, MISTAKES),
        without_grove(),
        component_statuses.refused_status(COMPONENT, MISTAKES),
    )
    for refused in statuses:
        assert 1 == refused.observed_generation, "that of the last spec that was carried out"
        assert None not in {condition.observed_generation for condition in refused.conditions}


def test_a_long_message_is_cut() -> None:
    message = ready(of(component("False", message="x" * 5000)))[2]
    assert 1024 == len(message)
    assert message.endswith("…")


@pytest.mark.parametrize(
    ("component_reason", "graph_reason"),
    [("NameConflict", "name_conflict"), ("RejectedByApiServer", "rejected_by_api_server")],
)
def test_a_refused_component_gives_the_graph_its_reason(component_reason: str, graph_reason: str) -> None:
    available = Condition("Available", "False", component_reason, "Service x is taken", observed_generation=4)
    status = DynamoComponentDeploymentStatus((available,), 4, service=COUNTS)
    status_of_graph = of(DynamoComponentDeployment(COMPONENT.metadata, status=status))
    assert ("False", graph_reason) == ready(status_of_graph)[:2]
    assert "Service x is taken" in ready(status_of_graph)[2]


def framework_of(graph: Any) -> Any:
    return graph_statuses.graph_status(graph, {}, (), now=NOW).status.backend_framework


def test_the_framework_is_shown_whether_it_is_declared_or_read_from_a_command() -> None:
    main = {"image": "i", "command": ["python3", "-m", "dynamo.sglang"]}
    detected = a_service(extraPodSpec={"mainContainer": main})
    assert "sglang" == framework_of(a_graph({"F": a_service("frontend"), "W": detected}))
    assert "vllm" == framework_of(a_graph({"W": a_service()}, backendFramework="vllm"))
    assert None is framework_of(a_graph({"F": a_service("frontend")}))


STORED = ProgressStatus(2, "2026-01-01T00:00:00Z", 7, "goal")


def stored_then(ready: int, generation: int = 7, goal: str = "goal") -> ProgressStatus:
    return ProgressStatus(ready, "2026-01-01T00:01:39Z", generation, goal)


@pytest.mark.parametrize(
    ("seconds", "change", "expected"),
    [
        pytest.param(
            *(99, {"ready": 3, "deadline_seconds": 50}),
            GraphProgress(stored_then(3), requeue_after_seconds=50.0),
            id="better, after the deadline",
        ),
        pytest.param(50, {"ready": 0}, GraphProgress(STORED, requeue_after_seconds=50.0), id="worse"),
        pytest.param(99, {"generation": 8}, GraphProgress(STORED, requeue_after_seconds=1.0), id="scaled"),
        pytest.param(
            *(99, {"ready": 0, "generation": 8, "goal": "other"}),
            GraphProgress(stored_then(0, 8, "other"), requeue_after_seconds=100.0),
            id="another spec",
        ),
        pytest.param(100, {}, GraphProgress(STORED, is_overdue=True), id="at the deadline"),
        pytest.param(500, {"ready": None}, GraphProgress(), id="all ready"),
        pytest.param(
            *(7799, {"deadline_seconds": None}),
            GraphProgress(STORED, requeue_after_seconds=1.0),
            id="before the default deadline",
        ),
        pytest.param(
            *(7800, {"deadline_seconds": None}),
            GraphProgress(STORED, is_overdue=True),
            id="at the default deadline",
        ),
    ],
)
def test_the_progress_of_a_graph(seconds: int, change: dict[str, Any], expected: GraphProgress) -> None:
    given = {"ready": 2, "generation": 7, "goal": "goal", "deadline_seconds": 100, **change}
    assert expected == graph_progress(STORED, now=NOW + timedelta(seconds=seconds), **given)


def test_without_a_hash_the_generation_identifies_the_spec() -> None:
    stored, now = ProgressStatus(2, "2026-01-01T00:00:00Z", 7), NOW + timedelta(seconds=99)
    same = graph_progress(stored, ready=2, generation=7, goal="g", now=now, deadline_seconds=100)
    assert GraphProgress(stored, requeue_after_seconds=1.0) == same
    other = graph_progress(stored, ready=2, generation=8, goal="g", now=now, deadline_seconds=100)
    assert ProgressStatus(2, "2026-01-01T00:01:39Z", 8, "g") == other.stored


def a_goal(replicas: int, *, image: str = "a", is_suspending: bool = False) -> str:
    services = {"Decode": ComponentSpec(replicas=replicas, service_name=image)}
    spec = DynamoGraphDeploymentSpec(services=services, replicas=replicas)
    return goal_hash(DynamoGraphDeployment(Metadata("chat"), spec), is_suspending=is_suspending)


def test_the_goal_hash_ignores_replicas_only() -> None:
    assert a_goal(1) == a_goal(9)
    assert 3 == len({a_goal(1), a_goal(1, image="b"), a_goal(1, is_suspending=True)})


def test_a_time_that_a_user_broke_begins_a_new_one() -> None:
    stored = ProgressStatus(2, "2026-01-01T00:00:00+99:99", 7, "goal")
    progress = graph_progress(stored, ready=2, generation=7, goal="goal", now=NOW, deadline_seconds=100)
    assert ProgressStatus(2, "2026-01-01T00:00:00Z", 7, "goal") == progress.stored


NEWEST = 4


def component_of_current(
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
        (component_of_current("True", "DeploymentReady"), True),
        (component_of_current("True", "DeploymentReady", observed=NEWEST - 1), False),
        (component_of_current("False", "DeploymentNotReady"), False),
        (component_of_current("False", "SomeLeaderWorkerSetsNotReady"), False),
        (component_of_current("False", "DeploymentNotReady", replicas=1), True),
        (component_of_current("False", "name_conflict"), True),
        (DynamoComponentDeployment(Metadata("chat-decode", generation=1)), False),
        (DynamoComponentDeployment(Metadata("c", generation=1, annotations={labels.PAUSED: "true"})), True),
    ],
)
def test_whether_counts_are_current(given: DynamoComponentDeployment, expected: bool) -> None:
    assert expected == is_current(given)


FOUR_GPUS = Resources(limits=ResourceItem(gpu="4"))
SERVICES = {
    "Decode": ComponentSpec(replicas=4, resources=FOUR_GPUS),
    "Prefill": ComponentSpec(resources=FOUR_GPUS, multinode=Multinode(2)),
    "Frontend": ComponentSpec(),
}


def with_status(**status: Any) -> DynamoGraphDeployment:
    spec = DynamoGraphDeploymentSpec(services=SERVICES, progress_deadline_seconds=600)
    stored = DynamoGraphDeploymentStatus(**status)
    return DynamoGraphDeployment(Metadata("chat", generation=2), spec, stored)


def reached(ready: int, since: str = "2025-12-31T23:00:00Z") -> ProgressStatus:
    return ProgressStatus(ready, since, 2, goal_hash(with_status(), is_suspending=False))


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


def explained(graph: DynamoGraphDeployment | None = None, **services: ServiceView) -> TimedStatus:
    return graph_status(graph or with_status(), services, (), now=NOW)


def progressing(status: TimedStatus) -> tuple[str, str]:
    condition = status.status.conditions[-1]
    assert "Progressing" == condition.type
    assert 2 == condition.observed_generation
    return condition.status, condition.reason


def test_one_service_gives_the_graph_its_reason() -> None:
    status = explained(Decode=late("image_pull_failed", "pod x-0 no"), Frontend=READY)
    assert ("image_pull_failed", "Decode: 3/4 ready; pod x-0 no") == ready(status.status)[1:]
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
    status = explained(Decode=late("pods_crashing", "a"), Prefill=late(other, "b", ready=0))
    assert (expected, "Decode: 3/4 ready; a | Prefill: 0/4 ready; b") == ready(status.status)[1:]


STARTING = "pods_not_ready"
BEFORE = {"Decode": counts(reason="updating")}


@pytest.mark.parametrize(
    ("graph", "service", "expected"),
    [
        (with_status(), late(STARTING, is_rolling=True), STARTING),
        (with_status(), late(STARTING, has_older=True), "updating"),
        (with_status(), late("updating"), "updating"),
        (with_status(conditions=was("True", "r")), late(STARTING, is_rolling=True), "updating"),
        (with_status(conditions=was("True", "r")), late(is_rolling=True), "updating"),
        (with_status(conditions=was("True", "r")), late(STARTING), STARTING),
        (with_status(services=BEFORE, observed_generation=2), late(STARTING), "updating"),
        (with_status(services=BEFORE, observed_generation=1), late(STARTING), STARTING),
        (with_status(services=BEFORE), late(STARTING, is_rolling=True), "updating"),
        (with_status(progress=reached(4)), late("updating", has_older=True), STARTING),
        (with_status(services=BEFORE), late("pods_crashing", has_older=True), "pods_crashing"),
    ],
)
def test_an_update_is_distinguished_from_a_failure(
    graph: DynamoGraphDeployment, service: ServiceView, expected: str
) -> None:
    status = explained(graph, Decode=service)
    assert [expected] * 2 == [ready(status.status)[1], status.status.services["Decode"].reason]


def test_a_service_that_is_ready_explains_nothing() -> None:
    old = counts(4, reason="updating", message="m", blocked_pods=(BlockedPod("x-0", "r"),))
    service = explained(Decode=ServiceView("chat-decode", old, 4)).status.services["Decode"]
    assert (None, None, ()) == (service.reason, service.message, service.blocked_pods)


def test_gpus_are_those_of_all_nodes_of_all_replicas() -> None:
    assert 4 * 4 + 2 * 4 == explained(Decode=late()).status.gpus


def test_progress_is_stored_and_looked_at_again_at_the_deadline() -> None:
    status = explained(Decode=late(ready=3, requeue_after_seconds=900.0))
    assert reached(3, "2026-01-01T00:00:00Z") == status.status.progress
    assert 600.0 == status.requeue_after_seconds
    assert ("True", "updating") == progressing(status)


def test_a_stalled_graph_reports_it_and_continues() -> None:
    status = explained(with_status(progress=reached(3)), Decode=late(STARTING, ready=2))
    assert ("False", "progress_deadline_exceeded") == progressing(status)
    assert ("pending", STARTING) == (status.status.state, ready(status.status)[1])
    assert status.requeue_after_seconds is None


def test_a_graph_that_is_ready_is_complete() -> None:
    status = explained(with_status(progress=reached(3)), Frontend=READY)
    assert ("True", "update_complete") == progressing(status)
    assert (None, None) == (status.status.progress, status.requeue_after_seconds)
    assert ("True", 2) == (status.status.conditions[0].status, status.status.observed_generation)


def test_the_status_does_not_change_with_time() -> None:
    graph = with_status(progress=reached(3, "2025-12-31T23:59:59Z"))
    first = graph_status(graph, {"Decode": late(STARTING)}, (), now=NOW)
    later = graph_status(graph, {"Decode": late(STARTING)}, (), now=NOW + timedelta(seconds=9))
    assert first.status == later.status


@pytest.mark.parametrize(
    ("graph", "exists", "expected"),
    [
        (with_status(), False, "initializing"),
        (with_status(state="initializing"), False, "initializing"),
        (with_status(state="initializing"), True, "pending"),
        (with_status(state="pending"), False, "pending"),
        (with_status(state="successful"), False, "pending"),
    ],
)
def test_a_graph_initializes_until_something_of_it_is_seen(
    graph: DynamoGraphDeployment, expected: str, *, exists: bool
) -> None:
    assert expected == explained(graph, Decode=late(exists=exists)).status.state


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
    status = graph_status(with_status(), {"Frontend": READY}, (), now=NOW, suspended=suspended)
    assert expected == (status.status.state, *ready(status.status)[1:])
    assert (reason_ != "suspending") == (status.status.progress is None)


def test_a_graph_at_zero_has_no_service_that_serves() -> None:
    suspended = Condition("Suspended", "True", "suspended", "text")
    status = graph_status(with_status(), {"Frontend": READY}, (), now=NOW, suspended=suspended)
    assert "0/1" == status.status.ready_services
    assert "The graph is suspended" == status.status.conditions[-1].message


def test_a_suspension_that_hangs_exceeds_the_deadline() -> None:
    suspended = Condition("Suspended", "Unknown", "suspending", "Replicas are going")
    goal = goal_hash(with_status(), is_suspending=True)
    graph = with_status(progress=ProgressStatus(1, "2025-12-31T23:00:00Z", 2, goal))
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


ALL_FIELDS = counts(
    reason="pods_crashing",
    message="m",
    blocked_pods=(BlockedPod("x-0", "OOMKilled", "main", "m", "2026-01-01T00:00:00Z", 3),) * 5,
    scheduled_replicas=3,
    component_names=("a", "b"),
    runtime_namespace="ns",
)


@pytest.mark.parametrize(
    ("resource", "status"),
    [
        (GRAPH, explained(Decode=ServiceView("chat-decode", ALL_FIELDS, 4, obstacles=("o",))).status),
        (GRAPH, of(component("True"), None)),
        (GRAPH, of()),
        (GRAPH, of(None, blocked=(TAKEN,))),
        (GRAPH, refused_status(GRAPH, MISTAKES)),
        (GRAPH, without_grove()),
        (COMPONENT, component_statuses.refused_status(COMPONENT, MISTAKES)),
        (COMPONENT, component_statuses.component_status(COMPONENT, NO_DEPLOYMENT, None, ())),
        (COMPONENT, component_statuses.component_status(COMPONENT, NO_DEPLOYMENT, COUNTS, ())),
        (COMPONENT, component_statuses.component_status(COMPONENT, NO_DEPLOYMENT, None, (TAKEN,))),
    ],
)
def test_our_schema_takes_our_status(resource: Resource, status: Status) -> None:
    conditions = with_transition_times(status.conditions, (), now="2026-01-01T00:00:00Z")
    status = status.with_conditions(conditions)
    stored: Object = msgspec.json.decode(msgspec.json.encode(status))
    assert () == status_problems(type(resource), stored)


def restart(id_: str, phase: str) -> DynamoGraphDeploymentStatus:
    return DynamoGraphDeploymentStatus(restart=RestartStatus(id_, phase))


def rollout(phase: str) -> DynamoGraphDeploymentStatus:
    update = RollingUpdateStatus(phase, from_hash="aaaa", to_hash="bbbb")
    return DynamoGraphDeploymentStatus(rolling_update=update)


def having(type_: str, status: str, reason: str = "r") -> DynamoGraphDeploymentStatus:
    return DynamoGraphDeploymentStatus(conditions=(Condition(type_, status, reason, "m"),))


LATE = having("Progressing", "False", "progress_deadline_exceeded")


NOTHING = DynamoGraphDeploymentStatus()


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        (NOTHING, restart("a", "Restarting"), ["RestartStarted"]),
        (restart("a", "Completed"), restart("b", "Restarting"), ["RestartStarted"]),
        (restart("a", "Restarting"), restart("a", "Completed"), ["RestartCompleted"]),
        (restart("a", "Restarting"), restart("b", "Superseded"), ["RestartSuperseded"]),
        (NOTHING, restart("a", "Completed"), []),
        (restart("a", "Restarting"), NOTHING, []),
        (NOTHING, rollout("InProgress"), ["RollingUpdateStarted"]),
        (rollout("InProgress"), rollout("Completed"), ["RollingUpdateCompleted"]),
        (NOTHING, rollout("Completed"), []),
        (NOTHING, having("Suspended", "Unknown"), []),
        (having("Suspended", "Unknown"), having("Suspended", "True"), ["Suspended"]),
        (having("Suspended", "Unknown"), having("Suspended", "False"), ["Resumed"]),
        (having("Progressing", "True"), LATE, ["ProgressDeadlineExceeded"]),
        (LATE, having("Progressing", "True"), []),
        (having("Progressing", "True"), having("Progressing", "False", "ValidationFailed"), []),
    ],
)
def test_events_between_two_statuses(
    before: DynamoGraphDeploymentStatus, after: DynamoGraphDeploymentStatus, reasons: list[str]
) -> None:
    old, new = DynamoGraphDeployment(status=before), DynamoGraphDeployment(status=after)
    assert reasons == [event.reason for event in status_events(old, new)]
    assert [] == list(status_events(new, new))
