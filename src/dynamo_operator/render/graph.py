"""The objects of a graph: accounts and permissions, then one DynamoComponentDeployment per service.

The hard part is that a component must carry everything that its own controller needs, because that
controller never reads the graph: the graph's environment, its switches and its framework are
written into each component.
"""

from typing import Any

import msgspec

from dynamo_operator.api import labels, names
from dynamo_operator.api.component import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.facts import Facts
from dynamo_operator.kube.kind import Object
from dynamo_operator.render import deployment_config
from dynamo_operator.render.canonical import canonical
from dynamo_operator.render.merge import merged_environment, pruned
from dynamo_operator.render.plan import discovery_backend
from dynamo_operator.render.rbac import cluster_role_objects, discovery_objects
from dynamo_operator.settings import RenderSettings

_HANDED_ON = (labels.ENABLE_METRICS, labels.DISCOVERY_BACKEND)
"""Annotations of the graph that its components follow."""


def graph_objects(
    graph: DynamoGraphDeployment,
    facts: Facts,  # noqa: ARG001  # one signature for graphs and components
    settings: RenderSettings,
) -> tuple[Object, ...]:
    """The objects that the graph controls, without owner references, in order of creation."""
    namespace, name = graph.metadata.namespace, graph.metadata.name
    discovery: tuple[Object, ...] = ()
    if discovery_backend(graph.metadata.annotations, settings) == "kubernetes":
        discovery = discovery_objects(namespace, name)
    components = (
        _component(graph, key, service, settings)
        for key, service in sorted(graph.spec.services.items())
    )
    return tuple(map(canonical, (*discovery, *components)))


def graph_shared_objects(
    graph: DynamoGraphDeployment,
    facts: Facts,  # noqa: ARG001  # one signature for graphs and components
    settings: RenderSettings,
) -> tuple[Object, ...]:
    """The planner's account, which every graph that uses it owns and none controls.

    In restricted mode the installation provides them.
    """
    has_planner = any(
        service.component_type == "planner" for service in graph.spec.services.values()
    )
    cluster_role = settings.planner_cluster_role_name
    if not has_planner or settings.restricted_namespace or not cluster_role:
        return ()
    namespace = graph.metadata.namespace
    objects = cluster_role_objects(namespace, names.PLANNER_SERVICE_ACCOUNT, cluster_role)
    return tuple(map(canonical, objects))


def _component(
    graph: DynamoGraphDeployment, key: str, service: ComponentSpec, settings: RenderSettings
) -> Object:
    namespace, name = graph.metadata.namespace, graph.metadata.name
    dynamo_namespace = (
        names.GLOBAL_DYNAMO_NAMESPACE
        if service.global_dynamo_namespace
        else names.dynamo_namespace(namespace, name)
    )
    system = {
        labels.COMPONENT: names.label_value(key),
        labels.DYNAMO_NAMESPACE: dynamo_namespace,
        labels.GRAPH: names.label_value(name),
    }
    users = {each: text for each, text in service.labels.items() if each not in labels.SELECTING}
    spec: dict[str, Any] = pruned(msgspec.to_builtins(service))
    spec |= {
        "serviceName": key,
        "dynamoNamespace": dynamo_namespace,
        "labels": users | system,
    }
    if graph.spec.backend_framework:
        spec["backendFramework"] = graph.spec.backend_framework
    if annotations := _annotations(graph, service):
        spec["annotations"] = annotations
    if graph.spec.envs:
        spec["envs"] = pruned(merged_environment(graph.spec.envs, service.envs))
    if service.component_type == "planner":
        account = {"serviceAccountName": names.PLANNER_SERVICE_ACCOUNT}
        spec["extraPodSpec"] = spec.get("extraPodSpec", {}) | account
    if service.component_type == "frontend" and service.ingress is None:
        spec["ingress"] = default_ingress(name, settings)
    return {
        "apiVersion": DynamoComponentDeployment.KIND.api_version,
        "kind": DynamoComponentDeployment.KIND.name,
        "metadata": {
            "name": names.component_name(name, key),
            "namespace": namespace,
            "labels": users | system,
        },
        "spec": deployment_config.applied(spec, key),
    }


def _annotations(graph: DynamoGraphDeployment, service: ComponentSpec) -> dict[str, str]:
    kept = {key: text for key, text in service.annotations.items() if key not in labels.BOOKKEEPING}
    graphs = graph.metadata.annotations
    return kept | {key: graphs[key] for key in _HANDED_ON if key in graphs}


def default_ingress(graph: str, settings: RenderSettings) -> Object:
    """The ingress of a frontend that names none; written even if off, since that was decided."""
    enabled = bool(settings.virtual_service_gateway or settings.ingress_class_name)
    tls = settings.ingress_tls_secret_name
    found: dict[str, Any] = {
        "enabled": enabled,
        "host": graph,
        "useVirtualService": bool(settings.virtual_service_gateway),
        "virtualServiceGateway": settings.virtual_service_gateway,
        "hostSuffix": settings.ingress_host_suffix,
        "ingressControllerClassName": settings.ingress_class_name,
        "tls": {"secretName": tls} if tls else None,
    }
    return {name: value for name, value in found.items() if value}
