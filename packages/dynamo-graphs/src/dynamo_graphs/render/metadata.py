"""Labels and annotations of the objects of graphs and components.

On every object the operator's take precedence, then the service's, then the graph's. On pods the user's
`extraPodMetadata` overrides the rest, except for labels in selectors.
"""

from collections.abc import Mapping

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import ComponentSpec, DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from kube_runtime.kind import Object


def object_metadata(
    namespace: str, name: str, own_labels: Mapping[str, str], own_annotations: Mapping[str, str]
) -> Object:
    """Return the metadata of an object, without empty maps."""
    maps = {"labels": own_labels, "annotations": own_annotations}
    kept = {key: texts for key, texts in maps.items() if texts}
    return {"name": name, "namespace": namespace, **kept}


def component_labels(component: DynamoComponentDeployment, graph: str) -> dict[str, str]:
    """The labels that identify the component's objects and pods."""
    spec = component.spec
    own = {
        labels.COMPONENT: names.label_value(spec.service_name or component.metadata.name),
        labels.DYNAMO_NAMESPACE: _dynamo_namespace(component, graph),
    }
    if graph:
        own[labels.GRAPH] = names.label_value(graph)
    if graph and (revision := component.metadata.labels.get(labels.WORKER_HASH)):
        own[labels.WORKER_HASH] = revision
    if spec.model_ref and spec.model_ref.name:
        own[labels.BASE_MODEL_HASH] = names.model_hash(spec.model_ref.name)
    return own


def service_dynamo_namespace(
    graph: DynamoGraphDeployment, service: ComponentSpec, revision: str = ""
) -> str:
    """The Dynamo namespace of a service, as a label value."""
    if service.global_dynamo_namespace:
        return names.GLOBAL_DYNAMO_NAMESPACE
    return _graphs_dynamo_namespace(graph.metadata.namespace, graph.metadata.name, revision)


def service_labels(graph: DynamoGraphDeployment, service: ComponentSpec) -> dict[str, str]:
    """The user's labels of every object of a graph's service; the service's own win."""
    both = graph.spec.labels | service.labels
    return {key: text for key, text in both.items() if key not in labels.SELECTING}


def service_annotations(graph: DynamoGraphDeployment, service: ComponentSpec) -> dict[str, str]:
    """The user's annotations of every object of a graph's service; the service's own win."""
    both = graph.spec.annotations | service.annotations
    return {key: text for key, text in both.items() if key not in labels.BOOKKEEPING}


def with_graph_metadata(graph: DynamoGraphDeployment, desired: Object) -> Object:
    """Add the graph's labels and annotations to one of its objects, whose own take precedence."""
    metadata: Object = desired["metadata"]
    both = {
        "labels": graph.spec.labels | metadata.get("labels", {}),
        "annotations": graph.spec.annotations | metadata.get("annotations", {}),
    }
    return {
        **desired,
        "metadata": metadata | {name: texts for name, texts in both.items() if texts},
    }


def user_labels(component: DynamoComponentDeployment) -> dict[str, str]:
    """The user's labels of every object, without those in selectors."""
    both = component.spec.labels | component.metadata.labels
    return {key: value for key, value in both.items() if key not in labels.SELECTING}


def annotations(spec: ComponentSpec) -> dict[str, str]:
    """Annotations of every object but the pods."""
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    both = spec.annotations | extra
    if spec.model_ref and spec.model_ref.name:
        both[labels.BASE_MODEL] = spec.model_ref.name
    omitted = labels.BOOKKEEPING | {labels.RESTART_AT}
    return {key: value for key, value in both.items() if key not in omitted}


def pod_labels(spec: ComponentSpec) -> dict[str, str]:
    """Labels of pods in addition to those of every object."""
    added: dict[str, str] = {}
    if spec.annotations.get(labels.ENABLE_METRICS) != "false":
        added[labels.METRICS_ENABLED] = "true"
    extra = spec.extra_pod_metadata.labels if spec.extra_pod_metadata else {}
    added |= {key: value for key, value in extra.items() if key not in labels.SELECTING}
    if spec.component_type:
        added[labels.COMPONENT_TYPE] = spec.component_type
    if spec.sub_component_type:
        added[labels.SUB_COMPONENT_TYPE] = spec.sub_component_type
    return added


def pod_annotations(spec: ComponentSpec) -> dict[str, str]:
    """Annotations of pods, without those that control the operator: a change of them must not roll pods."""
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    omitted = labels.SWITCHES | labels.BOOKKEEPING
    kept = {key: value for key, value in spec.annotations.items() if key not in omitted}
    kept |= {key: value for key, value in extra.items() if key not in labels.BOOKKEEPING}
    if restart := spec.annotations.get(labels.RESTART_AT):
        kept[labels.RESTART_AT] = restart
    return kept


def _dynamo_namespace(component: DynamoComponentDeployment, graph: str) -> str:
    """The component's Dynamo namespace; without a graph that of the spec, else the component's name."""
    if component.spec.global_dynamo_namespace:
        return names.GLOBAL_DYNAMO_NAMESPACE
    if graph:
        revision = component.metadata.labels.get(labels.WORKER_HASH, "")
        return _graphs_dynamo_namespace(component.metadata.namespace, graph, revision)
    return names.label_value(component.spec.dynamo_namespace or component.metadata.name)


def _graphs_dynamo_namespace(kubernetes_namespace: str, graph: str, revision: str) -> str:
    if not revision:
        return names.dynamo_namespace(kubernetes_namespace, graph)
    namespace = names.revision_dynamo_namespace(kubernetes_namespace, graph, revision)
    return names.label_value(namespace)
