"""The CRDs of our kinds, from their structs, and the defaults of the API server."""

from functools import cache
from typing import Any

from dynamo_operator.component import v1beta1 as component
from dynamo_operator.component.api import VERSION, DynamoComponentDeployment
from dynamo_operator.features.scaling import v1beta1 as adapter
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph import v1beta1 as graph
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel, DynamoWorkerMetadata
from dynamo_operator.requests import v1beta1 as request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from kube_runtime.crd import ConversionWebhook, ServedVersion
from kube_runtime.schema import custom_resource_definition as definition_of
from kube_runtime.schema import embedded, resource_schema
from kube_runtime.types.meta import Object, Resource

RESOURCES: tuple[type[Resource], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentScalingAdapter,
    DynamoModel,
    DynamoWorkerMetadata,
)
"""Every kind that the CRDs declare."""

KINDS = {resource.KIND.name: resource for resource in RESOURCES}
"""The same by the name of the kind."""

LATER_RESOURCES: tuple[type[Resource], ...] = (
    graph.DynamoGraphDeployment,
    component.DynamoComponentDeployment,
    request.DynamoGraphDeploymentRequest,
    adapter.DynamoGraphDeploymentScalingAdapter,
)
"""The kinds that have a second version, in it."""

_LATER = {resource.KIND.name: resource for resource in LATER_RESOURCES}

_KEEP = {"helm.sh/resource-policy": "keep"}
"""Deleting a CRD deletes every object of its kind, so `helm uninstall` must keep it."""


# An API server that serves two versions calls the webhook for each request in the one that is not stored.
def custom_resource_definitions(
    conversion: ConversionWebhook | None = None, stored: str = "", *, warns: bool = False
) -> tuple[Object, ...]:
    """Return all CRDs, as they are applied. With a conversion they serve both versions."""
    return tuple(
        custom_resource_definition(resource, conversion, stored, warns=warns) for resource in RESOURCES
    )


def custom_resource_definition(
    resource: type[Resource],
    conversion: ConversionWebhook | None = None,
    stored: str = "",
    *,
    warns: bool = False,
) -> Object:
    """Return the CRD of one kind. With a conversion, a kind with two versions serves both and stores one.

    Without a conversion it serves the version that it stores. "" as `stored` is that of a new installation:
    v1beta1 with a conversion, v1alpha1 without. If it `warns`, v1alpha1 is deprecated: the API server sends
    the Go operator's warning with each answer in it, and kubectl prints it.
    """
    later = _LATER.get(resource.KIND.name)
    if later is None:
        return definition_of(resource, _KEEP)
    stored = stored or (later.KIND.version if conversion else VERSION)
    if conversion is None:
        return definition_of(resource if stored == VERSION else later, _KEEP)
    name, newest = resource.KIND.name, later.KIND.api_version
    deprecation = f"{resource.KIND.api_version} {name} is deprecated; use {newest} {name}" if warns else ""
    versions = (
        ServedVersion(resource, is_stored=stored == VERSION, deprecation=deprecation),
        ServedVersion(later, is_stored=stored == later.KIND.version),
    )
    return definition_of(resource, _KEEP, versions, conversion)


def defaulted(document: Object) -> Object:
    """Return the document as the API server stores it: nulls dropped, schema defaults filled in.

    A document of another kind is returned unchanged.
    """
    resource = resource_of(document)
    if resource is None:
        return document
    stored: Object = filled(document, whole_schema(resource))
    return stored


def resource_of(document: Object) -> type[Resource] | None:
    """Return the type of a document in its version, or None if its kind is not one of ours."""
    kind = document.get("kind")
    if not isinstance(kind, str):
        return None
    return _LATER[kind] if is_later(document) else KINDS.get(kind)


def is_later(document: Object) -> bool:
    """Whether it is an object of a kind that has a second version, in that one."""
    kind = document.get("kind")
    later = _LATER.get(kind) if isinstance(kind, str) else None
    return later is not None and document.get("apiVersion") == later.KIND.api_version


@cache
def whole_schema(resource: type[Resource]) -> Object:
    """Return the structural schema of a kind, including its metadata."""
    schema = resource_schema(resource)
    return {**schema, "properties": {**schema["properties"], "metadata": embedded("ObjectMeta")}}


def filled(value: object, schema: Object) -> Any:
    """Return the value with nulls dropped and defaults filled in, wherever the schema describes it."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [filled(child, items) for child in value]
    if isinstance(value, float) and value.is_integer() and schema.get("type") == "integer":
        return int(value)  # the API server reads 2.0 as the integer 2
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    result: Object = {}
    for name, child in value.items():
        inner = properties.get(name, schema.get("additionalProperties"))
        if inner is None:
            result[name] = child
        elif child is not None:
            result[name] = filled(child, inner)
    for name, inner in properties.items():
        if "default" in inner:
            result.setdefault(name, inner["default"])
    return result
