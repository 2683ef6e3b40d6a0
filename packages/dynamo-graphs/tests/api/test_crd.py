"""The CustomResourceDefinitions carry the names, columns and subresources that users rely on."""

from typing import Any

import pytest

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.crds import RESOURCES, custom_resource_definition, custom_resource_definitions
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel, DynamoWorkerMetadata
from kube_runtime.types.meta import Resource

SHORT_NAMES = {
    "DynamoGraphDeployment": ["dgd"],
    "DynamoComponentDeployment": ["dcd"],
    "DynamoGraphDeploymentRequest": ["dgdr"],
    "DynamoGraphDeploymentScalingAdapter": ["dgdsa"],
    "DynamoModel": ["dm", "dmodel"],
    "DynamoWorkerMetadata": ["dwm"],
}
COLUMNS = {
    "DynamoGraphDeployment": [
        *("Ready", "Backend", "Age"),
        *("State", "Services", "GPUs", "Progress", "Reason", "Message"),
    ],
    "DynamoComponentDeployment": [
        *("DynamoComponent", "Available", "Backend", "Age"),
        *("Reason", "Message"),
    ],
    "DynamoGraphDeploymentRequest": [
        *("Model", "Backend", "State", "DGD-State", "Age"),
        *("Phase", "Reason", "Message"),
    ],
    "DynamoGraphDeploymentScalingAdapter": [
        *("DGD", "SERVICE", "REPLICAS", "AGE"),
        *("DESIRED", "READY", "REASON"),
    ],
    "DynamoModel": [
        *("BaseModel", "Type", "Ready", "Total", "Pods", "Age"),
        *("Reason", "Message"),
    ],
    "DynamoWorkerMetadata": ["Age"],
}


def version(resource: type[Resource]) -> dict[str, Any]:
    (only,) = custom_resource_definition(resource)["spec"]["versions"]
    found: dict[str, Any] = only
    return found


def test_there_are_six_kinds() -> None:
    assert list(SHORT_NAMES) == [
        each["spec"]["names"]["kind"] for each in custom_resource_definitions()
    ]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.KIND.name)
def test_a_definition_has_the_names_and_columns_of_its_kind(resource: type[Resource]) -> None:
    definition = custom_resource_definition(resource)
    name = resource.KIND.name
    names = definition["spec"]["names"]
    assert f"{names['plural']}.nvidia.com" == definition["metadata"]["name"]
    assert SHORT_NAMES[name] == names["shortNames"]
    assert ([] if name == "DynamoWorkerMetadata" else ["dynamo"]) == names.get("categories", [])
    assert (name.lower(), f"{name}List") == (names["singular"], names["listKind"])
    assert COLUMNS[name] == [each["name"] for each in version(resource)["additionalPrinterColumns"]]
    assert "v1alpha1" == version(resource)["name"]


def test_helm_leaves_every_definition_where_it_is() -> None:
    for definition in custom_resource_definitions():
        assert "keep" == definition["metadata"]["annotations"]["helm.sh/resource-policy"]


def test_graphs_components_and_scaling_adapters_can_be_scaled() -> None:
    found = {each: version(each).get("subresources", {}) for each in RESOURCES}
    scaled = {each: parts["scale"] for each, parts in found.items() if "scale" in parts}
    usual = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    of_component = {**usual, "statusReplicasPath": ".status.service.replicas"}
    assert {
        DynamoComponentDeployment: of_component,
        DynamoGraphDeployment: usual,
        DynamoGraphDeploymentScalingAdapter: usual,
    } == scaled


def test_every_kind_but_worker_metadata_has_a_status_of_its_own() -> None:
    without = [each for each in RESOURCES if "subresources" not in version(each)]
    assert [DynamoWorkerMetadata] == without
    assert "status" in version(DynamoModel)["subresources"]
