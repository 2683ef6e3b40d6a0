"""The CustomResourceDefinitions carry the names, columns and subresources that users rely on."""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.crds import RESOURCES, custom_resource_definition, custom_resource_definitions, defaulted
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentSpec, Restart
from dynamo_operator.models.api import DynamoModel, DynamoWorkerMetadata
from dynamo_operator.requests.api import as_text
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.meta import Metadata, Object, Resource

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
    "DynamoModel": [*("BaseModel", "Type", "Ready", "Total", "Pods", "Age"), *("Reason", "Message")],
    "DynamoWorkerMetadata": ["Age"],
}


def version(resource: type[Resource]) -> dict[str, Any]:
    (only,) = custom_resource_definition(resource)["spec"]["versions"]
    found: dict[str, Any] = only
    return found


def test_there_are_six_kinds() -> None:
    assert list(SHORT_NAMES) == [each["spec"]["names"]["kind"] for each in custom_resource_definitions()]


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


LATER = {
    "DynamoGraphDeployment": COLUMNS["DynamoGraphDeployment"],
    "DynamoComponentDeployment": ["Available", "Backend", "Age", "Reason", "Message"],
    "DynamoGraphDeploymentRequest": [
        *("Model", "Backend", "Phase", "Profiling", "Reason", "Message", "DGD", "Age")
    ],
    "DynamoGraphDeploymentScalingAdapter": [
        *("DGD", "COMPONENT", "REPLICAS", "AGE"),
        *("DESIRED", "READY", "REASON"),
    ],
}
"""The columns of v1beta1."""
WEBHOOK = ConversionWebhook("dynamo-system", "dynamo-operator-webhook-service", ca_bundle="Y2E=")


def test_with_a_conversion_four_kinds_serve_two_versions_and_store_the_later_one() -> None:
    specs = {each["spec"]["names"]["kind"]: each["spec"] for each in custom_resource_definitions(WEBHOOK)}
    assert list(SHORT_NAMES) == list(specs)
    assert set(LATER) == {kind for kind, spec in specs.items() if "conversion" in spec}
    for kind, columns in LATER.items():
        first, later = specs[kind]["versions"]
        assert ("v1alpha1", True, False) == (first["name"], first["served"], first["storage"])
        assert ("v1beta1", True, True) == (later["name"], later["served"], later["storage"])
        assert not {"deprecated", "deprecationWarning"} & (first.keys() | later.keys())
        assert columns == [column["name"] for column in later["additionalPrinterColumns"]]
        assert "status" in later["subresources"]
        assert (kind != "DynamoGraphDeploymentRequest") == ("scale" in later["subresources"])


def test_users_of_v1alpha1_are_warned_if_that_is_asked_for() -> None:
    for definition in custom_resource_definitions(WEBHOOK, warns=True):
        kind, versions = definition["spec"]["names"]["kind"], definition["spec"]["versions"]
        expected = f"nvidia.com/v1alpha1 {kind} is deprecated; use nvidia.com/v1beta1 {kind}"
        warnings = [version.get("deprecationWarning") for version in versions if version.get("deprecated")]
        assert ([expected] if kind in LATER else []) == warnings


def test_without_a_conversion_only_the_stored_version_is_served() -> None:
    for definition in custom_resource_definitions(stored="v1beta1"):
        kind, spec = definition["spec"]["names"]["kind"], definition["spec"]
        (only,) = spec["versions"]
        expected = "v1beta1" if kind in LATER else "v1alpha1"
        assert (expected, True, True) == (only["name"], only["served"], only["storage"])
        assert "deprecated" not in only
        assert "conversion" not in spec


def test_a_conversion_is_named_by_its_service_and_certificate_authority() -> None:
    (graph, *_) = custom_resource_definitions(WEBHOOK, stored="v1alpha1")
    assert {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": {
                    "namespace": "dynamo-system",
                    "name": "dynamo-operator-webhook-service",
                    "path": "/convert",
                },
                "caBundle": "Y2E=",
            },
            "conversionReviewVersions": ["v1"],
        },
    } == graph["spec"]["conversion"]
    assert [True, False] == [version["storage"] for version in graph["spec"]["versions"]]


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


JSON: SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
SCALARS: dict[Any, SearchStrategy[Any]] = {
    str: st.text(max_size=8),
    bool: st.booleans(),
    int: st.integers(-(2**31), 2**31),
    Any: JSON,
    NoneType: st.none(),
    msgspec.Raw: JSON.map(as_text),
}


def values(type_: Any) -> SearchStrategy[Any]:
    """Values of a field's type."""
    arguments = get_args(type_)
    by_origin: dict[Any, Callable[[], SearchStrategy[Any]]] = {
        Annotated: lambda: values(arguments[0]),
        Literal: lambda: st.sampled_from(arguments),
        Union: lambda: st.one_of([values(each) for each in arguments]),
        UnionType: lambda: st.one_of([values(each) for each in arguments]),
        tuple: lambda: st.lists(values(arguments[0]), max_size=2).map(tuple),
        dict: lambda: st.dictionaries(st.text(max_size=5), values(arguments[1]), max_size=2),
    }
    if (origin := get_origin(type_)) in by_origin:
        return by_origin[origin]()
    return SCALARS[type_] if type_ in SCALARS else instances(type_)


def instances(struct: type[msgspec.Struct]) -> SearchStrategy[Any]:
    """Instances of a struct. Optional fields are left out at random, as users do."""
    fields = msgspec.structs.fields(struct)
    needed = {info.name: values(info.type) for info in fields if info.required}
    optional = {info.name: values(info.type) for info in fields if not info.required}
    if struct is Metadata:
        optional = {"name": st.text(max_size=5), "labels": st.dictionaries(st.text(), st.text())}
    return st.fixed_dictionaries(needed, optional=optional).map(lambda given: struct(**given))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.KIND.name)
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_decoding_what_was_encoded_gives_the_same(resource: type[Resource], data: st.DataObject) -> None:
    value = data.draw(instances(resource))
    assert value == msgspec.json.decode(msgspec.json.encode(value), type=resource)


def test_defaults_are_not_written() -> None:
    spec = DynamoGraphDeploymentSpec(services={"A": ComponentSpec()}, restart=Restart(id="1"))
    assert {"services": {"A": {}}, "restart": {"id": "1"}} == msgspec.to_builtins(spec)


def test_an_unknown_field_is_ignored() -> None:
    for resource in RESOURCES:
        assert resource() == msgspec.json.decode(b'{"kind":"X","later":{"a":1}}', type=resource)


def stored(service: Any) -> Any:
    document = {"kind": "DynamoGraphDeployment", "spec": {"services": {"A": service}}}
    return defaulted(document)["spec"]["services"]["A"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"multinode": {}}, {"multinode": {"nodeCount": 2}}),
        ({"multinode": {"nodeCount": None}}, {"multinode": {"nodeCount": 2}}),
        ({"multinode": {"nodeCount": 4}}, {"multinode": {"nodeCount": 4}}),
        ({"scalingAdapter": {}}, {"scalingAdapter": {"enabled": False}}),
        ({"replicas": None, "labels": {"a": None}}, {"labels": {}}),
        ({"replicas": 2.0}, {"replicas": 2}),
        (
            {"extraPodSpec": {"mainContainer": {"ports": [{"containerPort": 1}]}}},
            {"extraPodSpec": {"mainContainer": {"ports": [{"containerPort": 1, "protocol": "TCP"}]}}},
        ),
        (
            {"eppConfig": {"config": {"later": None, "plugins": [{"type": "t", "name": None}]}}},
            {"eppConfig": {"config": {"later": None, "plugins": [{"type": "t"}]}}},
        ),
    ],
)
def test_nulls_are_dropped_and_defaults_filled_in(given: Object, expected: Object) -> None:
    assert expected == stored(given)


def test_a_service_that_is_null_is_dropped() -> None:
    document = {"kind": "DynamoGraphDeployment", "spec": {"services": {"A": None}}}
    assert {"services": {}} == defaulted(document)["spec"]


def test_the_document_that_was_given_stays_as_it_was() -> None:
    document = {"kind": "DynamoModel", "spec": {"modelName": "m", "source": None}}
    assert {"modelName": "m", "modelType": "base"} == defaulted(document)["spec"]
    assert {"modelName": "m", "source": None} == document["spec"]


def test_filling_in_twice_changes_nothing_more() -> None:
    document = {"kind": "DynamoGraphDeployment", "spec": {"restart": {"id": "1", "strategy": {}}}}
    assert defaulted(document) == defaulted(defaulted(document))


def test_a_document_of_another_kind_comes_back_as_it_is() -> None:
    for document in ({"kind": "ConfigMap", "data": None}, {"kind": ["odd"]}, {}):
        assert document == defaulted(document)
