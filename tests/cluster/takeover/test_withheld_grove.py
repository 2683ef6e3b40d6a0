"""A graph that the Go operator runs on Grove is left alone by an operator that may not read Grove."""

from pathlib import Path

import pytest

from cluster.conditions import condition
from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.operator_process import OFF, OperatorProcess
from cluster.permissions.conftest import Install, install
from cluster.permissions.roles import NAMES, Installation
from cluster.takeover.test_takeover import GRAPH, filled, is_taken_over, recorded
from cluster.world import World
from conformance.modes import COMMON
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.shared.cluster import GROVE, PodCliqueSet
from dynamoctl.installation.permissions import Feature, Name
from kube_runtime.types.kinds import Deployment

__all__ = ["install"]

FLAGS = (
    *OFF,
    *COMMON,
    f"--planner-cluster-role-name={NAMES[Name.PLANNER_ROLE]}",
    f"--epp-cluster-role-name={NAMES[Name.EPP_ROLE]}",
)

pytestmark = [pytest.mark.cluster, pytest.mark.long]


def test_no_pod_runs_twice_and_the_right_to_grove_is_enough(
    kinds: ControlPlane, world: World, install: Install, tmp_path: Path
) -> None:
    features = {Feature.CLUSTER_WIDE, Feature.SSH_KEYS}
    kubeconfig = install(Installation(world.namespace, features))
    with installed(kinds, ("grove",), GROVE.kinds):
        there = recorded(kinds, world, "agg-vllm", "grove")
        (before,) = there.list(PodCliqueSet.KIND)
        with OperatorProcess(kubeconfig, tmp_path / "log", FLAGS) as operator:
            operator.ready()
            graph = there.eventually(GRAPH, "g", lambda each: bool(condition(each, "Ready")))
            ready = condition(graph, "Ready")
            assert "selected_workload_provider_unavailable" == ready["reason"]
            assert "Grove is installed, but the operator may not read" in ready["message"]
            assert "dynamo-operator.optionalApis.grove=true" in ready["message"]
        with OperatorProcess(kubeconfig, tmp_path / "again", FLAGS) as operator:
            operator.ready()
            assert not there.list(DynamoComponentDeployment.KIND)
            assert not there.list(Deployment.KIND)
            assert [before] == there.list(PodCliqueSet.KIND)
            install(Installation(world.namespace, {*features, Feature.GROVE}))
            there.until(lambda: is_taken_over(there, PodCliqueSet.KIND))
            (after,) = there.list(PodCliqueSet.KIND)
            assert filled(before["spec"]["template"]) == filled(after["spec"]["template"])
            assert not there.list(Deployment.KIND)
        there.delete(GRAPH, "g")
        there.gone(PodCliqueSet.KIND, before["metadata"]["name"])
