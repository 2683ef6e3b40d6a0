"""What an operator needs for the analytic profiler, and the kubelet of its pods."""

import json
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.permissions.roles import rbac, role_reference
from cluster.profiler.kubelet import Kubelet
from cluster.world import World
from dynamoctl.installation.permissions import PROFILING, PROFILING_NODES, Rule
from kube_runtime.types.meta import Object

ROLE, NODES = "profiling", "profiling-nodes"


def _rule(rule: Rule) -> Object:
    return {"apiGroups": [rule.group], "resources": rule.resources, "verbs": rule.verbs}


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> ControlPlane:
    """The control plane with the roles for profiling that an installation has."""
    nobody = rbac("ClusterRoleBinding", NODES, roleRef=role_reference("ClusterRole", NODES))
    granted = {ROLE: PROFILING.rules, NODES: PROFILING_NODES}
    roles = [rbac("ClusterRole", name, rules=[_rule(each) for each in granted[name]]) for name in granted]
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
