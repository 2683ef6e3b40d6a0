"""A component keeps the reasons that programs know, and says beside them which pod it is."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dynamo_operator.component.api import (
    BlockedPod,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    DynamoComponentDeploymentStatus,
    Multinode,
    ServiceReplicaStatus,
)
from dynamo_operator.component.diagnosis import UNKNOWN, Diagnosis
from dynamo_operator.component.plan import ComponentInputs
from dynamo_operator.component.status import (
    Group,
    Readiness,
    applied_status,
    component_status,
    groups_readiness,
    groups_replicas,
)
from dynamo_operator.shared.cluster import Facts, LeaderWorkerSet, PodGroup
from dynamo_operator.shared.conditions import ComponentReason, GraphReason
from kube_runtime.apply.result import Applied, Blocked, Change, Obstacle, Verb
from kube_runtime.types.kinds import StatefulSet
from kube_runtime.types.meta import Condition, Metadata, Object, OwnerReference

COUNTS = ServiceReplicaStatus("Deployment", "chat-decode", 2, 2, 1, 1)
POD = BlockedPod("x-0", "OOMKilled")
CRASHING = Diagnosis(GraphReason.PODS_CRASHING, "pod x-0 OOMKilled", (POD,), 2)
STARTING = Diagnosis(GraphReason.PODS_NOT_READY, "pod x-0 NotReady", (POD,), 2)
READY = Readiness(ComponentReason.DEPLOYMENT_READY, "is ready", is_ready=True)


def a_component(
    *, available: str = "False", reason: str | None = None, nodes: int = 1, observed: int = 3
) -> DynamoComponentDeployment:
    owner = OwnerReference("DynamoGraphDeployment", "chat", "u", "nvidia.com/v1alpha1")
    metadata = Metadata("chat-decode", "prod", "c", generation=3, owner_references=(owner,))
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


def a_set(*, replicas: int = 1, leaders: Object | None = None, **status: Any) -> Group:
    """A group that is ready, unless `status` or what its leaders say is otherwise."""
    ready = {
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": 1,
        "conditions": [a_condition("Available"), a_condition("Progressing", "False")],
    }
    body = {"metadata": {"name": "w-0", "generation": 2}, "status": ready | status}
    template = {"metadata": {"annotations": {"nvidia.com/group-hash": "new"}}}
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"leaderTemplate": template}}
    pods = msgspec.structs.replace(
        msgspec.convert(body, LeaderWorkerSet), spec=msgspec.Raw(msgspec.json.encode(spec))
    )
    own = {
        "metadata": {"generation": 2},
        "spec": {"template": template},
        "status": {"observedGeneration": 2, "updatedReplicas": 1},
    }
    return Group(pods, msgspec.convert(own | (leaders or {}), StatefulSet), None)


def a_condition(type_: str, status: str = "True", message: str = "") -> Object:
    return {"type": type_, "status": status, "message": message}


def test_all_groups_ready_is_ready() -> None:
    readiness = groups_readiness({"w-0": a_set(), "w-1": a_set()})
    assert (True, "AllLeaderWorkerSetsReady", "All LeaderWorkerSets are ready") == (
        readiness.is_ready,
        readiness.reason,
        readiness.message,
    )


def test_no_group_wanted_is_ready() -> None:
    assert groups_readiness({}).is_ready
    assert groups_readiness({"w-0": a_set(replicas=0, readyReplicas=0, conditions=[])}).is_ready


UNOBSERVED = (
    "no controller has observed LeaderWorkerSet w-0; if that lasts, check that the controller of "
    "LeaderWorkerSet runs"
)
UPDATING = [a_condition("UpdateInProgress"), a_condition("Progressing")]


@pytest.mark.parametrize(
    ("group", "cause"),
    [
        (Group(None, None, None), "it does not exist yet or is being deleted"),
        (a_set(observedGeneration=1), "its controller has not observed the newest spec yet"),
        (a_set(conditions=[]), UNOBSERVED),
        (Group(a_set().pods, None, None), UNOBSERVED),
        (a_set(leaders={"spec": {}}), "its controller has not observed the newest spec yet"),
        (
            a_set(leaders={"status": {"observedGeneration": 1, "updatedReplicas": 1}}),
            "its pods do not run the newest spec yet",
        ),
        (a_set(leaders={"status": {"observedGeneration": 2}}), "its pods do not run the newest spec yet"),
        (a_set(conditions=UPDATING), "its pods do not run the newest spec yet"),
        (a_set(updatedReplicas=0), "its pods do not run the newest spec yet"),
        (a_set(readyReplicas=0), "its pods are not ready"),
        (
            a_set(conditions=[a_condition("Progressing", message="Replicas are progressing")]),
            "it is not available; Replicas are progressing",
        ),
    ],
)
def test_a_leader_worker_set_that_is_not_ready_names_its_cause(group: Group, cause: str) -> None:
    readiness = groups_readiness({"w-0": a_set(), "w-1": group})
    assert (False, "SomeLeaderWorkerSetsNotReady") == (readiness.is_ready, readiness.reason)
    assert f"Some LeaderWorkerSets are not ready: w-1: {cause}" == readiness.message


def test_an_unschedulable_group_reports_it() -> None:
    condition = a_condition("Unschedulable", message="2/2 tasks in gang unschedulable")
    placement = msgspec.convert({"status": {"conditions": [condition]}}, PodGroup)
    waiting = a_set(readyReplicas=0)
    group = Group(waiting.pods, waiting.leaders, placement)
    assert groups_readiness({"w-0": group}).message.endswith(
        "w-0: its pods are not ready; 2/2 tasks in gang unschedulable"
    )


def test_of_many_groups_the_first_are_named() -> None:
    groups = {f"w-{index}": Group(None, None, None) for index in range(9)}
    message = groups_readiness(groups).message
    assert "w-4: " in message
    assert "w-5: " not in message
    assert message.endswith("; and 4 more")


def test_the_counts_are_those_of_all_groups_together() -> None:
    groups = {"w-0": a_set(), "w-1": a_set(readyReplicas=0), "w-2": Group(None, None, None)}
    names = ("w-0", "w-1")
    expected = ServiceReplicaStatus("LeaderWorkerSet", "w-0", 2, 2, 1, component_names=names)
    assert expected == groups_replicas(groups, "w-0")


@pytest.mark.parametrize(("desired", "deleted", "counted"), [(0, [], 3), (1, [], 3), (1, [1, 2], 1)])
def test_groups_that_are_left_count(desired: int, deleted: list[int], counted: int) -> None:
    component = a_component(nodes=2)
    spec = msgspec.structs.replace(component.spec, replicas=desired)
    component = msgspec.structs.replace(component, spec=spec)
    own = {
        "namespace": "prod",
        "ownerReferences": [{"kind": "D", "name": "d", "uid": "c", "controller": True}],
    }
    bodies = [{"metadata": {**own, "name": f"chat-decode-{n}"}, "status": {"replicas": 1}} for n in range(3)]
    live = {(each.KIND.name, each.key): each for each in msgspec.convert(bodies, list[LeaderWorkerSet])}
    changes = [Change(Verb.DELETE, "LeaderWorkerSet", f"chat-decode-{n}") for n in deleted]
    inputs = ComponentInputs(Facts(), live)
    status, _ = applied_status(component, inputs, Applied(changes=changes), datetime.now(UTC))
    assert counted == service_of(status).replicas


@pytest.mark.parametrize(
    ("group", "is_rolling", "has_older"),
    [
        (a_set(readyReplicas=0), False, False),
        (a_set(conditions=[a_condition("UpdateInProgress")]), True, True),
        (a_set(updatedReplicas=0), True, False),
        (a_set(leaders={"spec": {}}), True, False),
        (Group(None, None, None), True, False),
    ],
)
def test_a_group_distinguishes_an_update_from_pods_that_are_not_ready(
    group: Group, *, is_rolling: bool, has_older: bool
) -> None:
    readiness = groups_readiness({"w-0": group})
    assert (is_rolling, has_older) == (readiness.is_rolling, readiness.has_older)
