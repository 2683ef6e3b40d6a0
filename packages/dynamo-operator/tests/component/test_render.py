"""What a component becomes: Services, an Ingress, a Deployment."""

from typing import Any

import pytest
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.render import component_parts, is_surplus_group, model_services
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, LeaderWorkerSet, PodGroup
from kube_runtime.types.meta import Metadata, Object, from_plain
from specs import a_component

SETTINGS = RenderSettings()
GRAPH = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "name": "chat", "uid": "u"}


def objects(**spec: Any) -> dict[tuple[str, str], Object]:
    around, workloads = component_parts(
        a_component(metadata={"ownerReferences": [GRAPH]}, **spec), Facts(), SETTINGS
    )
    return {(each["kind"], each["metadata"]["name"]): each for each in (*around, *workloads)}


def test_labels_of_the_user_take_no_pod_from_its_selectors() -> None:
    theirs = dict.fromkeys(labels.SELECTING, "theirs")
    rendered = objects(labels=theirs, extraPodMetadata={"labels": theirs})
    deployment = rendered["Deployment", "w"]["spec"]
    of_pods = deployment["template"]["metadata"]["labels"].items()
    assert deployment["selector"]["matchLabels"].items() <= of_pods
    assert rendered["Service", "w"]["spec"]["selector"].items() <= of_pods
    assert "theirs" not in dict(of_pods).values()


@pytest.mark.parametrize(
    ("surge", "rendered"), [("2", 2), ("0", 0), ("30%", "30%"), ("", "25%"), (None, "25%")]
)
def test_bounds_of_an_update_are_numbers_or_percentages(surge: str | None, rendered: Any) -> None:
    key = "nvidia.com/deployment-rolling-update-max-surge"
    annotations = {} if surge is None else {key: surge}
    strategy = objects(annotations=annotations)["Deployment", "w"]["spec"]["strategy"]
    assert rendered == strategy["rollingUpdate"]["maxSurge"]


def test_components_of_one_model_share_its_service() -> None:
    model = {"name": "acme/chat-7b"}
    one = model_services("default", a_component("a", modelRef=model).spec)
    other = model_services("default", a_component("b", modelRef=model).spec)
    assert one == other
    assert ["dynamo-model-8a58cea0"] == [each["metadata"]["name"] for each in one]


def test_each_replica_has_two_objects_and_those_over_the_number_are_surplus() -> None:
    several = a_component("c", replicas=3, multinode={"nodeCount": 2})
    _, workloads = component_parts(several, Facts(), SETTINGS)
    types = {"PodGroup": PodGroup, "LeaderWorkerSet": LeaderWorkerSet}
    live = [types[each["kind"]](from_plain(each["metadata"], Metadata)) for each in workloads]
    groups = [(each.KIND.name, each.metadata.name) for each in live]
    assert [(kind, f"c-{number}") for number in range(3) for kind in types] == groups
    for replicas in range(4):
        fewer = replace(several, spec=replace(several.spec, replicas=replicas))
        assert live[2 * replicas :] == [each for each in live if is_surplus_group(fewer, each)]
    assert not any(is_surplus_group(a_component("c"), each) for each in live), "it runs on one node now"
