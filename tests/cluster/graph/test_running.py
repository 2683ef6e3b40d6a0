"""A leader that loses its Lease ends."""

from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from kube_runtime.types.kinds import Lease

pytestmark = pytest.mark.cluster


def candidate(kinds: ControlPlane, world: World, log: Path) -> OperatorProcess:
    """An operator that would lead in the test's namespace."""
    flags = (
        *OFF,
        "--leader-elect",
        f"--leader-election-namespace={world.namespace}",
        f"--restrictedNamespace={world.namespace}",
    )
    return OperatorProcess(kinds.kubeconfig, log, flags)


def test_a_leader_that_loses_its_lease_ends(world: World, kinds: ControlPlane, tmp_path: Path) -> None:
    with candidate(kinds, world, tmp_path / "log") as operator:
        operator.ready()
        world.eventually(Lease.KIND, "dynamo.nvidia.com", lambda it: bool(it["spec"].get("holderIdentity")))
        thief = {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 60}}
        world.patch(Lease.KIND, "dynamo.nvidia.com", thief)
        assert 1 == operator.wait()
        assert "Traceback" not in operator.log.read_text(encoding="utf-8")
