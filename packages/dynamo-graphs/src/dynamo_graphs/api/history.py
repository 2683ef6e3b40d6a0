"""Former specs of a graph: what one contains, and how many are kept."""

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from kube_runtime.kind import Object

KEPT = 10
"""Former specs that are kept beside the current one: the default of a StatefulSet."""

MOST_KEPT = 100
"""Largest limit. Each former spec takes as much of the API server's store as the graph."""

CHANGE_CAUSE = "kubernetes.io/change-cause"
"""Annotation of kubectl: why the spec changed. A revision has a copy of the graph's."""

SIZES = frozenset(("replicas", "restart"))
"""Fields of a graph that `scale`, autoscalers and restarts write. They make no revision, nor does an undo
change them."""

SIZE_OF_SERVICE = "replicas"
"""The same of a service."""

_DIGITS = 3


def limit_of(text: str) -> int | None:
    """The number in the annotation. None means: it is none that we accept."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        return None
    return int(text) if int(text) <= MOST_KEPT else None


def history_limit(graph: DynamoGraphDeployment) -> int:
    """How many former specs to keep; 0 means: not even the current one."""
    given = graph.metadata.annotations.get(labels.REVISION_HISTORY_LIMIT)
    limit = None if given is None else limit_of(given)
    return KEPT if limit is None else limit


def spec_of(graph: DynamoGraphDeployment) -> Object:
    """The whole spec, as a revision keeps it."""
    spec: Object = msgspec.to_builtins(graph.spec)
    return spec


def without_sizes(spec: Object) -> Object:
    """What two specs must have in common to be one revision."""
    services = spec.get("services", {})
    kept = {
        key: {name: value for name, value in service.items() if name != SIZE_OF_SERVICE}
        for key, service in services.items()
    }
    rest = {name: value for name, value in spec.items() if name not in SIZES}
    return {**rest, "services": kept}
