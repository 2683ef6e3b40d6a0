"""Each field of a pod, a group or a clique that is read requeues its owner, once, and no other key.

The fields come from the types that decode them (`fields`): what is not decoded cannot requeue a key, and what
is decoded is what readiness and diagnosis read.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from cluster.graph.graphs import graph, service, worker
from dynamo_graphs.api import labels
from dynamo_graphs.types.grove import (
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupStatus,
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueStatus,
)
from dynamo_graphs.types.optional_apis import (
    SET_NAME,
    LeaderWorkerSet,
    LeaderWorkerSetStatus,
    PodGroup,
)
from kube_runtime.controller.controller import ControllerOptions
from kube_runtime.kind import Kind, Object
from kube_runtime.types.apps import StatefulSet, StatefulSetStatus
from kube_runtime.types.core import Pod, PodStatus
from kube_runtime.types.meta import Struct
from lifecycle.fields import changes
from lifecycle.running import COMPONENT, GRAPH, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock

LONG_AGO = "2026-01-01T00:00:00Z"
GROUPS = (LeaderWorkerSet.KIND, PodGroup.KIND)
GROVE = (PodCliqueSet.KIND, PodClique.KIND, PodCliqueScalingGroup.KIND)
SOON_SECONDS = 4.0
"""Longer than changes wait for each other, shorter than anything that changes by time alone.

All fields together take less time than the resync period.
"""


@dataclass(frozen=True)
class Place:
    """A settled graph, and one object whose status is changed. `woken` is the kind that reads it."""

    installed: tuple[Kind, ...]
    settle: Callable[[Running], Any]
    kind: Kind
    name: str
    status: type[Struct]
    base: Object
    woken: Kind
    unread: Object
    special: dict[str, Any] = field(default_factory=dict)
    """Fields of which only some values are read, and such a value."""

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
PLACES = {
    "a pod of a Deployment": Place((), of_deployments, woken=COMPONENT, **POD),
    "a pod of a LeaderWorkerSet": Place(GROUPS, of_groups, woken=COMPONENT, **POD),
    "a pod on Grove": Place(GROVE, of_cliques, woken=GRAPH, **POD),
    "a LeaderWorkerSet": Place(
        *(GROUPS, of_groups, LeaderWorkerSet.KIND, "chat-decode-0", LeaderWorkerSetStatus),
        *(GROUP, COMPONENT, {"hpaPodSelector": "x"}),
    ),
    "the StatefulSet of leaders": Place(
        *(GROUPS, of_groups, StatefulSet.KIND, "chat-decode-0", StatefulSetStatus),
        *({"observedGeneration": 1, "updatedReplicas": 1}, COMPONENT, {"currentRevision": "x"}),
    ),
    "a PodCliqueSet": Place(
        *(GROVE, of_cliques, PodCliqueSet.KIND, "chat", PodCliqueSetStatus),
        *(SET, GRAPH, {"availableReplicas": 3}),
    ),
    "a PodClique": Place(
        *(GROVE, of_cliques, PodClique.KIND, "chat-0-frontend", PodCliqueStatus),
        *(CLIQUE, GRAPH, {"scheduledReplicas": 3}),
    ),
    "a PodCliqueScalingGroup": Place(
        *(GROVE, of_cliques, PodCliqueScalingGroup.KIND, "chat-0-decode"),
        *(PodCliqueScalingGroupStatus, GANG, GRAPH, {"scheduledReplicas": 3}),
    ),
}


async def woken(world: Running, place: Place, patch: Object) -> tuple[int, int, list[str]]:
    """How often components and graphs were reconciled after that change, and which statuses were written."""
    change = (place.kind, place.name, {"status": patch}, "status")
    components, graphs, written = await world.happens(change, within_seconds=SOON_SECONDS)
    return components, graphs, [each for each in written if each.endswith("/status")]


@pytest.mark.parametrize("what", PLACES)
def test_each_field_that_is_read_wakes_its_reader_once_and_whoever_reads_that_once(
    what: str,
) -> None:
    place = PLACES[what]

    @on_simulated_clock
    async def scenario() -> None:
        async with running(installed=place.installed) as world:
            await place.settle(world)
            await asyncio.sleep(REST_SECONDS)
            fields = list(place.changes())
            assert (
                len(fields) * 2 * SOON_SECONDS
                < ControllerOptions().resync_seconds - 5 * REST_SECONDS
            )
            for path, patch in fields:
                found = await woken(world, place, patch)
                told = [each for each in found[2] if COMPONENT.plural in each]
                expected = (1, len(told)) if place.woken == COMPONENT else (0, 1)
                assert expected == found[:2], f"{path}: {found}"
                assert len(told) <= 1, path
                world.change(place.kind, place.name, {"status": place.base}, "status")
                await asyncio.sleep(SOON_SECONDS)

    scenario()


@pytest.mark.parametrize("what", PLACES)
def test_a_field_that_is_not_read_wakes_nobody(what: str) -> None:
    place = PLACES[what]

    @on_simulated_clock
    async def scenario() -> None:
        async with running(installed=place.installed) as world:
            await place.settle(world)
            await asyncio.sleep(REST_SECONDS)
            for name, value in place.unread.items():
                assert (0, 0, []) == await woken(world, place, {name: value}), name

    scenario()
