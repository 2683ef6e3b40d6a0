"""The status of a graph reports why a pod is not ready, in words that a user can act on.

All graphs are made at once: each waits for the kubelet to find out what is wrong, and none needs the
machine for it.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.conditions import condition
from cluster.world import World
from dynamo_operator.graph.api import DynamoGraphDeployment
from e2e.cluster import RealCluster
from e2e.conftest import fresh
from e2e.graphs import AT_ONCE, container, graph, idle_frontend, worker
from kube_runtime.types.meta import Object

GRAPH = DynamoGraphDeployment.KIND
pytestmark = pytest.mark.cluster

NOBODY_HAS_THIS = "localhost/nobody-has-this:1"
LAST_WORDS = "echo weights are not readable >/dev/termination-log; exit 7"
NEVER_READY = {"httpGet": {"path": "/never", "port": 9090}, "periodSeconds": 1}


def broken(main: Object, **fields: Any) -> Object:
    """A worker with this main container."""
    return worker(pod={"mainContainer": main}, **fields)


WORKERS = {
    "image": broken(container(image=NOBODY_HAS_THIS)),
    "absent": broken(container(image=NOBODY_HAS_THIS, imagePullPolicy="Never")),
    "loop": broken(container("/bin/sh", "-c", LAST_WORDS)),
    "entry": broken(container("/no/such/program")),
    "probe": broken(
        container("python3", "-m", "http.server", "9090", startupProbe=AT_ONCE),
        livenessProbe=AT_ONCE,
        readinessProbe=NEVER_READY,
    ),
    "secret": worker(envFromSecret="not-there"),
}
"""By the name of their graph."""


@pytest.fixture(scope="module")
def world(cluster: RealCluster) -> Iterator[World]:
    """A namespace with all of these graphs."""
    with fresh(cluster) as found:
        for name, each in WORKERS.items():
            found.create(GRAPH, graph(name, Frontend=idle_frontend(), Worker=each))
        yield found


def explained(world: World, name: str, reason: str, *words: str) -> Object:
    """The service that is not ready, once the graph gives this reason and these words for it."""

    def says(body: Object) -> bool:
        ready = condition(body)
        return ready.get("reason") == reason and all(each in ready["message"] for each in words)

    body = world.eventually(GRAPH, name, says, within_seconds=90)
    found: Object = body["status"]["services"]["Worker"]
    assert reason == found["reason"]
    assert "main" == found["blockedPods"][0]["container"]
    return found


def test_an_image_that_nobody_has(world: World) -> None:
    explained(world, "image", "image_pull_failed", "Worker: 0/1 ready", "nobody-has-this")


def test_an_image_that_must_be_there_and_is_not(world: World) -> None:
    explained(world, "absent", "image_pull_failed", "Worker: 0/1 ready", "ErrImageNeverPull")


def test_a_program_that_ends_again_and_again(world: World) -> None:
    words = ("CrashLoopBackOff", "exit code 7", "weights are not readable")
    found = explained(world, "loop", "pods_crashing", *words)
    assert found["blockedPods"][0]["restarts"] >= 1


def test_an_entry_point_that_the_image_lacks(world: World) -> None:
    explained(world, "entry", "pods_crashing", "/no/such/program")


def test_a_probe_that_fails(world: World) -> None:
    explained(world, "probe", "pods_not_ready", "Worker: 0/1 ready", "readiness probe")


def test_a_secret_that_is_missing(world: World) -> None:
    explained(world, "secret", "config_error", "not-there")
