"""Labels and annotations of graphs and components: their syntax, and the keys that the operator reserves.

`spec.labels` and `spec.annotations` of a graph refuse reserved keys. Those of a service are older, and old
manifests must stay valid: there the operator's values take precedence.
"""

import re
from collections.abc import Iterator, Mapping

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import MAX_HISTORY_LIMIT, parsed_history_limit
from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.graph import DynamoGraphDeploymentSpec
from dynamo_graphs.api.labels import Use
from dynamo_graphs.api.revision import MODES
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.syntax import (
    annotation_problems,
    is_label_value,
    label_problems,
    nearest,
    not_a_label_value,
)

_BACKENDS = ("etcd", "kubernetes")
_RECREATE = "Recreate"
_STRATEGIES = (_RECREATE, "RollingUpdate")
_RESERVED_LABELS = frozenset(
    entry.key
    for entry in labels.ENTRIES
    if entry.use is Use.LABEL and not entry.key.startswith("app.kubernetes.io/")
)
"""Labels by which the operator selects, or that identify its objects. Kubernetes' common labels are free."""
_RESERVED_ANNOTATIONS = frozenset(
    entry.key for entry in labels.ENTRIES if entry.use is not Use.LABEL
)
_BOUND = re.compile(r"(?P<number>\d{1,9})(?P<percent>%)?", re.ASCII)


def graph_metadata_problems(graph: DynamoGraphDeploymentSpec) -> Iterator[Problem]:
    """Problems of the labels and annotations that a graph gives all its objects."""
    yield from label_problems(graph.labels, "spec.labels")
    yield from annotation_problems(graph.annotations, "spec.annotations")
    for field, given, reserved in (
        ("labels", graph.labels, _RESERVED_LABELS),
        ("annotations", graph.annotations, _RESERVED_ANNOTATIONS),
    ):
        for key in sorted(reserved & given.keys()):
            keys = ", ".join(sorted(reserved))
            message = f"reserved: the operator sets or reads it (reserved keys: {keys})"
            yield Problem(f"spec.{field}[{key}]", message, ProblemKind.FORBIDDEN)


def metadata_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Problems of a component's labels and annotations, and of the fields that become labels."""
    yield from label_problems(spec.labels, f"{path}.labels")
    yield from annotation_problems(spec.annotations, f"{path}.annotations")
    extra = spec.extra_pod_metadata
    if extra is not None:
        at = f"{path}.extraPodMetadata"
        yield from label_problems(extra.labels, f"{at}.labels")
        yield from annotation_problems(extra.annotations, f"{at}.annotations")
    for field, value in (
        ("componentType", spec.component_type),
        ("subComponentType", spec.sub_component_type),
    ):
        if value and not is_label_value(value):
            yield Problem(f"{path}.{field}", not_a_label_value(value))
    yield from _discovery_problems(spec.annotations, f"{path}.annotations")
    yield from _update_problems(spec, path)


def _discovery_problems(annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Report an unknown discovery backend."""
    value = annotations.get(labels.DISCOVERY_BACKEND)
    if value is not None and value not in _BACKENDS:
        expected = f"etcd or kubernetes{nearest(value, _BACKENDS)}"
        message = f'unknown discovery backend "{value}" (expected {expected})'
        yield Problem(f"{path}[{labels.DISCOVERY_BACKEND}]", message, ProblemKind.NOT_SUPPORTED)


def graph_annotation_problems(annotations: Mapping[str, str]) -> Iterator[Problem]:
    """Problems of the annotations on a graph that the operator reads."""
    path = "metadata.annotations"
    yield from _discovery_problems(annotations, path)
    mode = annotations.get(labels.WORKER_ROLLOUT)
    if mode is not None and mode not in MODES:
        message = (
            f'unknown rollout mode "{mode}" (expected managed or native{nearest(mode, MODES)})'
        )
        yield Problem(f"{path}[{labels.WORKER_ROLLOUT}]", message, ProblemKind.NOT_SUPPORTED)
    limit = annotations.get(labels.REVISION_HISTORY_LIMIT)
    if limit is not None and parsed_history_limit(limit) is None:
        message = f'invalid number "{limit}" (expected 0 to {MAX_HISTORY_LIMIT}, for example "10")'
        at = f"{path}[{labels.REVISION_HISTORY_LIMIT}]"
        yield Problem(at, message, ProblemKind.NOT_SUPPORTED)
    for key in (labels.PAUSED, labels.SUSPEND):
        value = annotations.get(key)
        if value not in (None, "true", "false"):
            message = f'invalid value "{value}" (expected true or false)'
            yield Problem(f"{path}[{key}]", message, ProblemKind.NOT_SUPPORTED)


def update_warnings(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Warn of an unknown rollout strategy, and of annotations without effect on the chosen one."""
    strategy = spec.annotations.get(labels.STRATEGY)
    at = f"{path}.annotations[{labels.STRATEGY}]"
    if not strategy:
        return
    if strategy not in _STRATEGIES:
        expected = f"{' or '.join(_STRATEGIES)}{nearest(strategy, _STRATEGIES)}"
        yield Problem(
            at, f'unknown strategy "{strategy}", using RollingUpdate (expected {expected})'
        )
    elif strategy == _RECREATE and spec.nodes > 1:
        yield Problem(at, "has no effect on a multinode component")
    elif strategy == _RECREATE:
        extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
        places = (("annotations", spec.annotations), ("extraPodMetadata.annotations", extra))
        for place, given in places:
            for key in (labels.MAX_SURGE, labels.MAX_UNAVAILABLE):
                if key in given:
                    yield Problem(f"{path}.{place}[{key}]", "has no effect with Recreate")


def _update_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Problems of maxSurge and maxUnavailable, which Recreate does not use."""
    if spec.annotations.get(labels.STRATEGY) == _RECREATE:
        return
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    amounts = []
    for key in (labels.MAX_SURGE, labels.MAX_UNAVAILABLE):
        text = extra.get(key) or (spec.annotations.get(key) if key not in extra else "")
        place = "extraPodMetadata.annotations" if key in extra else "annotations"
        at = f"{path}.{place}[{key}]"
        match = _BOUND.fullmatch(text or "25%")
        if match is None:
            yield Problem(
                at, f'invalid bound "{text}" (expected a number or a percentage, for example 25%)'
            )
            return
        number = int(match["number"])
        if key == labels.MAX_UNAVAILABLE and match["percent"] and number > 100:  # noqa: PLR2004
            yield Problem(at, "must not be more than 100%")
        amounts.append(number)
    if not any(amounts):
        at = f"{path}.annotations[{labels.MAX_UNAVAILABLE}]"
        yield Problem(
            at, "maxSurge and maxUnavailable must not both be 0: no pod could be replaced"
        )
