"""A change of a decoded field of a Deployment, pod, group or clique requeues its owner once, and nobody else.

The fields come from the types that decode them, so that none is missing: readiness and diagnosis read all of
them, and other fields cannot requeue a key.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest

from cluster.graph.graphs import graph, service, worker
from dynamo_operator import labels
from dynamo_operator.shared.cluster import (
    GROVE,
    LEADER_WORKER_SET,
    SET_NAME,
    LeaderWorkerSet,
    LeaderWorkerSetStatus,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupStatus,
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueStatus,
)
from kube_runtime.controller.controller import ControllerOptions
from kube_runtime.types.kinds import (
    Deployment,
    DeploymentStatus,
    Pod,
    PodStatus,
    StatefulSet,
    StatefulSetStatus,
)
from kube_runtime.types.meta import Kind, Object, Struct
from lifecycle.running import COMPONENT, GRAPH, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock

OTHER_TIME = "2026-01-01T00:00:07Z"
LONG_AGO = "2026-01-01T00:00:00Z"
SOON_SECONDS = 4.0
"""Longer than the debounce of changes, shorter than any timer; all fields take less than a resync period."""


def changes(type_: type[Struct], base: Object) -> Iterator[tuple[str, Object]]:
    """The path of each field of that type, and the merge patch that changes it in `base`.

    Raises:
        KeyError: `base` lacks a list or an object, so that the fields in it cannot be changed.
    """
    for each in msgspec.structs.fields(type_):
        name = each.encode_name
        for path, value in _others(each.type, base.get(name), name):
            yield f"{name}{path}", {name: value}


def _others(type_: Any, value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Other values for a field, each with the path of the difference."""
    inner = _without_none(type_)
    if get_origin(inner) is tuple:
        (item, *_) = get_args(inner)
        if not value:
            raise KeyError(name)
        for path, other in changes(item, value[0]):
            yield f"[0].{path}", [{**value[0], **other}, *value[1:]]
    elif isinstance(inner, type) and issubclass(inner, Struct):
        if value is None:
            raise KeyError(name)
        for path, other in changes(inner, value):
            yield f".{path}", {**value, **other}
    else:
        yield "", _another(inner, value, name)


def _without_none(type_: Any) -> Any:
    if get_origin(type_) in (Union, UnionType):
        return next(part for part in get_args(type_) if part is not type(None))
    return type_


def _another(type_: Any, value: Any, name: str) -> Any:
    if type_ is bool:
        return not value
    if type_ is int:
        return (value or 0) + 1
    return OTHER_TIME if name.endswith(("Time", "At")) else f"another {name}"


@dataclass(frozen=True)
class Case:
    """A settled graph, and an object whose status changes; the controller of `reader` reads it."""

    installed: tuple[Kind, ...]
    settle: Callable[[Running], Any]
    kind: Kind
    name: str
    status: type[Struct]
    base: Object
    reader: Kind
    unread: Object
    special: dict[str, Any] = field(default_factory=dict)
    """Fields of which only some values are read → such a value."""

    def changes(self) -> Iterator[tuple[str, Object]]:
        for path, patch in changes(self.status, self.base):
            if not patch.keys() & self.unread.keys():
                yield path, patch
            elif path in self.special:
                yield path, {path: self.special[path]}


def conditions(type_: str, status: str) -> list[Object]:
    return [
        {
            "type": type_,
            "status": status,
            "reason": "r",
            "message": "m",
            "lastTransitionTime": LONG_AGO,
            "observedGeneration": 1,
        }
    ]


CRASHED = {"exitCode": 1, "reason": "Error", "message": "m", "finishedAt": LONG_AGO}
WAITS = {"reason": "CrashLoopBackOff", "message": "m"}
CONTAINER = {
    "name": "main",
    "ready": False,
    "started": True,
    "restartCount": 3,
    "state": {"waiting": WAITS, "terminated": CRASHED},
    "lastState": {"waiting": WAITS, "terminated": CRASHED},
}
CRASHES: Object = {
    "phase": "Running",
    "conditions": conditions("Ready", "False"),
    "containerStatuses": [CONTAINER],
    "initContainerStatuses": [{**CONTAINER, "name": "first"}],
    "podIPs": [{"ip": "10.0.0.1"}],
}
COUNTS = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}


def a_pod(world: Running, name: str, **more: str) -> None:
    metadata = {"name": name, "labels": {labels.COMPONENT: "Decode", **more}}
    world.create(Pod.KIND, {"metadata": metadata, "spec": {"nodeName": "n"}, "status": CRASHES})


async def of_deployments(world: Running) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=worker("decode")))
    await asyncio.sleep(REST_SECONDS)
    await world.deployments_run()
    a_pod(world, "p", **{labels.SELECTOR: "chat-decode"})


async def of_groups(world: Running) -> None:
    spread = worker("decode", multinode={"nodeCount": 2})
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=spread))
    await asyncio.sleep(REST_SECONDS)
    template = world.read(LeaderWorkerSet.KIND, "chat-decode-0")["spec"]["leaderWorkerTemplate"]
    leaders = {
        "metadata": {"name": "chat-decode-0", "labels": {SET_NAME: "chat-decode-0"}},
        "spec": {"template": template["leaderTemplate"]},
        "status": {"observedGeneration": 1, "updatedReplicas": 1},
    }
    world.create(StatefulSet.KIND, leaders)
    world.change(LeaderWorkerSet.KIND, "chat-decode-0", {"status": GROUP}, "status")
    a_pod(world, "p", **{SET_NAME: "chat-decode-0"})
    await world.deployments_run()


async def of_cliques(world: Running) -> None:
    spread = worker("decode", multinode={"nodeCount": 2})
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=spread))
    await asyncio.sleep(REST_SECONDS)
    for kind, name, status in (
        (PodClique.KIND, "chat-0-frontend", CLIQUE),
        (PodCliqueScalingGroup.KIND, "chat-0-decode", GANG),
    ):
        world.create(kind, {"metadata": {"name": name}, "spec": {"replicas": 1}, "status": status})
    world.change(PodCliqueSet.KIND, "chat", {"status": SET}, "status")
    a_pod(world, "p", **{labels.GRAPH: "chat"})


GROUP: Object = {
    "observedGeneration": 1,
    "replicas": 1,
    "updatedReplicas": 1,
    "readyReplicas": 1,
    "conditions": conditions("Available", "True"),
}
SET: Object = {"observedGeneration": 1, "currentGenerationHash": "h"}
MADE = {"observedGeneration": 1, "currentPodCliqueSetGenerationHash": "h"}
CLIQUE: Object = {**MADE, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
GANG: Object = {**MADE, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}

POD: dict[str, Any] = {
    "kind": Pod.KIND,
    "name": "p",
    "status": PodStatus,
    "base": CRASHES,
    "unread": {"qosClass": "x", "startTime": LONG_AGO, "phase": "Pending", "podIPs": []},
    "special": {"phase": "Succeeded"},
}
RUNS: Object = {"observedGeneration": 1, **COUNTS, "conditions": conditions("Progressing", "True")}
CASES = {
    "a Deployment": Case(
        *((), of_deployments, Deployment.KIND, "chat-decode", DeploymentStatus),
        *(RUNS, COMPONENT, {"collisionCount": 1}),
    ),
    "a pod of a Deployment": Case((), of_deployments, reader=COMPONENT, **POD),
    "a pod of a LeaderWorkerSet": Case(LEADER_WORKER_SET.kinds, of_groups, reader=COMPONENT, **POD),
    "a pod on Grove": Case(GROVE.kinds, of_cliques, reader=GRAPH, **POD),
    "a LeaderWorkerSet": Case(
        *(LEADER_WORKER_SET.kinds, of_groups, LeaderWorkerSet.KIND, "chat-decode-0", LeaderWorkerSetStatus),
        *(GROUP, COMPONENT, {"hpaPodSelector": "x"}),
    ),
    "the StatefulSet of leaders": Case(
        *(LEADER_WORKER_SET.kinds, of_groups, StatefulSet.KIND, "chat-decode-0", StatefulSetStatus),
        *({"observedGeneration": 1, "updatedReplicas": 1}, COMPONENT, {"currentRevision": "x"}),
    ),
    "a PodCliqueSet": Case(
        *(GROVE.kinds, of_cliques, PodCliqueSet.KIND, "chat", PodCliqueSetStatus),
        *(SET, GRAPH, {"availableReplicas": 3}),
    ),
    "a PodClique": Case(
        *(GROVE.kinds, of_cliques, PodClique.KIND, "chat-0-frontend", PodCliqueStatus),
        *(CLIQUE, GRAPH, {"scheduledReplicas": 3}),
    ),
    "a PodCliqueScalingGroup": Case(
        *(GROVE.kinds, of_cliques, PodCliqueScalingGroup.KIND, "chat-0-decode"),
        *(PodCliqueScalingGroupStatus, GANG, GRAPH, {"scheduledReplicas": 3}),
    ),
}


async def change_status(world: Running, case: Case, patch: Object) -> tuple[int, int, list[str]]:
    """Change a status; return the reconciles of components and of graphs, and the written statuses."""
    change = (case.kind, case.name, {"status": patch}, "status")
    components, graphs, written = await world.after(change, within_seconds=SOON_SECONDS)
    return components, graphs, [request for request in written if request.endswith("/status")]


@pytest.mark.parametrize("what", CASES)
@on_simulated_clock
async def test_a_change_of_a_read_field_requeues_its_reader_once_and_of_another_nothing(what: str) -> None:
    case = CASES[what]
    async with running(installed=case.installed) as world:
        await case.settle(world)
        await asyncio.sleep(REST_SECONDS)
        fields = list(case.changes())
        assert len(fields) * 2 * SOON_SECONDS < ControllerOptions().resync_seconds - 5 * REST_SECONDS
        for path, patch in fields:
            components, graphs, statuses = await change_status(world, case, patch)
            of_components = [status for status in statuses if COMPONENT.plural in status]
            expected = (1, len(of_components)) if case.reader == COMPONENT else (0, 1)
            assert expected == (components, graphs), f"{path}: {statuses}"
            assert len(of_components) <= 1, path
            world.change(case.kind, case.name, {"status": case.base}, "status")
            await asyncio.sleep(SOON_SECONDS)
        for name, value in case.unread.items():
            assert (0, 0, []) == await change_status(world, case, {name: value}), name
