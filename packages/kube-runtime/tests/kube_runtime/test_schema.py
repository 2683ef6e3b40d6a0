"""The rules that the API server has for structural schemas hold at every node of ours."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dynamo_operator.component.api import DynamoComponentDeployment, DynamoComponentDeploymentSpec, Multinode
from dynamo_operator.crds import LATER_RESOURCES, RESOURCES, custom_resource_definition
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.schema import declared, object_schema, resource_schema, unwrapped
from kube_runtime.types.meta import Object, Resource

Nodes = Iterator[tuple[str, Object]]
ALL = pytest.mark.parametrize(
    "resource", [*RESOURCES, *LATER_RESOURCES], ids=lambda each: f"{each.KIND.name} {each.KIND.version}"
)
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
ALLOWED = {
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    INT_OR_STRING,
    PRESERVE,
}


def nodes(schema: Object, path: str = "") -> Nodes:
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from nodes(schema[keyword], f"{path}.{keyword}")


def node(resource: type[Resource], *path: str) -> Object:
    schema = resource_schema(resource)
    for part in path:
        schema = schema[part] if part in {"items", "additionalProperties"} else schema["properties"][part]
    return schema


@ALL
def test_every_node_has_a_type_or_takes_any_value_and_structural_keywords_only(
    resource: type[Resource],
) -> None:
    for path, schema in nodes(resource_schema(resource)):
        assert schema.get("type") or schema.get(INT_OR_STRING) or schema.get(PRESERVE), path
        unexpected = set(schema) - ALLOWED
        assert set() == unexpected - ({"anyOf"} if schema.get(INT_OR_STRING) else set()), path
        assert (schema.get("type") == "array") == ("items" in schema), path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        if schema.get("type") == "object" and path != ".metadata":
            assert schema.keys() & {"properties", "additionalProperties", PRESERVE}, path


@ALL
def test_required_fields_and_list_keys_exist(resource: type[Resource]) -> None:
    for path, schema in nodes(resource_schema(resource)):
        assert set(schema.get("required", ())) <= set(schema.get("properties", ())), path
        if keys := schema.get("x-kubernetes-list-map-keys"):
            item = schema["items"]
            for key in keys:
                is_required = key in item.get("required", ())
                assert is_required or "default" in item["properties"][key], f"{path} {key}"


@ALL
def test_a_definition_is_far_from_the_size_limit_of_the_store(resource: type[Resource]) -> None:
    size = len(msgspec.json.encode(custom_resource_definition(resource)))
    # Below this even a client-side apply, which keeps a copy in an annotation, can store it.
    assert size < 256 * 1024


@ALL
def test_every_rule_guards_each_field_that_it_reads(resource: type[Resource]) -> None:
    for path, schema in nodes(resource_schema(resource)):
        for rule in schema.get("x-kubernetes-validations", ()):
            for name in schema.get("properties", ()):
                reads = re.search(rf"self\.{name}\b", rule["rule"])
                is_safe = f"has(self.{name})" in rule["rule"] or name in schema.get("required", ())
                assert not reads or is_safe, f"{path} {name}"


def structs(struct: Any) -> Iterator[type[msgspec.Struct]]:
    """The struct and those below it."""
    bare, _ = unwrapped(struct)
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        yield bare
        for each in declared(bare):
            yield from structs(each.type)
    else:
        for argument in getattr(bare, "__args__", ()):
            yield from structs(argument)


@ALL
def test_every_field_has_one_text_that_ends_in_a_full_stop(resource: type[Resource]) -> None:
    for struct in structs(resource):
        if not struct.__module__.startswith("dynamo_operator.crds"):
            continue
        fields = {info.encode_name for info in msgspec.structs.fields(struct)} - {"metadata"}
        texts = {each.name: each.field.text for each in declared(struct)}
        schemas = object_schema(struct)["properties"]
        assert fields == set(texts), struct
        assert texts == {name: each["description"] for name, each in schemas.items()}
        for name, text in texts.items():
            assert text.endswith("."), f"{struct.__name__}.{name}"
            assert " ".join(text.split()) == text, f"{struct.__name__}.{name}"


@ALL
def test_a_default_of_the_schema_is_the_default_of_the_struct(resource: type[Resource]) -> None:
    for struct in structs(resource):
        defaults = {info.encode_name: info.default for info in msgspec.structs.fields(struct)}
        for each in declared(struct):
            if each.field.default is not msgspec.UNSET:
                assert each.field.default == defaults[each.name], f"{struct.__name__}.{each.name}"


def test_the_pod_spec_needs_no_containers_and_the_main_container_no_name() -> None:
    pod = node(DynamoComponentDeployment, "spec", "extraPodSpec")
    main = node(DynamoComponentDeployment, "spec", "extraPodSpec", "mainContainer")
    container = node(DynamoComponentDeployment, "spec", "extraPodSpec", "containers", "items")
    assert "required" not in pod
    assert "required" not in main
    assert ["name"] == container["required"]


OF_REFERENCES = {"required": ["key"], "x-kubernetes-map-type": "atomic"}
DECLARED: list[tuple[type[Resource], str, Object]] = [
    (
        DynamoComponentDeployment,
        "extraPodSpec.mainContainer.ports",
        {"x-kubernetes-list-map-keys": ["containerPort", "protocol"]},
    ),
    (DynamoComponentDeployment, "extraPodSpec.mainContainer.ports.items.protocol", {"default": "TCP"}),
    (DynamoComponentDeployment, "livenessProbe.grpc.service", {"default": ""}),
    (DynamoGraphDeployment, "envs.items.valueFrom.secretKeyRef", OF_REFERENCES),
    (DynamoGraphDeployment, "envs.items.valueFrom.secretKeyRef.name", {"default": ""}),
    (DynamoGraphDeployment, "envs.items.valueFrom.configMapKeyRef", OF_REFERENCES),
    (DynamoGraphDeployment, "envs.items.valueFrom.configMapKeyRef.name", {"default": ""}),
]


@pytest.mark.parametrize(("resource", "path", "expected"), DECLARED)
def test_a_field_of_pods_is_as_kubernetes_declares_it(
    resource: type[Resource], path: str, expected: Object
) -> None:
    schema = node(resource, "spec", *path.split("."))
    assert expected == {keyword: schema[keyword] for keyword in expected}


def test_metadata_of_an_embedded_claim_template_lists_labels_and_annotations() -> None:
    volume = node(DynamoComponentDeployment, "spec", "extraPodSpec", "volumes", "items")
    claim = volume["properties"]["ephemeral"]["properties"]["volumeClaimTemplate"]
    assert {"annotations", "labels"} == set(claim["properties"]["metadata"]["properties"])


def test_a_component_of_a_graph_has_the_schema_of_a_component_on_its_own() -> None:
    service = node(DynamoGraphDeployment, "spec", "services", "additionalProperties")
    component = node(DynamoComponentDeployment, "spec")
    alone = {name: each for name, each in component["properties"].items() if name != "backendFramework"}
    assert service["properties"] == alone


def test_a_number_has_the_bounds_that_its_struct_declares() -> None:
    expected = {"description": "", "type": "integer", "format": "int32", "minimum": 2, "default": 2}
    schema = object_schema(Multinode)
    assert expected == {**schema["properties"]["nodeCount"], "description": ""}
    assert ["nodeCount"] == schema["required"]


def test_fields_that_a_struct_inherits_are_part_of_its_schema() -> None:
    properties = object_schema(DynamoComponentDeploymentSpec)["properties"]
    assert {"replicas", "backendFramework"} <= set(properties)


def test_what_users_write_is_bound_only_where_no_stored_object_can_break_the_bound() -> None:
    """Those of the Go operator, and those of fields that its v0.9 line does not have: see decision 26."""
    keywords = ("maxItems", "maxProperties", "maxLength")
    found = {
        f"{resource.KIND.name}{path}": schema[keyword]
        for resource in RESOURCES
        for path, schema in nodes(resource_schema(resource))
        for keyword in keywords
        if path.startswith(".spec.") and keyword in schema
    }
    experimental = (
        "checkpoint.job.gmsClientContainers.items",
        "checkpoint.targetContainerName",
        "gpuMemoryService.extraClientContainers.items",
        "gpuMemoryService.extraClientPods.items.name",
    )
    components = (
        "DynamoComponentDeployment.spec",
        "DynamoGraphDeployment.spec.services.additionalProperties",
    )
    profiling = "DynamoGraphDeploymentRequest.spec.profilingConfig"
    names = ("serviceAccountName", "priorityClassName", "runtimeClassName")
    many = ("nodeSelector", "env", "envFrom", "imagePullSecrets", "labels", "annotations")
    assert found == {
        "DynamoGraphDeployment.spec.pvcs": 100,
        "DynamoGraphDeployment.spec.services": 25,
        "DynamoGraphDeployment.spec.experimental.kvTransferPolicy.labelKey": 317,
        **{f"{component}.{name}": 63 for component in components for name in experimental},
        **{f"{profiling}.{name}": 253 for name in names},
        **{f"{profiling}.{name}": 1000 for name in many},
    }
