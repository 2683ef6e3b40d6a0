"""The operator in the cluster, from our own image, with only the permissions of its ServiceAccount."""

import json

import pytest
import yaml

from cluster.conditions import is_ready
from cluster.world import PODS, Refused, World
from dynamo_operator.graph.api import DynamoGraphDeployment
from e2e.cluster import CHARTS, FIRST, OPERATOR, RELEASE, SYSTEM, RealCluster, dynamoctl, first_completion
from e2e.graphs import frontend, graph, idle_frontend, worker
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Object

GRAPH = DynamoGraphDeployment.KIND
pytestmark = pytest.mark.cluster


def managers(world: World) -> list[Object]:
    return [
        each
        for each in world.list(PODS)
        if each["metadata"]["name"].startswith(OPERATOR) and "deletionTimestamp" not in each["metadata"]
    ]


def leader(cluster: RealCluster) -> str:
    """The pod of the operator that leads, once one of those that are there does."""
    system, place = cluster.world(SYSTEM), cluster.world("kube-system")

    def leading() -> str:
        lease = place.get(Lease.KIND, "dynamo.nvidia.com") or {"spec": {}}
        holder = lease["spec"].get("holderIdentity", "")
        names = [each["metadata"]["name"] for each in managers(system)]
        return next((name for name in names if holder.startswith(name)), "")

    name: str = system.until(leading)
    return name


def test_two_replicas_run_as_nobody_on_a_read_only_root_and_one_of_them_leads(cluster: RealCluster) -> None:
    system = cluster.world(SYSTEM)
    found = managers(system)
    assert 2 == len(found)
    for each in found:
        [container] = each["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {"uid": 65532} == {"uid": each["status"]["containerStatuses"][0]["user"]["linux"]["uid"]}
    assert leader(cluster) in {each["metadata"]["name"] for each in found}


def test_the_next_replica_leads_when_the_leader_goes(cluster: RealCluster, world: World) -> None:
    system = cluster.world(SYSTEM)
    first = leader(cluster)
    system.delete(PODS, first)
    system.until(lambda: leader(cluster) != first)
    world.create(GRAPH, graph("next", Frontend=idle_frontend()))
    world.eventually(GRAPH, "next", is_ready, within_seconds=90)
    system.until(lambda: len(managers(system)) == 2)


def test_the_api_server_asks_the_webhooks_through_their_service(cluster: RealCluster, world: World) -> None:
    wrong = graph("wrong", Frontend=frontend(replicas=-1), Worker=worker())
    with pytest.raises(Refused, match="replicas"):
        world.create(GRAPH, wrong)
    mistake = graph("mistake", annotations={"nvidia.com/dynamo-discovery-backend": "consul"})
    with pytest.raises(Refused, match="discovery-backend"):
        world.create(GRAPH, mistake)


def test_nothing_that_the_operator_or_a_graph_s_pod_asks_for_is_forbidden(
    cluster: RealCluster, world: World
) -> None:
    accounts = [
        f"system:serviceaccount:{SYSTEM}:{OPERATOR}",
        f"system:serviceaccount:{world.namespace}:allowed-k8s-service-discovery",
    ]
    before = cluster.audit_log.stat().st_size
    world.create(GRAPH, graph("allowed"))
    world.eventually(GRAPH, "allowed", is_ready, within_seconds=90)
    world.delete(GRAPH, "allowed")
    world.gone(GRAPH, "allowed")
    with cluster.audit_log.open("rb") as log:
        log.seek(before)
        entries = [json.loads(line) for line in log if line.endswith(b"\n")]
    theirs = [each for each in entries if each["user"].get("username") in accounts]
    assert set(accounts) == {each["user"]["username"] for each in theirs}
    words = [each.get("responseStatus", {}).get("message", "") for each in theirs]
    assert [] == [each for each in words if " cannot " in each]


def test_manifests_without_helm_install_an_operator_that_runs_graphs(
    cluster: RealCluster, world: World
) -> None:
    cluster.helm("uninstall", RELEASE, f"--namespace={SYSTEM}", "--wait")
    made = dynamoctl("install", "--print", "-n", "dynamo-plain", "--image", FIRST)
    try:
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", input=made)
        cluster.kubectl(
            *("rollout", "status", f"deployment/{OPERATOR}", "--namespace=dynamo-plain"), "--timeout=90s"
        )
        world.until(cluster.admits)
        world.create(GRAPH, graph("plain"))
        world.eventually(GRAPH, "plain", is_ready, within_seconds=120)
        first_completion(cluster, world, "plain-frontend")
    finally:
        cluster.kubectl("delete", "--filename=-", "--ignore-not-found", input=_without_kinds(made))
        cluster.helm(
            *("upgrade", "--install", "dynamo-crds", str(CHARTS / "dynamo-crds")),
            *("--namespace=default", "--take-ownership", "--force-conflicts"),
        )
        cluster.install(FIRST, "upgrade", "--install")


def _without_kinds(made: str) -> str:
    """The manifests without our CRDs: the graphs of other tests must outlive this one."""
    objects = [each for each in yaml.safe_load_all(made) if each]
    kept = [each for each in objects if each["kind"] != "CustomResourceDefinition"]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": kept})
