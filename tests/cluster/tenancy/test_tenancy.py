"""Several operators in one cluster: each namespace has one, and the hand-over loses nothing."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import GRAPH, World
from dynamo_operator.process.scope import LEASE
from kube_runtime.types.kinds import Deployment, Lease
from kube_runtime.types.meta import Object

LEASES = Lease.KIND
FRONTEND = "chat-frontend"
EXCLUDES = "Excluding namespace from cluster-wide operator processing"
RESUMES = "Resuming namespace processing in cluster-wide operator"
SHORT = ("--namespace-scope-lease-duration=6s", "--namespace-scope-lease-renew-interval=2s")

pytestmark = pytest.mark.cluster


def small(name: str = "chat") -> Object:
    return graph(name, Frontend=service("frontend"))


def nats(body: Object) -> str:
    """Which operator has rendered a Deployment: each is set to another address."""
    variables = body["spec"]["template"]["spec"]["containers"][0]["env"]
    return next((each["value"] for each in variables if each["name"] == "NATS_SERVER"), "")


@pytest.fixture
def lab(kinds: ControlPlane, world: World) -> Iterator[World]:
    with kinds.new_namespace(f"{world.namespace}-lab") as lab:
        yield lab


@pytest.fixture
def wide(kinds: ControlPlane, tmp_path: Path) -> Iterator[OperatorProcess]:
    flags = (*OFF, "--natsAddr=nats://wide")
    with OperatorProcess(kinds.kubeconfig, tmp_path / "wide.log", flags) as process:
        process.ready()
        yield process


@pytest.fixture
def restricted(kinds: ControlPlane, world: World, tmp_path: Path) -> OperatorProcess:
    """An operator for the test's namespace, of another version, not started."""
    place = f"--restrictedNamespace={world.namespace}"
    more = (place, "--natsAddr=nats://restricted", "--operator-version=v2", *SHORT)
    return OperatorProcess(kinds.kubeconfig, tmp_path / "restricted.log", (*OFF, *more))


def has_said(process: OperatorProcess, text: str, world: World) -> bool:
    lines = (json.loads(each) for each in process.log.read_text().splitlines() if each[:1] == "{")
    return any((each.get("message"), each.get("namespace")) == (text, world.namespace) for each in lines)


def handed_over(world: World, wide: OperatorProcess, restricted: OperatorProcess) -> None:
    """A graph that the cluster-wide operator has made is the restricted one's now."""
    world.create(GRAPH, small())
    world.eventually(Deployment.KIND, FRONTEND, lambda each: nats(each) == "nats://wide")
    restricted.start()
    restricted.ready()
    world.until(lambda: has_said(wide, EXCLUDES, world))
    world.eventually(Deployment.KIND, FRONTEND, lambda each: nats(each) == "nats://restricted")


def test_a_namespace_goes_to_its_own_operator_and_comes_back_when_that_stops(
    world: World, lab: World, wide: OperatorProcess, restricted: OperatorProcess
) -> None:
    handed_over(world, wide, restricted)
    world.eventually(GRAPH, "chat", is_ready)
    generation = world.eventually(Deployment.KIND, FRONTEND)["metadata"]["generation"]
    lab.create(GRAPH, small())
    lab.eventually(Deployment.KIND, FRONTEND, lambda each: nats(each) == "nats://wide")
    assert generation == world.eventually(Deployment.KIND, FRONTEND)["metadata"]["generation"]
    assert restricted.stop() == 0
    world.until(lambda: has_said(wide, RESUMES, world))
    # No user edits anything: the graph is reconciled because its namespace came back.
    world.eventually(Deployment.KIND, FRONTEND, lambda each: nats(each) == "nats://wide")


def test_the_namespace_of_an_operator_that_was_killed_comes_back_when_its_lease_has_run_out(
    world: World, wide: OperatorProcess, restricted: OperatorProcess
) -> None:
    handed_over(world, wide, restricted)
    restricted.kill()
    world.patch(GRAPH, "chat", {"spec": {"services": {"Frontend": {"replicas": 2}}}})
    lease = world.read(LEASES, LEASE)
    world.until(lambda: has_said(wide, RESUMES, world))
    since = datetime.now(UTC) - datetime.fromisoformat(lease["spec"]["renewTime"])
    assert since.total_seconds() > 5.5
    found = world.eventually(Deployment.KIND, FRONTEND, lambda each: each["spec"]["replicas"] == 2)
    assert "nats://wide" == nats(found)


def test_a_forged_lease_takes_away_no_namespace_but_its_own(
    world: World, lab: World, wide: OperatorProcess
) -> None:
    forever = {
        "holderIdentity": "namespace-restricted-operator-*",
        "renewTime": "9999-12-31T23:59:59.999999Z",
        "leaseDurationSeconds": 2**31 - 1,
    }
    lab.create(LEASES, {"metadata": {"name": LEASE}, "spec": forever})
    world.until(lambda: has_said(wide, EXCLUDES, lab))
    for each in (world, lab):
        each.create(GRAPH, small())
    world.eventually(GRAPH, "chat", is_ready)
    assert [] == lab.list(Deployment.KIND)
    lab.delete(LEASES, LEASE)
    lab.eventually(GRAPH, "chat", is_ready)
