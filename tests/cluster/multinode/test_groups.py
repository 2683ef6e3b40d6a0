"""Components over several nodes, with the real LeaderWorkerSet controller: groups form and are right."""

import pytest

from cluster.audit import Audit
from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.multinode.graphs import graph
from cluster.world import COMPONENT, GRAPH, PODS, World
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodGroup, SshKeys
from kube_runtime.types.meta import Kind

SETS = LeaderWorkerSet.KIND
PLACES = PodGroup.KIND
SLICES = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "source")]


def names(world: World, kind: Kind) -> list[str]:
    return [each["metadata"]["name"] for each in world.list(kind)]


@pytest.mark.parametrize(("framework", "nodes"), [("vllm", 2), ("trtllm", 3)])
def test_a_group_forms_and_the_graph_is_ready(place: World, framework: str, nodes: int) -> None:
    place.create(GRAPH, graph(framework, nodes=nodes))
    ready = place.eventually(GRAPH, "g", is_ready)
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    expected = {
        "componentKind": "LeaderWorkerSet",
        "componentName": "g-w-0",
        **counts,
        "componentNames": ["g-w-0"],
        "runtimeNamespace": f"{place.namespace}-g",
        "scheduledReplicas": 1,
    }
    assert expected == ready["status"]["services"]["W"]
    component = place.read(COMPONENT, "g-w")
    assert "AllLeaderWorkerSetsReady" == condition(component, "Available")["reason"]

    workers = [f"g-w-0-0-{index}" for index in range(1, nodes)]
    assert ["g-w-0-0", *workers] == names(place, PODS)
    leader, *others = place.list(PODS)
    assert ["leader", *("worker" for _ in workers)] == [
        pod["metadata"]["labels"]["role"] for pod in (leader, *others)
    ]
    for pod in (leader, *others):
        assert "g-w-0" == pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
        assert "volcano" == pod["spec"]["schedulerName"]
        variables = {each["name"]: each for each in pod["spec"]["containers"][0]["env"]}
        address = f"g-w-0-0.g-w-0.{place.namespace}"
        assert address == variables["LWS_LEADER_ADDRESS"]["value"]
        assert "LWS_WORKER_INDEX" in variables


def test_requests_go_to_leaders_only(place: World) -> None:
    place.create(GRAPH, graph("sglang", replicas=2))
    place.eventually(GRAPH, "g", is_ready)

    def targets() -> set[str]:
        return {
            end["targetRef"]["name"]
            for each in place.list(SLICES)
            if each["metadata"]["labels"]["kubernetes.io/service-name"] == "g-w"
            for end in each.get("endpoints") or ()
        }

    place.until(lambda: {"g-w-0-0", "g-w-1-0"} == targets(), what=lambda: str(targets()))


def test_fewer_replicas_end_the_last_groups(place: World) -> None:
    place.create(GRAPH, graph("sglang", replicas=3))
    ready = place.eventually(GRAPH, "g", is_ready)
    assert 3 == ready["status"]["services"]["W"]["readyReplicas"]
    place.patch(GRAPH, "g", {"spec": {"services": {"W": {"replicas": 1}}}})
    for index in (1, 2):
        place.gone(SETS, f"g-w-{index}")
        place.gone(PLACES, f"g-w-{index}")
    ready = place.eventually(GRAPH, "g", is_ready)
    assert 1 == ready["status"]["services"]["W"]["readyReplicas"]
    assert ["g-w-0"] == names(place, SETS)
    place.patch(GRAPH, "g", {"spec": {"services": {"W": {"replicas": 0}}}})
    place.gone(SETS, "g-w-0")
    place.eventually(GRAPH, "g", is_ready)


def test_a_new_template_is_ready_when_all_pods_have_it(place: World) -> None:
    place.create(GRAPH, graph("vllm"))
    place.eventually(GRAPH, "g", is_ready)
    for version in ("2.0", "3.0", "4.0"):
        image = f"registry.example.com/dynamo/engine:{version}"
        place.patch(GRAPH, "g", {"spec": graph("vllm", image=image)["spec"]})
        place.eventually(GRAPH, "g", is_ready)
        assert {image} == {pod["spec"]["containers"][0]["image"] for pod in place.list(PODS)}


def test_a_settled_group_costs_no_request(groups: ControlPlane, place: World) -> None:
    place.create(GRAPH, graph("trtllm", replicas=2))
    place.eventually(GRAPH, "g", is_ready)
    audit = Audit(groups.audit_log)
    place.until(lambda: audit.calls(namespace=place.namespace))
    audit.falls_silent(place.namespace)


def test_a_deleted_graph_leaves_nothing(place: World) -> None:
    place.create(GRAPH, graph("trtllm"))
    place.eventually(GRAPH, "g", is_ready)
    place.delete(GRAPH, "g")
    place.gone(SETS, "g-w-0")
    place.gone(PLACES, "g-w-0")
    place.gone(SshKeys.KIND, "mpi-keys")
    place.until(lambda: [] == place.list(PODS))
