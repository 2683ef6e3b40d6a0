"""The charts on a real API server: what is installed works, stays quiet when upgraded, and can go."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.charts.conftest import DEFINITIONS, ONE_VERSION, PLATFORM
from cluster.charts.releases import (
    BESIDE,
    CONFIGURATION,
    RELEASE,
    TOGETHER,
    installed,
    pod_of_operator,
    pods_of_graph,
    running,
)
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import GRAPH, World
from devcluster.layout import free_ports
from devcluster.programs import Helm

PREVIOUS = Path(__file__).with_name("previous") / "dynamo-platform-0.0.1.tgz"
PREVIOUS_DEFINITIONS = PREVIOUS.with_name("dynamo-crds-0.0.1.tgz")

pytestmark = pytest.mark.cluster


def bundles(control_plane: ControlPlane) -> set[str]:
    """The authorities that the API server trusts for our webhooks; "" where there is none."""
    name = f"{RELEASE}-dynamo-operator-validating"
    found = json.loads(control_plane.kubectl("get", str(CONFIGURATION), name, "--output=json"))
    return {each["clientConfig"].get("caBundle", "") for each in found["webhooks"]}


def test_an_upgrade_leaves_the_authorities_that_the_operator_wrote(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    [port] = free_ports(1)
    webhooks = "--set=dynamo-operator.webhook.enabled=true"
    with installed(online, world, webhooks):
        with running(kinds, world, tmp_path / "log", f"--webhook-bind-address=127.0.0.1:{port}"):
            world.until(lambda: "" not in bundles(kinds))
        before = bundles(kinds)
        timeout = "--set=dynamo-operator.webhook.timeoutSeconds=7"
        online("upgrade", RELEASE, PLATFORM, f"--namespace={world.namespace}", webhooks, timeout)
        assert before == bundles(kinds)


@contextmanager
def earlier_definitions(helm: Helm) -> Iterator[None]:
    """The CRDs of the version before, as their chart had them; afterwards those of today."""
    helm("upgrade", "dynamo-crds", PREVIOUS_DEFINITIONS, "--namespace=default", "--reset-values")
    try:
        yield
    finally:
        helm("upgrade", "dynamo-crds", DEFINITIONS, "--namespace=default", ONE_VERSION)


def test_an_upgrade_from_the_version_before_changes_no_pod_of_a_graph(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    place = f"--namespace={world.namespace}"
    scaled = worker("decode", scalingAdapter={"enabled": True}, replicas=2)
    with installed(online, world, BESIDE, chart=PREVIOUS):
        with earlier_definitions(online):
            _, flags = pod_of_operator(world)
            # Its own operator is not here: ours, with its flags, and permissions that it would not have.
            with OperatorProcess(kinds.kubeconfig, tmp_path / "before", (*flags, *OFF)) as operator:
                operator.ready()
                world.create(GRAPH, graph("chat", Frontend=service("frontend"), Decode=scaled))
                world.eventually(GRAPH, "chat", is_ready)
            old = pods_of_graph(world)
        online("upgrade", RELEASE, PLATFORM, place, "--reset-then-reuse-values", TOGETHER)
        with running(kinds, world, tmp_path / "after"):
            touched = {"metadata": {"annotations": {"example.com/looked": "yes"}}}
            world.patch(GRAPH, "chat", touched)
            world.create(GRAPH, graph("second"))
            world.eventually(GRAPH, "second", is_ready)
            world.eventually(GRAPH, "chat", is_ready)
            new = pods_of_graph(world)
    assert 3 == len(old)
    assert old.items() <= new.items()


def test_removing_the_platform_leaves_graphs_and_their_pods(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    with installed(online, world), running(kinds, world, tmp_path / "log"):
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
    assert pods_of_graph(world)
    world.delete(GRAPH, "chat")
    world.gone(GRAPH, "chat")
