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
    return worker(pod={"mainContainer": main}, **fields)


WORKERS: dict[str, tuple[Object, str, tuple[str, ...]]] = {
    "image": (
        broken(container(image=NOBODY_HAS_THIS)),
        *("image_pull_failed", ("Worker: 0/1 ready", "nobody-has-this")),
    ),
    "absent": (
        broken(container(image=NOBODY_HAS_THIS, imagePullPolicy="Never")),
        *("image_pull_failed", ("Worker: 0/1 ready", "ErrImageNeverPull")),
    ),
    "loop": (
        broken(container("/bin/sh", "-c", LAST_WORDS)),
        *("pods_crashing", ("CrashLoopBackOff", "exit code 7", "weights are not readable")),
    ),
    "entry": (broken(container("/no/such/program")), "pods_crashing", ("/no/such/program",)),
    "probe": (
        broken(
            container("python3", "-m", "http.server", "9090", startupProbe=AT_ONCE),
            livenessProbe=AT_ONCE,
            readinessProbe=NEVER_READY,
        ),
        *("pods_not_ready", ("Worker: 0/1 ready", "readiness probe")),
    ),
    "secret": (worker(envFromSecret="not-there"), "config_error", ("not-there",)),
}
"""By the name of their graph, with the reason and words that it gives."""


@pytest.fixture(scope="module")
def world(cluster: RealCluster) -> Iterator[World]:
    with fresh(cluster) as found:
        for name, (each, *_) in WORKERS.items():
            found.create(GRAPH, graph(name, Frontend=idle_frontend(), Worker=each))
        yield found


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_that_is_broken_is_explained(world: World, name: str) -> None:
    _, reason, words = WORKERS[name]

    def says(body: Object) -> bool:
        ready = condition(body)
        return ready.get("reason") == reason and all(each in ready["message"] for each in words)

    body = world.eventually(GRAPH, name, says, within_seconds=90)
    found: Object = body["status"]["services"]["Worker"]
    assert reason == found["reason"]
    pod, *_ = found["blockedPods"]
    assert "main" == pod["container"]
    assert name != "loop" or pod["restarts"] >= 1
