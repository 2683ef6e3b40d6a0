"""The endpoint picker of a graph: its rules among the services, and its objects."""

from collections.abc import Iterator, Sequence

import yaml

from dynamo_operator import labels, names
from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.component.objects import object_metadata, service_dynamo_namespace
from dynamo_operator.component.pod import EPP_CONFIG_FILE, EPP_GRPC_PORT, HTTP_PORT
from dynamo_operator.component.validate import EPP
from dynamo_operator.features.decision import Feature
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import InferencePool
from dynamo_operator.shared.problems import Problem, ProblemKind, service_path
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Object


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
        if service.component_type == EPP
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
        labels.COMPONENT_TYPE: EPP,
    }
    return object_metadata(graph.metadata.namespace, name, own, {})


PICKER = Feature(
    lambda it: any(service.component_type == EPP for service in it.graph.spec.services.values()),
    render=lambda it: picker_objects(it.effective),
)
