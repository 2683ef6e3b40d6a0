"""What a graph has for its endpoint picker: the ConfigMap that it reads and the pool that it serves.

The document in the ConfigMap belongs to another project, so it is passed on as it is, with sorted keys, so
that equal configurations are equal text.
"""

import yaml

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.render.metadata import object_metadata, service_dynamo_namespace
from dynamo_graphs.render.roles import EPP_CONFIG_FILE, EPP_GRPC_PORT, HTTP_PORT
from dynamo_graphs.types.inference import InferencePool
from kube_runtime.kind import Object
from kube_runtime.types.core import ConfigMap

_CONFIG_KIND = {
    "apiVersion": "inference.networking.x-k8s.io/v1alpha1",
    "kind": "EndpointPickerConfig",
}


def picker_objects(graph: DynamoGraphDeployment) -> tuple[Object, ...]:
    """The objects around the endpoint picker, if the graph has one."""
    pickers = [
        (key, service)
        for key, service in sorted(graph.spec.services.items())
        if service.component_type == "epp"
    ]
    if not pickers:
        return ()
    key, service = pickers[0]
    return (*_config_map(graph, key, service), _pool(graph, key, service))


def _config_map(
    graph: DynamoGraphDeployment, key: str, service: ComponentSpec
) -> tuple[Object, ...]:
    if service.epp_config is None or service.epp_config.config_map_ref is not None:
        return ()
    config: Object = service.epp_config.config or {}
    text = yaml.dump(
        config | _CONFIG_KIND, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True
    )
    config_map: Object = {
        "apiVersion": ConfigMap.KIND.api_version,
        "kind": ConfigMap.KIND.name,
        "metadata": _metadata(graph, key, names.epp_config_map(graph.metadata.name)),
        "data": {EPP_CONFIG_FILE: text},
    }
    return (config_map,)


def _pool(graph: DynamoGraphDeployment, key: str, service: ComponentSpec) -> Object:
    """The frontends of the graph, in front of which the picker stands."""
    name = graph.metadata.name
    picker = names.service_name(names.component_name(name, key))
    selected = {
        labels.COMPONENT_TYPE: "frontend",
        labels.DYNAMO_NAMESPACE: service_dynamo_namespace(graph, service),
    }
    return {
        "apiVersion": InferencePool.KIND.api_version,
        "kind": InferencePool.KIND.name,
        "metadata": _metadata(graph, key, names.inference_pool(name)),
        "spec": {
            "targetPorts": [{"number": HTTP_PORT}],
            "selector": {"matchLabels": selected},
            "endpointPickerRef": {
                "kind": "Service",
                "name": picker,
                "port": {"number": EPP_GRPC_PORT},
            },
        },
    }


def _metadata(graph: DynamoGraphDeployment, key: str, name: str) -> Object:
    own = {
        labels.GRAPH: names.label_value(graph.metadata.name),
        labels.COMPONENT: names.label_value(key),
        labels.COMPONENT_TYPE: "epp",
    }
    return object_metadata(graph.metadata.namespace, name, own, {})
