"""One operator for the tests of the analytic profiler, and the kubelet of its pods."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.profiler.kubelet import Kubelet
from cluster.world import World
from dynamo_operator.installation.granted import PROFILING, PROFILING_NODES
from dynamo_operator.installation.rule import Rule
from dynamo_operator.kube.kind import Object

ROLE, NODES = "profiling", "profiling-nodes"
FLAGS = (
    f"--dgdr-profiling-cluster-role-name={ROLE}",
    f"--dgdr-profiling-nodes-cluster-role-name={NODES}",
    "--planner-cluster-role-name=view",
)
_RBAC = "rbac.authorization.k8s.io"


def cluster_role(name: str, rules: Iterable[Rule]) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [each.group], "resources": each.resources, "verbs": each.verbs}
            for each in rules
        ],
    }


@pytest.fixture(scope="module")
def profiling_operator(
    kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of a module, with the role of an installation."""
    nobody = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NODES},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NODES},
    }
    roles = cluster_role(ROLE, PROFILING.rules), cluster_role(NODES, PROFILING_NODES)
    for each in (*roles, nobody):
        kinds.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(each))
    log = tmp_path_factory.mktemp("profiling-operator") / "operator.log"
    with OperatorProcess(kinds.kubeconfig, log, (*OFF, *FLAGS)) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(profiling_operator: OperatorProcess) -> Iterator[OperatorProcess]:
    """The operator, which must still run afterwards and have met no bug of its own."""
    assert profiling_operator.ended is None, profiling_operator.log.read_text()
    yield profiling_operator
    bugs = [each for each in profiling_operator.log.read_text().splitlines() if "Traceback" in each]
    assert not bugs, bugs[0]


@pytest.fixture
def kubelet(kinds: ControlPlane, world: World, tmp_path: Path) -> Kubelet:
    """The kubelet of this namespace's profiling pods."""
    return Kubelet(kinds, world, tmp_path)
