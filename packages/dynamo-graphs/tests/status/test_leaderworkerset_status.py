"""When the groups of a component are ready, and the message when they are not."""

from typing import Any

import msgspec
import pytest

from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.component.status import Group, groups_readiness, groups_replicas
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodGroup
from kube_runtime.kind import Object
from kube_runtime.types.kinds import StatefulSet


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
        (
            a_set(leaders={"status": {"observedGeneration": 2}}),
            "its pods do not run the newest spec yet",
        ),
        (a_set(conditions=UPDATING), "its pods do not run the newest spec yet"),
        (a_set(updatedReplicas=0), "its pods do not run the newest spec yet"),
        (a_set(readyReplicas=0), "its pods are not ready"),
        (
            a_set(conditions=[a_condition("Progressing", message="Replicas are progressing")]),
            "it is not available; Replicas are progressing",
        ),
    ],
)
def test_each_thing_that_is_not_so_yet_is_named(group: Group, cause: str) -> None:
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
