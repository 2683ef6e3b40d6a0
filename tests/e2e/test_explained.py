"""What is wrong with a pod stands in the status of its graph, in words that a person can act on."""

from typing import Any

import pytest

from cluster.world import World
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.kube.kind import Object
from e2e.graphs import AT_ONCE, container, frontend, graph, worker

GRAPH = DynamoGraphDeployment.KIND
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


def broken(main: Object, **fields: Any) -> Object:
    """A worker with this main container."""
    return worker(pod={"mainContainer": main}, **fields)


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


def condition(body: Object) -> Object:
    """The graph's Ready."""
    conditions: list[Object] = body.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "Ready"), {})


def test_an_image_that_nobody_has(world: World) -> None:
    missing = broken(container(image="localhost/nobody-has-this:1"))
    world.create(GRAPH, graph("image", Frontend=frontend(), Worker=missing))
    explained(world, "image", "image_pull_failed", "Worker: 0/1 ready", "nobody-has-this")


def test_an_image_that_must_be_there_and_is_not(world: World) -> None:
    absent = broken(container(image="localhost/nobody-has-this:1", imagePullPolicy="Never"))
    world.create(GRAPH, graph("absent", Frontend=frontend(), Worker=absent))
    explained(world, "absent", "image_pull_failed", "Worker: 0/1 ready", "ErrImageNeverPull")


def test_a_program_that_ends_again_and_again(world: World) -> None:
    script = "echo weights are not readable >/dev/termination-log; exit 7"
    world.create(
        GRAPH, graph("loop", Frontend=frontend(), Worker=broken(container("/bin/sh", "-c", script)))
    )
    found = explained(
        world,
        "loop",
        "pods_crashing",
        "CrashLoopBackOff",
        "exit code 7",
        "weights are not readable",
    )
    assert found["blockedPods"][0]["restarts"] >= 1


def test_an_entry_point_that_the_image_lacks(world: World) -> None:
    world.create(
        GRAPH, graph("entry", Frontend=frontend(), Worker=broken(container("/no/such/program")))
    )
    explained(world, "entry", "pods_crashing", "/no/such/program")


def test_a_probe_that_fails(world: World) -> None:
    probe = {"httpGet": {"path": "/never", "port": 9090}, "periodSeconds": 1}
    idle = broken(
        container("python3", "-m", "http.server", "9090", startupProbe=AT_ONCE),
        livenessProbe=AT_ONCE,
        readinessProbe=probe,
    )
    world.create(GRAPH, graph("probe", Frontend=frontend(), Worker=idle))
    explained(world, "probe", "pods_not_ready", "Worker: 0/1 ready", "readiness probe")


def test_a_secret_that_is_missing(world: World) -> None:
    needs = worker(envFromSecret="not-there")
    world.create(GRAPH, graph("secret", Frontend=frontend(), Worker=needs))
    explained(world, "secret", "config_error", "not-there")
