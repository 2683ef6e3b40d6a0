"""The CustomResourceDefinitions of `nvidia.com/v1alpha1`, made from the structs."""

from functools import cache

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.api.worker_metadata import DynamoWorkerMetadata
from kube_runtime.crd.declare import Definition
from kube_runtime.crd.structural import object_schema, summary
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

_API_VERSION_TEXT = "Group and version of this kind, `nvidia.com/v1alpha1`."
_KIND_TEXT = "Kind of the object."


def custom_resource_definitions() -> tuple[Object, ...]:
    """All our CustomResourceDefinitions, as they are applied."""
    return tuple(custom_resource_definition(resource) for resource in RESOURCES)


def custom_resource_definition(resource: type[Resource]) -> Object:
    """The CustomResourceDefinition of one kind."""
    kind = resource.KIND
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": str(kind),
            # Deleting the definition would delete every graph: Helm must leave it.
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(definition_of(resource).short_names),
            },
            "scope": "Namespaced",
            "versions": [_version(resource)],
        },
    }


def definition_of(resource: type[Resource]) -> Definition:
    """Short names, columns and subresources of a kind."""
    definition: Definition = vars(resource)["DEFINITION"]
    return definition


@cache
def resource_schema(resource: type[Resource]) -> Object:
    """The structural schema of one kind, from `apiVersion` to `status`."""
    schema = object_schema(resource)
    return {
        "description": summary(resource),
        "type": "object",
        "properties": {
            "apiVersion": {"description": _API_VERSION_TEXT, "type": "string"},
            "kind": {"description": _KIND_TEXT, "type": "string"},
            "metadata": {"type": "object"},
            **schema["properties"],
        },
    }


def _version(resource: type[Resource]) -> Object:
    definition = definition_of(resource)
    version: Object = {
        "name": resource.KIND.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.path}
            | ({"priority": column.priority} if column.priority else {})
            for column in definition.columns
        ],
        "schema": {"openAPIV3Schema": resource_schema(resource)},
    }
    if definition.status:
        version["subresources"] = {"status": {}}
    if definition.scale:
        version["subresources"]["scale"] = {
            "specReplicasPath": definition.scale.spec_replicas,
            "statusReplicasPath": definition.scale.status_replicas,
            "labelSelectorPath": definition.scale.selector,
        }
    return version
