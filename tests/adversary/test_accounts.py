"""Permissions of the ServiceAccounts of pods, with real tokens and the roles of the chart."""

from pathlib import Path

import pytest

from adversary.tenant import Refused, Tenant, apply, cluster_wide
from cluster.conftest import ControlPlane
from cluster.permissions.roles import ACCOUNT, NAMES
from cluster.requests.playing import REQUEST, Player, a_graph, a_request
from cluster.world import GRAPH, World
from dynamo_operator.graph.render import cluster_role_objects
from dynamoctl.installation.permissions import Name
from kube_runtime.types.kinds import ServiceAccount
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

PROFILING = "dgdr-profiling-job"


def test_the_account_of_profiling_creates_no_pod(kinds: ControlPlane, world: World, tmp_path: Path) -> None:
    with cluster_wide(world, kinds, tmp_path / "log"):
        bound = cluster_role_objects(world.namespace, PROFILING, NAMES[Name.PROFILING_ROLE])
        apply(kinds, *bound)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "escalates"},
        "spec": {"serviceAccountName": ACCOUNT, "containers": [{"name": "a", "image": "a"}]},
    }
    with pytest.raises(Refused, match='cannot create resource "pods"'):
        Tenant(kinds, world.namespace, PROFILING).run("create", "-f", "-", body=pod)


def test_neither_requests_nor_profiling_in_the_operators_own_namespace(
    kinds: ControlPlane, world: World, tmp_path: Path
) -> None:
    mallory = Tenant(kinds, world.namespace, "mallory").create()
    mallory.may("create", "dynamographdeploymentrequests", "dynamographdeployments")
    with cluster_wide(world, kinds, tmp_path / "log"):
        mallory.run("create", "-f", "-", body=of(REQUEST, a_request()))
        mallory.run("create", "-f", "-", body=of(GRAPH, running_as(PROFILING)))
        body = Player(world).is_in("Failed")
        assert "is the operator's own" in body["status"]["message"]
        graph = world.eventually(GRAPH, "chat", lambda each: bool(each.get("status")))
        assert "is the ServiceAccount of profiling Jobs" in str(graph["status"])
    assert world.get(ServiceAccount.KIND, PROFILING) is None


def of(kind: object, body: Object) -> Object:
    assert kind in (REQUEST, GRAPH)
    found = REQUEST if kind is REQUEST else GRAPH
    return {"apiVersion": found.api_version, "kind": found.name, **body}


def running_as(account: str) -> Object:
    pod = {"mainContainer": {"image": "runtime:1"}, "serviceAccountName": account}
    service = {"componentType": "frontend", "replicas": 1, "extraPodSpec": pod}
    return a_graph("chat", Frontend=service)


def test_node_rights_end_with_the_request(kinds: ControlPlane, world: World, tmp_path: Path) -> None:
    own = kinds.world("default")
    account = f"--as=system:serviceaccount:{world.namespace}:{PROFILING}"

    def may_read_nodes() -> bool:
        subjects = kinds.kubectl(
            "get", "clusterrolebinding", NAMES[Name.PROFILING_NODES], "-ojsonpath={.subjects}"
        )
        return f'"namespace":"{world.namespace}"' in subjects

    with cluster_wide(own, kinds, tmp_path / "log"):
        player = Player(world)
        world.create(REQUEST, a_request(enableGpuDiscovery=True))
        player.is_in("Profiling")
        assert may_read_nodes()
        assert "yes" in kinds.kubectl("auth", "can-i", "list", "nodes", account)
        player.finds(a_graph())
        player.is_in("Ready")
        world.until(lambda: not may_read_nodes())
        world.create(REQUEST, {**a_request(enableGpuDiscovery=True), "metadata": {"name": "two"}})
        player.is_in("Profiling", "two")
        assert may_read_nodes()
        world.delete(REQUEST, "two")
        world.until(lambda: not may_read_nodes())
