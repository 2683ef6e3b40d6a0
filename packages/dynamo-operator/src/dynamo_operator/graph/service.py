"""A service of a graph as the component that it becomes."""

from typing import Any

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import (
    ComponentSpec,
    DynamoComponentDeployment,
)
from dynamo_operator.component.plan import (
    merged_environment,
    object_metadata,
    pruned,
    service_annotations,
    service_dynamo_namespace,
    service_labels,
    variable,
)
from dynamo_operator.features.rollouts.plan import (
    NAMESPACE_PREFIX_VARIABLE,
    PLAIN,
    WorkerRevision,
    has_revisions,
    worker_component_name,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.replicas import as_configured
from dynamo_operator.settings import RenderSettings
from kube_runtime.kind import Object
from kube_runtime.types.meta import OwnerReference, R

_INHERITED = (labels.ENABLE_METRICS, labels.DISCOVERY_BACKEND)
"""Annotations of the graph that its components inherit."""

_FINDS_WORKERS = ("frontend", "epp")
"""Component types that look for workers by the prefix of their Dynamo namespace."""


# Nothing after this reads the graph, so the component contains everything that rendering needs,
# such as the graph's environment, feature annotations and framework.
def component_resource(
    graph: DynamoGraphDeployment,
    key: str,
    settings: RenderSettings,
    revision: WorkerRevision = PLAIN,
) -> Object:
    """Return the DynamoComponentDeployment of one service."""
    service = as_configured(graph, key)
    is_revised = revision is not PLAIN and has_revisions(service)
    suffix = revision.suffix if is_revised else ""
    annotations = service_annotations(graph, service) | {
        name: graph.metadata.annotations[name]
        for name in _INHERITED
        if name in graph.metadata.annotations
    }
    dynamo_namespace = service_dynamo_namespace(graph, service, suffix)
    system = {
        labels.COMPONENT: names.label_value(key),
        labels.DYNAMO_NAMESPACE: dynamo_namespace,
        labels.GRAPH: names.label_value(graph.metadata.name),
    }
    spec: Object = _explicit(pruned(msgspec.to_builtins(service)))
    spec.pop("disruptionBudget", None)  # the graph has one for all revisions of the service
    spec |= {
        "serviceName": key,
        "dynamoNamespace": dynamo_namespace,
        "labels": service_labels(graph, service) | system,
    }
    if graph.spec.backend_framework:
        spec["backendFramework"] = graph.spec.backend_framework
    if annotations:
        spec["annotations"] = annotations
    if graph.spec.envs:
        spec["envs"] = pruned(merged_environment(graph.spec.envs, service.envs))
    if key in revision.replicas:
        spec["replicas"] = revision.replicas[key]
    if revision is not PLAIN and (variables := _namespace_variables(graph, service, revision)):
        spec["envs"] = merged_environment(variables, spec.get("envs", ()))
    if service.component_type == "frontend" and service.ingress is None:
        spec["ingress"] = default_ingress(graph.metadata.name, settings)
    own_annotations = {
        name: annotations[name] for name in graph.spec.annotations if name in annotations
    }
    if revision.content and is_revised:
        own_annotations[labels.WORKER_CONTENT] = revision.content
    metadata = object_metadata(
        graph.metadata.namespace,
        worker_component_name(graph, key, revision)
        if suffix
        else names.component_name(graph.metadata.name, key),
        spec["labels"] | ({labels.WORKER_HASH: suffix} if suffix else {}),
        own_annotations,
    )
    return DynamoComponentDeployment.KIND.manifest(metadata, spec=spec)


def _namespace_variables(
    graph: DynamoGraphDeployment, service: ComponentSpec, revision: WorkerRevision
) -> list[Object]:
    """Variables that place workers in the Dynamo namespace of their revision, and let others find them there.

    Variables that the user sets on the container are omitted.
    """
    variables: dict[str, str] = {}
    if revision.suffix and has_revisions(service):
        base = names.revisions_namespace_prefix(graph.metadata.namespace, graph.metadata.name)
        variables = {"DYN_NAMESPACE": base, "DYN_NAMESPACE_WORKER_SUFFIX": revision.suffix}
    elif revision.namespace_prefix and service.component_type in _FINDS_WORKERS:
        variables = {
            "DYN_NAMESPACE": revision.namespace_prefix,
            NAMESPACE_PREFIX_VARIABLE: revision.namespace_prefix,
        }
    container = (service.extra_pod_spec or {}).get("mainContainer") or {}
    users = {entry["name"] for entry in container.get("env") or ()}
    return [variable(name, value) for name, value in variables.items() if name not in users]


def component_of(graph: DynamoGraphDeployment, desired: Object) -> DynamoComponentDeployment:
    """Convert a rendered component to the struct that its controller reads, with the graph as its owner."""
    return owned_by(graph, msgspec.convert(desired, DynamoComponentDeployment))


def owned_by(graph: DynamoGraphDeployment, resource: R) -> R:
    """Return the object with the graph as its controlling owner."""
    owner = OwnerReference(
        kind=DynamoGraphDeployment.KIND.name,
        name=graph.metadata.name,
        uid=graph.metadata.uid,
        api_version=DynamoGraphDeployment.KIND.api_version,
        controller=True,
    )
    metadata = msgspec.structs.replace(resource.metadata, owner_references=(owner,))
    return msgspec.structs.replace(resource, metadata=metadata)


def default_ingress(graph: str, settings: RenderSettings) -> Object:
    """The ingress of a frontend without one; explicit even if disabled, to record the decision."""
    enabled = bool(settings.virtual_service_gateway or settings.ingress_class_name)
    tls = settings.ingress_tls_secret_name
    ingress: Object = {
        "enabled": enabled,
        "host": graph,
        "useVirtualService": bool(settings.virtual_service_gateway),
        "virtualServiceGateway": settings.virtual_service_gateway,
        "hostSuffix": settings.ingress_host_suffix,
        "ingressControllerClassName": settings.ingress_class_name,
        "tls": {"secretName": tls} if tls else None,
    }
    return {name: value for name, value in ingress.items() if value}


_EXPLICIT: dict[str, Object] = {
    "ingress": {"enabled": False},
    "multinode": {"nodeCount": 2},
    "scalingAdapter": {"enabled": False},
    "tls": {"secretName": ""},
}
"""The explicit form of empty maps with these names."""
_USER_DEFINED = frozenset(("extraPodSpec", "eppConfig"))


def _explicit(value: object) -> Any:
    """Drop empty maps of our types, or replace them by their explicit form if they have a meaning.

    Server-side apply ignores an empty map: entries that the map had before would stay.
    """
    if not isinstance(value, dict):
        return value
    kept = {
        name: child if name in _USER_DEFINED else _explicit(child) for name, child in value.items()
    }
    explicit = {
        name: _EXPLICIT.get(name, {}) if child == {} else child for name, child in kept.items()
    }
    return {name: child for name, child in explicit.items() if child != {}}
