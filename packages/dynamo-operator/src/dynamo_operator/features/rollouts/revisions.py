"""Revisions of a graph's workers: which services have them, their content, names and Dynamo namespaces."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import ComponentSpec, is_worker
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import is_on_grove
from kube_runtime.types.meta import Object

MANAGED, NATIVE = "managed", "native"
MODES = (MANAGED, NATIVE)
"""Values of the annotation `nvidia.com/worker-rollout`."""

LATEST = 1
VERSIONS = frozenset((1,))
"""Versions of the hash that this operator can compute."""

NAMESPACE_PREFIX_VARIABLE = "DYN_NAMESPACE_PREFIX"
"""Variable of frontends: the prefix of the workers' Dynamo namespaces."""

_NOT_IN_PODS_V1 = frozenset(
    (
        "autoscaling",
        "disruptionBudget",
        "dynamoNamespace",
        "ingress",
        "replicas",
        "scalingAdapter",
        "serviceName",
    )
)
_IGNORED_ANNOTATIONS_V1 = frozenset(
    (
        "nvidia.com/deployment-rolling-update-max-surge",
        "nvidia.com/deployment-rolling-update-max-unavailable",
        "nvidia.com/deployment-strategy",
        "nvidia.com/last-applied-generation",
        "nvidia.com/last-applied-hash",
        "nvidia.com/restartAt",
    )
)
_GRAPH_ANNOTATIONS_V1 = ("nvidia.com/dynamo-discovery-backend", "nvidia.com/enable-metrics")


# The hash covers the user's settings and not the rendered objects, so that a new release of the
# operator creates no new revision. It has a version, so that a better hash can replace it without
# rolling running workers. The content of a version must never change.
@dataclass(frozen=True, slots=True)
class WorkerRevision:
    """The desired revision of a graph's workers, and how the other services find them.

    `suffix` distinguishes it in names; "" for the plain names of graphs without managed rollouts. `content`
    is the versioned hash to record on the components, if any. `namespace_prefix` is that of the workers'
    Dynamo namespaces; "" if frontends look in the graph's own only. `replicas` override those of the graph
    while a rollout is in progress, by service.
    """

    suffix: str = ""
    content: str = ""
    namespace_prefix: str = ""
    replicas: Mapping[str, int] = field(default_factory=dict[str, int])


PLAIN = WorkerRevision()
"""Workers without managed rollouts."""


def is_managed(graph: DynamoGraphDeployment) -> bool:
    """Whether rollouts of the graph's workers are managed: run by the operator itself."""
    return graph.metadata.annotations.get(labels.WORKER_ROLLOUT) == MANAGED and not is_on_grove(graph)


def has_revisions(service: ComponentSpec) -> bool:
    """Whether the pods of a service belong to revisions."""
    # Multinode workers are replaced by their own controllers, and the Dynamo namespace that all graphs share
    # cannot be divided.
    return is_worker(service) and service.nodes == 1 and not service.global_dynamo_namespace


def revised_services(graph: DynamoGraphDeployment) -> dict[str, ComponentSpec]:
    """The services of a graph whose pods belong to revisions, by name."""
    services = sorted(graph.spec.services.items())
    return {key: service for key, service in services if has_revisions(service)}


def first_revision(graph: DynamoGraphDeployment) -> WorkerRevision:
    """The first revision of a graph that has no objects yet."""
    if not is_managed(graph) or not revised_services(graph):
        return PLAIN
    content = worker_content(graph)
    return WorkerRevision(digits(content), content, namespace_prefix(graph, finds_plain=False))


def namespace_prefix(graph: DynamoGraphDeployment, *, finds_plain: bool) -> str:
    """The prefix of the Dynamo namespaces of the workers that frontends must find.

    With `finds_plain` they must also find workers in the graph's own Dynamo namespace. That requires a prefix
    which namespaces of other graphs may share.
    """
    services = graph.spec.services.values()
    if finds_plain or any(is_worker(service) and not has_revisions(service) for service in services):
        return names.dynamo_namespace(*graph.key)
    return names.revisions_namespace_prefix(*graph.key)


def worker_component_name(graph: DynamoGraphDeployment, key: str, revision: WorkerRevision) -> str:
    """The name of a service's component; it contains the revision if the service has revisions."""
    if revision.suffix and has_revisions(graph.spec.services[key]):
        return names.revision_component_name(graph.metadata.name, key, revision.suffix)
    return names.component_name(graph.metadata.name, key)


def worker_content(graph: DynamoGraphDeployment, version: int = LATEST) -> str:
    """Hash the user's settings of the workers' pods: `{version}:{eight digits}`."""
    body = _hashed_v1(graph)
    text = msgspec.json.encode(body, order="sorted")
    return f"{version}:{hashlib.sha256(text).hexdigest()[: names.HASH_LENGTH]}"


def version_of(content: str) -> int:
    """The version of a hash; 0 if this operator cannot compute it."""
    version, colon, _ = content.partition(":")
    computable = {str(number): number for number in VERSIONS}
    return computable.get(version, 0) if colon else 0


def digits(content: str) -> str:
    """The hash without its version, as in labels and names."""
    return content.rpartition(":")[2]


def _hashed_v1(graph: DynamoGraphDeployment) -> Object:
    spec, annotations = graph.spec, graph.metadata.annotations
    return {
        "annotations": _annotations_v1(spec.annotations),
        "backendFramework": spec.backend_framework,
        "envs": _without_empty(msgspec.to_builtins(spec.envs)),
        "labels": spec.labels,
        "services": {key: _service_v1(service) for key, service in revised_services(graph).items()},
        "switches": {key: annotations[key] for key in _GRAPH_ANNOTATIONS_V1 if key in annotations},
    }


def _service_v1(service: ComponentSpec) -> object:
    fields: Object = msgspec.to_builtins(service)
    kept = {name: value for name, value in fields.items() if name not in _NOT_IN_PODS_V1}
    if "annotations" in kept:
        kept["annotations"] = _annotations_v1(kept["annotations"])
    return _without_empty(kept)


def _annotations_v1(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in annotations.items() if key not in _IGNORED_ANNOTATIONS_V1}


def _without_empty(value: object) -> object:
    # Typed clients write null, [] and {} for unset fields. A few empty maps have a meaning, such as
    # `emptyDir: {}`; there the rest of the entry still differs.
    if isinstance(value, Mapping):
        kept = {name: _without_empty(child) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child not in (None, [], {})}
    if isinstance(value, list | tuple):
        return [_without_empty(child) for child in value]
    return value
