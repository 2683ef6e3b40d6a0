"""Revisions of workers: what one consists of, which services belong to it, how it is identified.

The hash covers what the user set, not what we render from it, so that another release of ours makes no
new revision; and it has a version, so that a better one can replace it one day without rolling running
workers. What a version hashes is fixed forever.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import ComponentSpec, is_worker
from dynamo_graphs.api.graph import DynamoGraphDeployment
from kube_runtime.kind import Object

MANAGED, NATIVE = "managed", "native"
MODES = (MANAGED, NATIVE)
"""Values of the annotation that chooses how workers are replaced."""

LATEST = 1
VERSIONS = frozenset((1,))
"""The versions of the hash that we can compute."""

FOUND_BY = "DYN_NAMESPACE_PREFIX"
"""The variable with the prefix of the workers' Dynamo namespaces, for frontends."""

_BESIDE_PODS_1 = frozenset(
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
_SILENT_1 = frozenset(
    (
        "nvidia.com/deployment-rolling-update-max-surge",
        "nvidia.com/deployment-rolling-update-max-unavailable",
        "nvidia.com/deployment-strategy",
        "nvidia.com/last-applied-generation",
        "nvidia.com/last-applied-hash",
        "nvidia.com/restartAt",
    )
)
_GRAPHS_1 = ("nvidia.com/dynamo-discovery-backend", "nvidia.com/enable-metrics")


@dataclass(frozen=True, slots=True)
class WorkerGeneration:
    """The current revision of a graph's workers, and how the other services find them.

    `suffix` is the generation's own part of names; "" for workers under the plain names that every graph
    has without managed rollouts. `content` is the versioned hash to note on the components; "" for none.
    `found_by` is what the Dynamo namespaces of workers begin with, for those who look for them; "" when
    these look in the graph's own Dynamo namespace only. `replicas` are those of services that shall not have
    as many as the graph says yet, by name.
    """

    suffix: str = ""
    content: str = ""
    found_by: str = ""
    replicas: Mapping[str, int] = field(default_factory=dict[str, int])


PLAIN = WorkerGeneration()
"""Workers as they are without managed rollouts."""


def is_managed(graph: DynamoGraphDeployment) -> bool:
    """Whether the operator itself replaces the workers of the graph."""
    is_wanted = graph.metadata.annotations.get(labels.WORKER_ROLLOUT) == MANAGED
    return is_wanted and not is_on_grove(graph)


def can_be_isolated(service: ComponentSpec) -> bool:
    """Whether a service's pods can have revisions.

    Only workers do. Those on several nodes are replaced by who runs such groups, and the Dynamo namespace
    that all graphs share has no generations.
    """
    return is_worker(service) and service.nodes == 1 and not service.global_dynamo_namespace


def generation_services(graph: DynamoGraphDeployment) -> dict[str, ComponentSpec]:
    """The services of a graph whose pods have revisions, by name."""
    services = sorted(graph.spec.services.items())
    return {key: service for key, service in services if can_be_isolated(service)}


def first_generation(graph: DynamoGraphDeployment) -> WorkerGeneration:
    """The revision of a graph that has no objects yet."""
    if not is_managed(graph) or not generation_services(graph):
        return PLAIN
    content = worker_content(graph)
    return WorkerGeneration(digits(content), content, found_by(graph, finds_plain=False))


def found_by(graph: DynamoGraphDeployment, *, finds_plain: bool) -> str:
    """The prefix of the Dynamo namespaces of the workers that frontends must find.

    `finds_plain` is whether they must find workers in the graph's own Dynamo namespace too. That takes a
    prefix which the namespaces of other graphs may have as well.
    """
    namespace, name = graph.metadata.namespace, graph.metadata.name
    in_plain = any(
        is_worker(service) and not can_be_isolated(service)
        for service in graph.spec.services.values()
    )
    if finds_plain or in_plain:
        return names.dynamo_namespace(namespace, name)
    return names.generations_dynamo_namespace(namespace, name)


def worker_component_name(
    graph: DynamoGraphDeployment, key: str, generation: WorkerGeneration
) -> str:
    """The name of a service's component; only of services with generations it depends on that."""
    if generation.suffix and can_be_isolated(graph.spec.services[key]):
        return names.generation_component_name(graph.metadata.name, key, generation.suffix)
    return names.component_name(graph.metadata.name, key)


def worker_content(graph: DynamoGraphDeployment, version: int = LATEST) -> str:
    """Hash of the user's settings of the workers' pods: `{version}:{eight digits}`."""
    body = _pods_1(graph)
    text = msgspec.json.encode(body, order="sorted")
    return f"{version}:{hashlib.sha256(text).hexdigest()[: names.HASH_LENGTH]}"


def version_of(content: str) -> int:
    """The version of a hash; 0 if we cannot compute that version."""
    version, colon, _ = content.partition(":")
    computable = {str(number): number for number in VERSIONS}
    return computable.get(version, 0) if colon else 0


def digits(content: str) -> str:
    """The hash without its version, as labels and names have it."""
    return content.rpartition(":")[2]


def _pods_1(graph: DynamoGraphDeployment) -> Object:
    spec = graph.spec
    annotations = graph.metadata.annotations
    return {
        "annotations": _loud_1(spec.annotations),
        "backendFramework": spec.backend_framework,
        "envs": _without_nothing(msgspec.to_builtins(spec.envs)),
        "labels": spec.labels,
        "services": {
            key: _service_1(service) for key, service in generation_services(graph).items()
        },
        "switches": {key: annotations[key] for key in _GRAPHS_1 if key in annotations},
    }


def _service_1(service: ComponentSpec) -> object:
    fields: Object = msgspec.to_builtins(service)
    kept = {name: value for name, value in fields.items() if name not in _BESIDE_PODS_1}
    if "annotations" in kept:
        kept["annotations"] = _loud_1(kept["annotations"])
    return _without_nothing(kept)


def _loud_1(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in annotations.items() if key not in _SILENT_1}


def _without_nothing(value: object) -> object:
    """The value without nulls, empty lists and empty maps: what a typed client writes for "not given".

    Empty maps go too, although a few of them mean something, such as `emptyDir: {}`: there the rest of
    the entry still differs.
    """
    if isinstance(value, Mapping):
        kept = {name: _without_nothing(child) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child not in (None, [], {})}
    if isinstance(value, list | tuple):
        return [_without_nothing(child) for child in value]
    return value
