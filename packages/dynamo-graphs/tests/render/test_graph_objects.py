"""The objects of a graph: ServiceAccounts, permissions and components."""

from typing import Any

import pytest

from dynamo_operator.graph.render import graph_objects, graph_shared_objects
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.kind import Object
from specs import a_graph, a_service

PLANNED = RenderSettings(planner_cluster_role_name="planner")


def objects(
    services: dict[str, Object], settings: RenderSettings | None = None, **spec: Any
) -> tuple[Object, ...]:
    return graph_objects(a_graph(services, **spec), Facts(), settings or RenderSettings())


def components(*args: Any, **spec: Any) -> dict[str, Object]:
    found = (each for each in objects(*args, **spec) if "spec" in each)
    return {each["spec"]["serviceName"]: each["spec"] for each in found}


def test_configuration_comes_before_workloads_and_services_are_sorted() -> None:
    found = objects({"W": a_service(), "Frontend": a_service("frontend"), "a": a_service()})
    assert [
        ("ServiceAccount", "chat-k8s-service-discovery"),
        ("Role", "chat-k8s-service-discovery-role"),
        ("RoleBinding", "chat-k8s-service-discovery-binding"),
        ("DynamoComponentDeployment", "chat-frontend"),
        ("DynamoComponentDeployment", "chat-w"),
        ("DynamoComponentDeployment", "chat-a"),
    ] == [(each["kind"], each["metadata"]["name"]) for each in found]


def test_without_kubernetes_discovery_there_is_no_account() -> None:
    metadata = {"annotations": {"nvidia.com/dynamo-discovery-backend": "etcd"}}
    found = objects({"W": a_service()}, metadata=metadata)
    assert ["DynamoComponentDeployment"] == [each["kind"] for each in found]
    assert metadata["annotations"] == found[0]["spec"]["annotations"]


def test_a_component_carries_what_its_controller_needs_of_the_graph() -> None:
    [spec] = components(
        {"W": a_service(dynamoNamespace="ignored", labels={"team": "a"})},
        backendFramework="vllm",
        envs=[{"name": "A", "value": "graph"}],
    ).values()
    assert "vllm" == spec["backendFramework"]
    assert "prod-chat" == spec["dynamoNamespace"]
    assert [{"name": "A", "value": "graph"}] == spec["envs"]
    assert {
        "team": "a",
        "nvidia.com/dynamo-component": "W",
        "nvidia.com/dynamo-graph-deployment-name": "chat",
        "nvidia.com/dynamo-namespace": "prod-chat",
    } == spec["labels"]


def test_without_variables_of_the_graph_those_of_a_service_keep_their_order() -> None:
    envs = [{"name": "B"}, {"name": "A"}]
    assert envs == components({"W": a_service(envs=envs)})["W"]["envs"]


def test_a_planner_has_the_planners_account_whatever_the_user_says() -> None:
    pod = {"mainContainer": {"image": "x"}, "serviceAccountName": "mine"}
    spec = components({"P": a_service("planner", extraPodSpec=pod)})["P"]
    assert "planner-serviceaccount" == spec["extraPodSpec"]["serviceAccountName"]


def test_an_empty_map_is_left_out_or_said_in_full() -> None:
    """What a server-side apply of an empty map leaves is what was there before."""
    empty = {
        "ingress": {"enabled": False},
        "multinode": {"nodeCount": 2},
        "scalingAdapter": {"enabled": False},
        "resources": {"limits": {}},
        "extraPodMetadata": {"labels": {}},
    }
    spec = components({"W": a_service(**empty)})["W"]
    assert {"enabled": False} == spec["ingress"]
    assert {"nodeCount": 2} == spec["multinode"]
    assert {"enabled": False} == spec["scalingAdapter"]
    assert not {"resources", "extraPodMetadata"} & spec.keys()


def test_a_frontend_without_an_ingress_gets_the_operators() -> None:
    settings = RenderSettings(ingress_class_name="nginx", ingress_host_suffix="apps.example.com")
    wanted = {"Frontend": a_service("frontend"), "Own": a_service("frontend", ingress={})}
    found = components(wanted, settings)
    assert {
        "enabled": True,
        "host": "chat",
        "hostSuffix": "apps.example.com",
        "ingressControllerClassName": "nginx",
    } == found["Frontend"]["ingress"]
    assert {"enabled": False} == found["Own"]["ingress"]
    assert {"host": "chat"} == components(wanted)["Frontend"]["ingress"]


@pytest.mark.parametrize(
    ("services", "settings", "kinds"),
    [
        ({"P": a_service("planner")}, PLANNED, ["ServiceAccount", "RoleBinding"]),
        ({"W": a_service()}, PLANNED, []),
        ({"P": a_service("planner")}, RenderSettings(), []),
        (
            {"P": a_service("planner")},
            RenderSettings(planner_cluster_role_name="planner", restricted_namespace="prod"),
            [],
        ),
    ],
)
def test_the_planners_account_is_shared_and_made_only_where_there_is_a_planner(
    services: dict[str, Object], settings: RenderSettings, kinds: list[str]
) -> None:
    shared = graph_shared_objects(a_graph(services), settings)
    assert kinds == [each["kind"] for each in shared]
    assert "planner-serviceaccount" not in str(objects(services, settings)[:3])


SIZES = '{"W": {"ServiceArgs": {"workers": 5, "Resources": {"GPU": "1"}}}, "F": {"x": 1}}'


def test_sizes_in_the_deployment_config_become_part_of_the_spec() -> None:
    envs = [{"name": "DYN_DEPLOYMENT_CONFIG", "value": SIZES}]
    wanted = {"W": a_service(), "Fixed": a_service(replicas=2), "F": a_service("frontend")}
    found = components(wanted, envs=envs)
    assert 5 == found["W"]["replicas"]
    assert {"limits": {"gpu": "1"}, "requests": {"gpu": "1"}} == found["W"]["resources"]
    assert 2 == found["Fixed"]["replicas"]
    assert '"F":{"port":8000,"x":1}' in found["F"]["envs"][0]["value"]
    assert SIZES == found["W"]["envs"][0]["value"]
