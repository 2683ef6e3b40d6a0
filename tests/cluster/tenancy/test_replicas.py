"""How long a cluster is without an operator that acts, and what a second installation does."""

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OperatorProcess
from cluster.world import COMPONENT, GRAPH, PATIENCE_SECONDS, World
from devcluster.layout import free_ports
from kube_runtime.types.kinds import Lease

ELECTED = '"message": "elected"'

pytestmark = pytest.mark.cluster


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
