"""The CustomResourceDefinitions of `nvidia.com/v1alpha1`, made from the structs."""

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.api.worker_metadata import DynamoWorkerMetadata
from kube_runtime.crd import definition
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

RESOURCES: tuple[type[Resource], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentScalingAdapter,
    DynamoModel,
    DynamoWorkerMetadata,
)
"""Every kind that we define."""

_KEEP = {"helm.sh/resource-policy": "keep"}
"""Deleting a CRD would delete every object of its kind: Helm must keep it."""


def custom_resource_definitions() -> tuple[Object, ...]:
    """All our CustomResourceDefinitions, as they are applied."""
    return tuple(custom_resource_definition(resource) for resource in RESOURCES)


def custom_resource_definition(resource: type[Resource]) -> Object:
    """The CustomResourceDefinition of one of our kinds."""
    return definition.custom_resource_definition(resource, _KEEP)
