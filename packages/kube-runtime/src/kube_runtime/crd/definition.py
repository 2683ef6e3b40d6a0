"""The CustomResourceDefinition of a kind, from its structs."""

from collections.abc import Mapping
from functools import cache

from kube_runtime.crd.declare import Definition
from kube_runtime.crd.structural import object_schema, summary
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource


def custom_resource_definition(
    resource: type[Resource], annotations: Mapping[str, str] | None = None
) -> Object:
    """The CustomResourceDefinition of one namespaced kind with one version."""
    kind, metadata = resource.KIND, {"name": str(resource.KIND)}
    names = definition_of(resource)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata | ({"annotations": dict(annotations)} if annotations else {}),
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(names.short_names),
                **({"categories": list(names.categories)} if names.categories else {}),
            },
            "scope": "Namespaced",
            "versions": [_version(resource)],
        },
    }


def definition_of(resource: type[Resource]) -> Definition:
    """Short names, columns and subresources of a kind, which its `DEFINITION` declares."""
    definition: Definition = vars(resource).get("DEFINITION", Definition())
    return definition


@cache
def resource_schema(resource: type[Resource]) -> Object:
    """The structural schema of one kind, from `apiVersion` to `status`."""
    schema, version = object_schema(resource), resource.KIND.api_version
    text = f"Group and version of this kind, `{version}`."
    return {
        "description": summary(resource),
        "type": "object",
        "properties": {
            "apiVersion": {"description": text, "type": "string"},
            "kind": {"description": "Kind of the object.", "type": "string"},
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
