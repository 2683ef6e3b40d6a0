"""The scaling adapter of a service, as the operator creates it."""

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from kube_runtime.kind import Object


def adapter_object(graph: DynamoGraphDeployment, key: str, replicas: int) -> Object:
    """The adapter, without owner references, with the replicas that it starts with."""
    namespace, name = graph.metadata.namespace, graph.metadata.name
    return {
        "apiVersion": DynamoGraphDeploymentScalingAdapter.KIND.api_version,
        "kind": DynamoGraphDeploymentScalingAdapter.KIND.name,
        "metadata": {
            "name": names.component_name(name, key),
            "namespace": namespace,
            "labels": {
                labels.GRAPH: names.label_value(name),
                labels.COMPONENT: names.label_value(key),
            },
        },
        "spec": {"replicas": replicas, "dgdRef": {"name": name, "serviceName": key}},
    }
