"""A service of a graph as a separate component: the common input of both providers.

Nothing after this reads the graph, so a component carries everything that rendering needs: the graph's
environment, its feature annotations and its framework are written into it.
"""

from typing import Any

import msgspec

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import ComponentSpec, DynamoComponentDeployment
from dynamo_graphs.api.deployment_config import as_configured
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.revision import (
    NAMESPACE_PREFIX_VARIABLE,
    PLAIN,
    WorkerRevision,
    has_revisions,
    worker_component_name,
)
from dynamo_graphs.render.merge import merged_environment, pruned, variable
from dynamo_graphs.render.metadata import (
    object_metadata,
    service_annotations,
    service_dynamo_namespace,
    service_labels,
)
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object
from kube_runtime.types.meta import OwnerReference, R

_HANDED_ON = (labels.ENABLE_METRICS, labels.DISCOVERY_BACKEND)
"""Annotations of the graph that its components follow."""


_FINDS_WORKERS = ("frontend", "epp")
"""Types of components that look for workers by a prefix of their Dynamo namespace."""


def component_resource(
    graph: DynamoGraphDeployment,
    key: str,
    settings: RenderSettings,
    generation: WorkerRevision = PLAIN,
) -> Object:
    """The DynamoComponentDeployment of one service, with all that the graph says of it."""
    service = as_configured(graph, key)
    suffix = generation.suffix if has_revisions(service) else ""
    graphs = graph.metadata.annotations
    annotations = service_annotations(graph, service) | {
        name: graphs[name] for name in _HANDED_ON if name in graphs
    }
    spec = _spec(graph, key, service, annotations, generation)
    if ours := _whereabouts(graph, service, generation):
        spec["envs"] = merged_environment(ours, spec.get("envs", ()))
    if service.component_type == "frontend" and service.ingress is None:
        spec["ingress"] = default_ingress(graph.metadata.name, settings)
    noted = {name: annotations[name] for name in graph.spec.annotations if name in annotations}
    if generation.content and has_revisions(service):
        noted[labels.WORKER_CONTENT] = generation.content
    metadata = object_metadata(
        graph.metadata.namespace,
        worker_component_name(graph, key, generation),
        spec["labels"] | ({labels.WORKER_HASH: suffix} if suffix else {}),
        noted,
    )
    return {
        "apiVersion": DynamoComponentDeployment.KIND.api_version,
        "kind": DynamoComponentDeployment.KIND.name,
        "metadata": metadata,
        "spec": spec,
    }


def _spec(
    graph: DynamoGraphDeployment,
    key: str,
    service: ComponentSpec,
    annotations: dict[str, str],
    generation: WorkerRevision,
) -> Object:
    """What the service says, and what the graph says of all its services."""
    suffix = generation.suffix if has_revisions(service) else ""
    dynamo_namespace = service_dynamo_namespace(graph, service, suffix)
    system = {
        labels.COMPONENT: names.label_value(key),
        labels.DYNAMO_NAMESPACE: dynamo_namespace,
        labels.GRAPH: names.label_value(graph.metadata.name),
    }
    spec: Object = _explicit(pruned(msgspec.to_builtins(service)))
    spec.pop("disruptionBudget", None)  # the graph makes it, over all generations of the service
    spec |= {
        "serviceName": key,
        "dynamoNamespace": dynamo_namespace,
        "labels": service_labels(graph, service) | system,
    }
    if graph.spec.backend_framework:
        spec["backendFramework"] = graph.spec.backend_framework
    if annotations:
        spec["annotations"] = annotations
    if key in generation.replicas:
        spec["replicas"] = generation.replicas[key]
    if graph.spec.envs:
        spec["envs"] = pruned(merged_environment(graph.spec.envs, service.envs))
    return spec


def _whereabouts(
    graph: DynamoGraphDeployment, service: ComponentSpec, generation: WorkerRevision
) -> list[Object]:
    """How the runtime puts workers into the Dynamo namespace of their generation, and finds them there.

    A variable that the user sets on the container stays the user's.
    """
    variables: dict[str, str] = {}
    if generation.suffix and has_revisions(service):
        base = names.revisions_namespace_prefix(graph.metadata.namespace, graph.metadata.name)
        variables = {"DYN_NAMESPACE": base, "DYN_NAMESPACE_WORKER_SUFFIX": generation.suffix}
    elif generation.namespace_prefix and service.component_type in _FINDS_WORKERS:
        variables = {
            "DYN_NAMESPACE": generation.namespace_prefix,
            NAMESPACE_PREFIX_VARIABLE: generation.namespace_prefix,
        }
    container = (service.extra_pod_spec or {}).get("mainContainer") or {}
    users = {entry["name"] for entry in container.get("env") or ()}
    return [variable(name, value) for name, value in variables.items() if name not in users]


def component_of(graph: DynamoGraphDeployment, desired: Object) -> DynamoComponentDeployment:
    """A component as its controller will read it: with the graph as its owner."""
    return owned_by(graph, msgspec.convert(desired, DynamoComponentDeployment))


def owned_by(graph: DynamoGraphDeployment, resource: R) -> R:
    """The object with the graph as its controlling owner."""
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
    """The ingress of a frontend that names none; written even if off, since that was decided."""
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
"""What an empty map of that name says."""
_USERS_OWN = frozenset(("extraPodSpec", "eppConfig"))


def _explicit(value: object) -> Any:
    """The value with every empty map of ours left out, or said in full if it means something.

    An empty map says nothing to a server-side apply: what the map held before would stay.
    """
    if not isinstance(value, dict):
        return value
    kept = {
        name: child if name in _USERS_OWN else _explicit(child) for name, child in value.items()
    }
    explicit = {
        name: _EXPLICIT.get(name, {}) if child == {} else child for name, child in kept.items()
    }
    return {name: child for name, child in explicit.items() if child != {}}
