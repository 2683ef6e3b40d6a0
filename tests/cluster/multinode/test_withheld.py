"""An operator from which an administrator has withheld what is installed, until it is granted."""

import json
from pathlib import Path

import pytest

from cluster import person
from cluster.conditions import condition
from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.multinode.graphs import graph
from cluster.multinode.test_groups import PLACES, SETS
from cluster.operator_process import OFF, OperatorProcess
from cluster.permissions.conftest import Install, install
from cluster.permissions.roles import ACCOUNT, NAMES, Installation
from cluster.world import COMPONENT, GRAPH, World
from dynamo_operator.shared.cluster import LEADER_WORKER_SET, withheld_text
from dynamoctl.installation.permissions import Feature, Name

__all__ = ["install"]

VALUE = "dynamo-operator.optionalApis.leaderWorkerSet=true"
FLAGS = (
    *OFF,
    f"--planner-cluster-role-name={NAMES[Name.PLANNER_ROLE]}",
    f"--epp-cluster-role-name={NAMES[Name.EPP_ROLE]}",
)

pytestmark = [pytest.mark.cluster, pytest.mark.long]


def dynamoctl(kubeconfig: Path, *arguments: str) -> str:
    return person.dynamoctl(*arguments, f"--kubeconfig={kubeconfig}").stdout


def test_what_is_forbidden_is_called_so_with_its_value_and_is_used_once_it_is_granted(
    kinds: ControlPlane, world: World, install: Install, tmp_path: Path
) -> None:
    features = {Feature.CLUSTER_WIDE, Feature.SSH_KEYS}
    kubeconfig = install(Installation(world.namespace, features))
    message = withheld_text({LEADER_WORKER_SET: LEADER_WORKER_SET.kinds})
    with (
        installed(kinds, ("lws", "podgroup"), (SETS, PLACES)),
        OperatorProcess(kubeconfig, tmp_path / "log", FLAGS) as operator,
    ):
        operator.ready()
        world.create(GRAPH, graph("vllm"))
        service = graph("vllm")["spec"]["services"]["W"]
        world.create(COMPONENT, {"metadata": {"name": "alone"}, "spec": service})
        ready = condition(world.eventually(GRAPH, "g", lambda body: bool(condition(body, "Ready"))), "Ready")
        assert ("optional_api_forbidden", True) == (ready["reason"], message in ready["message"])
        alone = condition(
            world.eventually(COMPONENT, "alone", lambda body: bool(condition(body, "Available"))), "Available"
        )
        assert ("OptionalApiForbidden", message) == (alone["reason"], alone["message"])
        said = dynamoctl(kinds.kubeconfig, "why", "g", f"--namespace={world.namespace}")
        assert VALUE in said
        assert "Install LeaderWorkerSet" not in said
        [found] = [
            each
            for each in json.loads(
                dynamoctl(kinds.kubeconfig, "check", f"--account={world.namespace}/{ACCOUNT}", "-ojson")
            )
            if each["name"] == LEADER_WORKER_SET.title
        ]
        assert "warning" == found["verdict"]
        assert f"{world.namespace}/{ACCOUNT} may not read" in found["text"]
        assert VALUE in found["remedy"]
        assert VALUE in (tmp_path / "log").read_text(encoding="utf-8")
        install(Installation(world.namespace, {*features, Feature.LEADER_WORKER_SET}))
        for name in ("g-w-0", "alone-0"):
            world.eventually(SETS, name)
            world.eventually(PLACES, name)
