"""An endpoint picker: its rules (one pod, one configuration, one per graph), and its objects."""

from collections.abc import Iterator, Sequence

import yaml

from dynamo_operator import labels, names
from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.component.objects import object_metadata, service_dynamo_namespace
from dynamo_operator.component.pod import EPP_CONFIG_FILE, EPP_GRPC_PORT, HTTP_PORT
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import InferencePool
from dynamo_operator.shared.problems import Problem, ProblemKind, component_path, name_problems, service_path
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Object

TYPE = "epp"


def picker_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Problems of an endpoint picker, whose spec is at `path`."""
    if spec.nodes > 1:
        message = (
            f"{component_path(path)}: EPP component cannot be multinode (multinode field must be nil or "
            "nodeCount must be 1)"
        )
        yield Problem(f"{path}.multinode.nodeCount", message, ProblemKind.FORBIDDEN)
    if spec.replicas not in (None, 1):
        message = f"EPP component must have exactly 1 replica (found {spec.replicas} replicas)"
        yield Problem(f"{path}.replicas", f"{component_path(path)}: {message}")
    path, words = f"{path}.eppConfig", f"{component_path(path)}.eppConfig"
    config = spec.epp_config
    if config is None:
        yield Problem(path, f"{words} is required for EPP components", ProblemKind.REQUIRED)
        return
    reference = config.config_map_ref
    if reference is None and config.config is None:
        message = (
            f"{words}: either configMapRef or config must be specified (no default configuration provided)"
        )
        yield Problem(path, message, ProblemKind.REQUIRED)
    if reference is None:
        return
    if config.config is not None:
        message = f"{words}: configMapRef and config are mutually exclusive, only one can be specified"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    name, key = reference.get("name"), reference.get("key")
    at = f"{path}.configMapRef"
    if not name:
        yield Problem(f"{at}.name", f"{words}.configMapRef.name is required", ProblemKind.REQUIRED)
    elif not isinstance(name, str):
        yield Problem(f"{at}.name", "expected a string")
    else:
        yield from name_problems(name, f"{at}.name", "a ConfigMap")
    if key is not None and not isinstance(key, str):
        yield Problem(f"{at}.key", "expected a string")


def lone_picker_problems(component: DynamoComponentDeployment) -> Iterator[Problem]:
    """Report an endpoint picker without a graph."""
    owners = component.metadata.owner_references
    has_graph = any(owner.kind == DynamoGraphDeployment.KIND.name for owner in owners)
    if component.spec.component_type == TYPE and not has_graph:
        text = "an endpoint picker must belong to a graph, which provides its pool and configuration"
        yield Problem("spec.componentType", text, ProblemKind.NOT_SUPPORTED)


def graph_picker_problems(pickers: Sequence[str], settings: RenderSettings) -> Iterator[Problem]:
    """Report a second endpoint picker of a graph, and a missing ClusterRole for the first."""
    for key in pickers[1:]:
        message = f'a graph has at most one endpoint picker, and "{pickers[0]}" already is one'
        yield Problem(f"{service_path(key)}.componentType", message, ProblemKind.DUPLICATE)
    if not settings.restricted_namespace and not settings.epp_cluster_role_name:
        message = (
            "EPP ClusterRole name is required in cluster-wide mode when EPP service is present: "
            "start the operator with --epp-cluster-role-name"
        )
        yield Problem(f"{service_path(pickers[0])}.componentType", message, ProblemKind.NOT_SUPPORTED)


_CONFIG_KIND = {"apiVersion": "inference.networking.x-k8s.io/v1alpha1", "kind": "EndpointPickerConfig"}


def picker_objects(graph: DynamoGraphDeployment) -> tuple[Object, ...]:
    """The ConfigMap and the InferencePool of the endpoint picker, which the graph has."""
    key, service = next(
        (key, service)
        for key, service in sorted(graph.spec.services.items())
        if service.component_type == TYPE
    )
    return (*_config_map(graph, key, service), _pool(graph, key, service))


def _config_map(graph: DynamoGraphDeployment, key: str, service: ComponentSpec) -> tuple[Object, ...]:
    if service.epp_config is None or service.epp_config.config_map_ref is not None:
        return ()
    config: Object = service.epp_config.config or {}
    text = yaml.dump(config | _CONFIG_KIND, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True)
    metadata = _metadata(graph, key, names.epp_config_map(graph.metadata.name))
    return (ConfigMap.KIND.manifest(metadata, data={EPP_CONFIG_FILE: text}),)


def _pool(graph: DynamoGraphDeployment, key: str, service: ComponentSpec) -> Object:
    name = graph.metadata.name
    picker = names.service_name(names.component_name(name, key))
    selected = {
        labels.COMPONENT_TYPE: "frontend",
        labels.DYNAMO_NAMESPACE: service_dynamo_namespace(graph, service),
    }
    return InferencePool.KIND.manifest(
        _metadata(graph, key, names.inference_pool(name)),
        spec={
            "targetPorts": [{"number": HTTP_PORT}],
            "selector": {"matchLabels": selected},
            "endpointPickerRef": {"kind": "Service", "name": picker, "port": {"number": EPP_GRPC_PORT}},
        },
    )


def _metadata(graph: DynamoGraphDeployment, key: str, name: str) -> Object:
    own = {
        labels.GRAPH: names.label_value(graph.metadata.name),
        labels.COMPONENT: names.label_value(key),
        labels.COMPONENT_TYPE: TYPE,
    }
    return object_metadata(graph.metadata.namespace, name, own, {})
