"""The objects of a graph beside its components, and what all its objects have of it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dynamo_graphs.offline import graph_tree
from dynamo_operator import labels, names
from dynamo_operator.features.decision import GraphInputs
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import decide_valid
from dynamo_operator.graph.render import graph_shared_objects
from dynamo_operator.names import COMPONENT, GROVE, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import a_graph, a_service

PLANNED = RenderSettings(planner_cluster_role_name="planner")
ETCD = RenderSettings(discovery_backend="etcd")


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
    decision = decide_valid(a_graph(services), GraphInputs(Facts()), settings, datetime.now(UTC))
    assert "planner-serviceaccount" not in str(decision.rendered[:3])


@pytest.mark.parametrize(
    ("own", "provider", "is_created"),
    [({}, COMPONENT, True), ({labels.DISCOVERY_BACKEND: "etcd"}, COMPONENT, False), ({}, GROVE, False)],
)
def test_the_account_for_discovery_exists_where_a_pod_names_it(
    own: dict[str, str], provider: str, *, is_created: bool
) -> None:
    services = {"W": a_service(annotations={labels.DISCOVERY_BACKEND: "kubernetes"})}
    graph = on_provider(a_graph(services, metadata={"annotations": own}), provider)
    rendered = graph_tree(graph, Facts(grove_served=provider == GROVE), ETCD)
    assert is_created == any(each["kind"] == "ServiceAccount" for each in rendered)
    assert is_created == (f"'serviceAccountName': '{names.discovery_account('chat')}'" in str(rendered))


SHARED = ("planner-serviceaccount", "planner-serviceaccount-binding", "dynamo-model-")
SETTINGS = RenderSettings(
    ingress_class_name="nginx", planner_cluster_role_name="planner", disruption_budget_max_unavailable="1"
)


def a_whole_graph(**frontend: Any) -> DynamoGraphDeployment:
    """A graph with every kind of object that we make."""
    services = {
        "Epp": a_service("epp", eppConfig={"config": {"plugins": []}}),
        "Frontend": a_service("frontend", replicas=2, **frontend),
        "Planner": a_service("planner"),
        "Worker": a_service(multinode={"nodeCount": 2}, modelRef={"name": "acme/chat"}),
    }
    claim = {"name": "c", "create": True, "size": "1Gi", "storageClass": "s"}
    return a_graph(
        services,
        pvcs=[{**claim, "volumeAccessMode": "ReadWriteMany"}],
        labels={"team": "graph"},
        annotations={"note": "graph"},
    )


def templates(value: Any) -> list[Object]:
    """The metadata of all pod templates inside an object."""
    if isinstance(value, list):
        return [found for each in value for found in templates(each)]
    if not isinstance(value, dict):
        return []
    below = [found for each in value.values() for found in templates(each)]
    pod = value.get("spec") if "metadata" in value else value.get("spec", {}).get("podSpec")
    is_template = isinstance(pod, dict) and "containers" in pod
    return [*below, value.get("metadata", value)] if is_template else below


def tree(graph: DynamoGraphDeployment, **facts: Any) -> list[Object]:
    objects = graph_tree(graph, Facts(**facts), SETTINGS)
    return [each for each in objects if not each["metadata"]["name"].startswith(SHARED)]


@pytest.mark.parametrize("on_grove", [False, True])
def test_labels_and_annotations_of_a_graph_are_on_every_object_and_pod(*, on_grove: bool) -> None:
    objects = tree(a_whole_graph(), grove_served=on_grove)
    pods = [found for each in objects for found in templates(each.get("spec", {}))]
    assert 5 == len(pods)
    for each in (*(each["metadata"] for each in objects if each["kind"] != "PodGroup"), *pods):
        assert ("graph", "graph") == (each["labels"]["team"], each["annotations"]["note"]), each


def test_what_all_graphs_of_a_namespace_share_has_none() -> None:
    objects = graph_tree(a_whole_graph(), Facts(), SETTINGS)
    shared = [each for each in objects if each["metadata"]["name"].startswith(SHARED)]
    assert 3 == len(shared)
    for each in shared:
        assert "team" not in each["metadata"]["labels"]


def test_a_service_wins_over_its_graph_and_its_pods_over_both() -> None:
    graph = a_whole_graph(
        labels={"team": "service"},
        annotations={"note": "service"},
        extraPodMetadata={"labels": {"team": "pod"}, "annotations": {"note": "pod"}},
    )
    own = {each["kind"]: each for each in tree(graph) if each["metadata"]["name"] == "chat-frontend"}
    kinds = {"DynamoComponentDeployment", "PodDisruptionBudget", "Service", "Ingress", "Deployment"}
    assert kinds == own.keys()
    assert {"service"} == {each["metadata"]["labels"]["team"] for each in own.values()}
    assert "service" == own["DynamoComponentDeployment"]["metadata"]["annotations"]["note"]
    [pod] = templates(own["Deployment"]["spec"])
    assert ("pod", "pod") == (pod["labels"]["team"], pod["annotations"]["note"])
