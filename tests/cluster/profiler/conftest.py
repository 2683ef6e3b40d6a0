"""What an operator needs for the analytic profiler, and the kubelet of its pods."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.profiler.kubelet import Kubelet
from cluster.world import World
from dynamoctl.installation.permissions import PROFILING, PROFILING_NODES, Rule
from kube_runtime.types.meta import Object

ROLE, NODES = "profiling", "profiling-nodes"
_RBAC = "rbac.authorization.k8s.io"


def cluster_role(name: str, rules: Iterable[Rule]) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [each.group], "resources": each.resources, "verbs": each.verbs} for each in rules
        ],
    }


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> ControlPlane:
    """The control plane with the roles for profiling that an installation has."""
    nobody = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NODES},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NODES},
    }
    roles = cluster_role(ROLE, PROFILING.rules), cluster_role(NODES, PROFILING_NODES)
    for each in (*roles, nobody):
        kinds.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(each))
    return kinds


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    return (
        f"--dgdr-profiling-cluster-role-name={ROLE}",
        f"--dgdr-profiling-nodes-cluster-role-name={NODES}",
        "--planner-cluster-role-name=view",
        "--operator-image=dynamo-operator:test",
    )


@pytest.fixture
def kubelet(kinds: ControlPlane, world: World, tmp_path: Path) -> Kubelet:
    return Kubelet(kinds, world, tmp_path)
