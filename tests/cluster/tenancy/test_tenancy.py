"""Several operators in one cluster: each namespace has one, and the hand-over loses nothing."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import COMPONENT, GRAPH, PATIENCE_SECONDS, World
from devcluster.layout import free_ports
from dynamo_operator.process.scope import LEASE
from kube_runtime.types.kinds import Deployment, Lease
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

LEASES = Lease.KIND
FRONTEND = "chat-frontend"
EXCLUDES = "Excluding namespace from cluster-wide operator processing"
RESUMES = "Resuming namespace processing in cluster-wide operator"
SHORT = ("--namespace-scope-lease-duration=6s", "--namespace-scope-lease-renew-interval=2s")


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


ELECTED = '"message": "elected"'


@pytest.fixture
def replicas(
    kinds: ControlPlane, world: World, tmp_path: Path
) -> Iterator[tuple[OperatorProcess, OperatorProcess]]:
    """A leader and a standby, both ready, with the usual terms of election."""
    flags = (
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--leader-elect",
        f"--leader-election-namespace={world.namespace}",
        f"--restrictedNamespace={world.namespace}",
    )
    leader, standby = (
        OperatorProcess(kinds.kubeconfig, tmp_path / name, flags) for name in ("leader", "standby")
    )
    with leader:
        leader.ready()
        world.until(lambda: ELECTED in leader.log.read_text())
        with standby:
            standby.ready()
            yield leader, standby


def seconds_until_reconciled(world: World, name: str, since: float) -> float:
    """How long after `since` a graph that was made then has its component."""
    world.create(GRAPH, graph(name, Frontend=service("frontend")))
    world.eventually(COMPONENT, f"{name}-frontend")
    return time.monotonic() - since


# A leader that is stopped releases its Lease, so the standby does not wait until it expires after 15 seconds.
@pytest.mark.parametrize(("is_killed", "within_seconds"), [(True, PATIENCE_SECONDS), (False, 15)])
def test_after_a_leader_has_ended_the_standby_acts_soon(
    world: World, replicas: tuple[OperatorProcess, OperatorProcess], is_killed: bool, within_seconds: float
) -> None:
    leader, _ = replicas
    if is_killed:
        leader.kill()
    else:
        assert 0 == leader.stop()
    assert seconds_until_reconciled(world, "chat", time.monotonic()) < within_seconds


def test_a_second_installation_says_that_another_one_leads_and_is_not_ready(
    world: World, kinds: ControlPlane, tmp_path: Path
) -> None:
    (health,) = free_ports(1)
    with ExitStack() as stack:
        started: list[OperatorProcess] = []
        for name in ("one", "two"):
            kinds.kubectl("create", "serviceaccount", name, f"--namespace={world.namespace}")
            kinds.kubectl(
                *("create", "clusterrolebinding", f"{world.namespace}-{name}"),
                "--clusterrole=cluster-admin",
                f"--serviceaccount={world.namespace}:{name}",
            )
            flags = (
                "--metrics-bind-address=0",
                f"--health-probe-bind-address={f'127.0.0.1:{health}' if started else 0}",
                "--leader-elect",
                f"--leader-election-namespace={world.namespace}",
                f"--restrictedNamespace={world.namespace}",
            )
            account = kinds.instance.service_account_kubeconfig(world.namespace, name)
            process = OperatorProcess(account, tmp_path / name, flags)
            started.append(stack.enter_context(process))
            process.ready()
            if name == "one":
                world.until(lambda: ELECTED in started[0].log.read_text())
        said = "another installation of the operator leads"
        world.until(lambda: said in started[1].log.read_text())
        lease = world.read(Lease.KIND, "dynamo.nvidia.com")
        user = f"system:serviceaccount:{world.namespace}:one"
        assert user == lease["metadata"]["annotations"]["dynamo.nvidia.com/installation"]
        assert user in started[1].log.read_text()
        assert said not in started[0].log.read_text()
        with pytest.raises(urllib.error.HTTPError) as told:
            urllib.request.urlopen(f"http://127.0.0.1:{health}/readyz", timeout=60)
        assert f"[-]{said}: {user}" in told.value.read().decode()
