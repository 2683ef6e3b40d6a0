"""Generate the components of a DynamoDeployment: each service of its graph, with the overrides."""

from collections.abc import Iterable, Mapping
from typing import Any

from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.graph_config import GraphConfig, GraphService
from dynamo_legacy.names import component_name, default_dynamo_namespace, nim_name
from dynamo_legacy.types import object_of
from kube_runtime.kind import Object

_FIXED = ("dynamoNim", "dynamoTag")
"""Fields of a component that an override cannot change."""


class MissingDependency(ValueError):
    """A service depends on one that is not in the graph."""


def components(deployment: DynamoDeployment, graph: GraphConfig) -> tuple[Object, ...]:
    """A DynamoNimDeployment for each service of the graph, in its order, without owner references.

    Raises:
        MissingDependency: a dependency is not a service of the graph.
        ValueError: the tag has no name.
    """
    addresses = {service.name: _address(deployment, service) for service in graph.services}
    return tuple(
        _component(deployment, service.name, _spec(deployment, graph, service, addresses))
        for service in graph.services
    )


def services_only(deployment: DynamoDeployment, tag: str) -> GraphConfig:
    """The graph of a deployment with an image and without configuration: the services in its spec.

    `tag` is the class to start; "" leaves that to the image.
    """
    services = tuple(GraphService(name=name) for name in deployment.spec.services)
    return GraphConfig(service=tag, services=services)


def unknown_services(deployment: DynamoDeployment, graph: GraphConfig) -> tuple[str, ...]:
    """The overridden services that are not in the graph, sorted."""
    return tuple(
        sorted(deployment.spec.services.keys() - {service.name for service in graph.services})
    )


def merge_patched(value: object, patch: object) -> Any:
    """Apply a JSON merge patch (RFC 7396), and return the result; neither argument is changed.

    Keys of the patch take precedence, also with false, 0 and ""; null removes a key.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged: Object = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patched(merged.get(name), change)
    return merged


def merged_variables(common: Iterable[Object], specific: Iterable[Object]) -> list[Object]:
    """Merge variables by name: the common ones, overridden in place by those of the service, then its others.

    The order is kept, since a variable may refer to earlier ones.
    """
    own = {entry.get("name"): entry for entry in specific}
    both = {entry.get("name"): own.get(entry.get("name"), entry) for entry in common} | own
    return list(both.values())


def _component(deployment: DynamoDeployment, service: str, spec: Object) -> Object:
    override = deployment.spec.services.get(service) or {}
    own = {name: value for name, value in override.items() if name not in _FIXED}
    merged: Object = merge_patched(spec, own)
    if deployment.spec.envs:
        merged["envs"] = merged_variables(deployment.spec.envs, merged.get("envs", ()))
    name = component_name(deployment.metadata.name, service)
    metadata = {"name": name, "namespace": deployment.metadata.namespace}
    return object_of(DynamoNimDeployment, metadata, spec=merged)


def _spec(
    deployment: DynamoDeployment,
    graph: GraphConfig,
    service: GraphService,
    addresses: Mapping[str, tuple[str, str]],
) -> Object:
    """The spec of a service from the graph's configuration."""
    spec: Object = {
        "dynamoNim": nim_name(deployment.spec.dynamo_nim),
        "dynamoTag": graph.service,
        "serviceName": service.name,
    }
    if service.is_dynamo:
        spec["dynamoNamespace"] = _dynamo_namespace(deployment, service)
    elif service.name == graph.entry_service:
        spec["ingress"] = {"enabled": True}
    if resources := _resources(service):
        spec["resources"] = {"requests": resources, "limits": resources}
    if service.autoscaling is not None:
        bounds = {
            "minReplicas": service.autoscaling.min_replicas,
            "maxReplicas": service.autoscaling.max_replicas,
        }
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        spec["autoscaling"] = {"enabled": True, **given}
    elif service.workers is not None:
        spec["replicas"] = service.workers
    if service.dependencies:
        spec["externalServices"] = {
            name: _external(service.name, name, addresses) for name in service.dependencies
        }
    return spec


def _external(service: str, name: str, addresses: Mapping[str, tuple[str, str]]) -> Object:
    if name not in addresses:
        raise MissingDependency(f"dependency {name} not found (service {service} names it)")
    key, value = addresses[name]
    return {"deploymentSelectorKey": key, "deploymentSelectorValue": value}


def _address(deployment: DynamoDeployment, service: GraphService) -> tuple[str, str]:
    if not service.is_dynamo:
        return "name", service.name
    return "dynamo", f"{service.dynamo_name}/{_dynamo_namespace(deployment, service)}"


def _dynamo_namespace(deployment: DynamoDeployment, service: GraphService) -> str:
    return service.dynamo_namespace or default_dynamo_namespace(deployment.metadata.name)


def _resources(service: GraphService) -> Object:
    resources = service.resources
    if resources is None:
        return {}
    amounts: Object = {"cpu": resources.cpu, "memory": resources.memory, "gpu": resources.gpu}
    return {
        name: amount for name, amount in {**amounts, "custom": resources.custom}.items() if amount
    }
