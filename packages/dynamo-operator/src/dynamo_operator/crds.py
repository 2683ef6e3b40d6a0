"""The CRDs of `nvidia.com/v1alpha1`, from the structs of our kinds, and the defaults of the API server."""

from functools import cache
from typing import Any

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel, DynamoWorkerMetadata
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
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

_KEEP = {"helm.sh/resource-policy": "keep"}
"""Deleting a CRD deletes every object of its kind, so `helm uninstall` must keep it."""


def custom_resource_definitions() -> tuple[Object, ...]:
    """Return all CRDs, as they are applied."""
    return tuple(custom_resource_definition(resource) for resource in RESOURCES)


def custom_resource_definition(resource: type[Resource]) -> Object:
    """Return the CRD of one kind."""
    return definition_of(resource, _KEEP)


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
    """Return the type of a document, or None if its kind is not one of ours."""
    kind = document.get("kind")
    return KINDS.get(kind) if isinstance(kind, str) else None


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
