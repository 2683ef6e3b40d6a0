"""What all objects of graphs and components share: their canonical form, merged values, and metadata."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import (
    SPLIT_TYPES,
    ComponentSpec,
    DynamoComponentDeployment,
    ResourceItem,
    Resources,
)
from dynamo_operator.component.framework import GPU
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Object, amount, decoder_of

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = decoder_of(Object)

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
"""Handlers of a probe, which has exactly one."""


def canonical(desired: Object) -> Object:
    """Return a deep copy with the keys of every map sorted.

    Encoding and decoding JSON is ten times as fast as sorting map by map.
    """
    return _DECODER.decode(_ENCODER.encode(desired))


def pruned(value: object) -> Any:
    """Copy the value without nulls and empty lists."""
    if isinstance(value, dict):
        kept = {name: pruned(child) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child is not None and child != []}
    if isinstance(value, list | tuple):
        return [pruned(child) for child in value if child is not None]
    return value


# Values are plain JSON, so that unknown fields survive. 0 and false count as set; null, "" and empty
# lists do not, since typed clients write them for unset fields. Lists are replaced, not merged.
def merged(default: object, user: object) -> Any:
    """Merge the user's value over the default."""
    if user is None or user in ("", []):
        return default
    if isinstance(default, Mapping) and isinstance(user, Mapping):
        both = {name: merged(value, user.get(name)) for name, value in default.items()}
        return both | {name: value for name, value in user.items() if name not in default}
    return user


def has_handler(probe: Object) -> bool:
    """Whether the probe has a handler, and not only periods and thresholds."""
    return any(probe.get(name) is not None for name in HANDLERS)


def merged_probe(default: Object, user: Object) -> Object:
    """Merge the user's probe over the default; the user's handler replaces another kind of handler."""
    handlers = [name for name in HANDLERS if user.get(name) is not None]
    if not handlers:
        return dict(merged(default, user))
    rest = {name: value for name, value in default.items() if name not in HANDLERS}
    kept = {name: default[name] for name in handlers if name in default}
    return dict(merged(rest | kept, user))


def merged_environment(low: Iterable[Object], high: Iterable[Object]) -> list[Object]:
    """Merge variables by name, sorted; `high` wins, and within a list the last entry."""
    entries = {entry["name"]: entry for entry in (*low, *high)}
    return [entries[name] for name in sorted(entries)]


def variable(name: str, value: str) -> Object:
    """An environment variable; an empty value is omitted, as the API server does."""
    return {"name": name, "value": value} if value else {"name": name}


def variable_of_field(name: str, path: str) -> Object:
    """An environment variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resources(short: Resources | None) -> Object:
    """Convert the short form to resources of a container; {} if it is empty.

    A GPU request that repeats the limit is omitted, as the Go operator does, so that templates stay the same.
    """
    if short is None:
        return {}
    requests, limits = short.requests or ResourceItem(), short.limits or ResourceItem()
    gpu = requests.gpu_type or limits.gpu_type or GPU
    upper = _side(limits, limits.gpu_type or requests.gpu_type or GPU)
    lower = _side(requests, gpu)
    is_repeated = gpu in lower and gpu in upper and amount(lower[gpu]) == amount(upper[gpu])
    if is_repeated and requests.gpu and gpu not in requests.custom:
        del lower[gpu]
    sides: Object = {"requests": lower, "limits": upper, "claims": list(short.claims)}
    return {name: value for name, value in sides.items() if value}


def merged_resources(container: Object, component: Object) -> Object:
    """Merge a component's resources over its container's, with a limit for every device only requested.

    Kubernetes cannot overcommit devices: a request requires an equal limit, and a limit alone is also
    the request.
    """
    both: Object = dict(merged(container, component))
    claims = [*container.get("claims", ()), *component.get("claims", ())]
    if claims:
        both["claims"] = list({claim["name"]: claim for claim in claims}.values())
    requests: Mapping[str, object] = both.get("requests", {})
    limits: Mapping[str, object] = both.get("limits", {})
    missing = {
        name: value
        for name, value in requests.items()
        if name not in limits and cannot_be_overcommitted(name)
    }
    return {**both, "limits": {**limits, **missing}} if missing else both


def cannot_be_overcommitted(name: str) -> bool:
    """Whether Kubernetes requires request and limit to be equal: for devices and huge pages."""
    is_native = "/" not in name or "kubernetes.io/" in name
    return name.startswith("hugepages-") if is_native else not name.startswith("requests.")


def _side(item: ResourceItem, gpu: str) -> dict[str, str]:
    fixed = {"cpu": item.cpu, "memory": item.memory, gpu: item.gpu}
    return {name: value for name, value in (fixed | item.custom).items() if value}


def object_metadata(
    namespace: str, name: str, own_labels: Mapping[str, str], own_annotations: Mapping[str, str]
) -> Object:
    """Return the metadata of an object, without empty maps."""
    maps = {"labels": own_labels, "annotations": own_annotations}
    return {"name": name, "namespace": namespace, **{key: texts for key, texts in maps.items() if texts}}


def is_adopted(component: DynamoComponentDeployment) -> bool:
    """Whether a component belongs to a revision of workers that the Go operator of the 1.x line created.

    Its pods have the Dynamo namespace of the graph in their label, to which only their processes append the
    revision. Ours have it in the label, too.
    """
    own = component.metadata.labels
    if not own.get(labels.WORKER_HASH):
        return False
    of_graph = names.dynamo_namespace(component.metadata.namespace, parent_graph(component))
    return own.get(labels.DYNAMO_NAMESPACE) in (of_graph, names.GLOBAL_DYNAMO_NAMESPACE)


def restart_id(spec: ComponentSpec) -> str:
    """The id of the restart in a component's pods; "" for none."""
    of_pods = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    return spec.annotations.get(labels.RESTART_AT) or of_pods.get(labels.RESTART_AT, "")


def selected_type(spec: ComponentSpec) -> dict[str, str]:
    """The label with the component's type, if Services select by it.

    Pods of workers that prefill or decode have it from the Go operator of the 1.x line, or `worker` from that
    of the 0.9 line and from us. The name of the component selects them as well.
    """
    has_both = spec.sub_component_type in SPLIT_TYPES
    return {labels.COMPONENT_TYPE: spec.component_type} if spec.component_type and not has_both else {}


def runtime_namespace(component: DynamoComponentDeployment) -> str:
    """The Dynamo namespace in which the processes of a component register."""
    label = component_labels(component, parent_graph(component))[labels.DYNAMO_NAMESPACE]
    return f"{label}-{component.metadata.labels[labels.WORKER_HASH]}" if is_adopted(component) else label


def component_labels(component: DynamoComponentDeployment, graph: str) -> dict[str, str]:
    """The labels that identify the component's objects and pods."""
    spec = component.spec
    namespace = names.label_value(spec.dynamo_namespace or component.metadata.name)
    own = {labels.COMPONENT: names.label_value(spec.service_name or component.metadata.name)}
    if graph:
        own[labels.GRAPH] = names.label_value(graph)
        revision = component.metadata.labels.get(labels.WORKER_HASH, "")
        of_namespace = "" if is_adopted(component) else revision
        namespace = names.dynamo_namespace(component.metadata.namespace, graph, of_namespace)
        if revision:
            own[labels.WORKER_HASH] = revision
    is_global = spec.global_dynamo_namespace
    own[labels.DYNAMO_NAMESPACE] = names.GLOBAL_DYNAMO_NAMESPACE if is_global else namespace
    if spec.model_ref and spec.model_ref.name:
        own[labels.BASE_MODEL_HASH] = names.model_hash(spec.model_ref.name)
    return own


def service_dynamo_namespace(graph: DynamoGraphDeployment, service: ComponentSpec, revision: str = "") -> str:
    """The Dynamo namespace of a service, as a label value."""
    if service.global_dynamo_namespace:
        return names.GLOBAL_DYNAMO_NAMESPACE
    return names.dynamo_namespace(graph.metadata.namespace, graph.metadata.name, revision)


# On every object the operator's labels and annotations take precedence, then the service's, then the graph's.
def service_labels(graph: DynamoGraphDeployment, service: ComponentSpec) -> dict[str, str]:
    """The user's labels of every object of a graph's service; the service's own win."""
    both = graph.spec.labels | service.labels
    return {key: text for key, text in both.items() if key not in labels.SELECTING}


def service_annotations(graph: DynamoGraphDeployment, service: ComponentSpec) -> dict[str, str]:
    """The user's annotations of every object of a graph's service; the service's own win."""
    both = graph.spec.annotations | service.annotations
    return {key: text for key, text in both.items() if key not in labels.BOOKKEEPING}


def discovery_backend(switches: Mapping[str, str], settings: RenderSettings) -> str:
    """The discovery backend: that of the annotation, else that of the settings."""
    backend = switches.get(labels.DISCOVERY_BACKEND)
    return backend if backend in ("kubernetes", "etcd") else settings.discovery_backend


def graph_controlled(graph: DynamoGraphDeployment, objects: Iterable[Object]) -> tuple[Object, ...]:
    """Objects with the labels and annotations of the graph that controls them; their own take precedence."""
    controlled: list[Object] = []
    for desired in objects:
        metadata: Object = desired["metadata"]
        both = {
            "labels": graph.spec.labels | metadata.get("labels", {}),
            "annotations": graph.spec.annotations | metadata.get("annotations", {}),
        }
        metadata = metadata | {name: texts for name, texts in both.items() if texts}
        controlled.append(canonical({**desired, "metadata": metadata}))
    return tuple(controlled)


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


# On pods the user's `extraPodMetadata` overrides the rest, except for labels in selectors.
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


def parent_graph(component: DynamoComponentDeployment) -> str:
    """The name of a component's graph; "" for one that a user created.

    A component that outlives its graph keeps the graph's label, so that its pods run unchanged.
    """
    metadata = component.metadata
    for owner in metadata.owner_references:
        if owner.names_kind(DynamoGraphDeployment.KIND):
            return owner.name
    return metadata.labels.get(labels.GRAPH) or component.spec.labels.get(labels.GRAPH, "")


def group_names(component: DynamoComponentDeployment) -> list[str]:
    """The names of the groups: of their LeaderWorkerSets, and of their PodGroups.

    The groups of an adopted component are the replicas of one LeaderWorkerSet.
    """
    replicas = range(1 if is_adopted(component) else component.spec.desired_replicas)
    return [names.group_name(component.metadata.name, index) for index in replicas]
