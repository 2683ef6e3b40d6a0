"""Read the annotations that control how the operator treats an object.

`nvidia.com/workload-provider` records whether a graph runs as components or on Grove. A graph without the
record counts as one of components; code that handles a new graph records the choice first (`recorded`).
"""

import msgspec

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.graph import DynamoGraphDeployment
from kube_runtime.types.meta import Resource

COMPONENT = "component"
GROVE = "grove"

DEFAULT_HISTORY_LIMIT = 10
"""Former specs kept beside the current one, as many as a StatefulSet keeps."""

MAX_HISTORY_LIMIT = 100
"""Each former spec takes as much of the API server's store as the graph."""


def is_on_grove(graph: DynamoGraphDeployment) -> bool:
    """Whether the graph's workloads are one PodCliqueSet."""
    return graph.metadata.annotations.get(labels.WORKLOAD_PROVIDER) == GROVE


def recorded(graph: DynamoGraphDeployment, provider: str) -> DynamoGraphDeployment:
    """Return the graph with its provider recorded."""
    annotations = {**graph.metadata.annotations, labels.WORKLOAD_PROVIDER: provider}
    metadata = msgspec.structs.replace(graph.metadata, annotations=annotations)
    return msgspec.structs.replace(graph, metadata=metadata)


def kai_queue(graph: DynamoGraphDeployment) -> str:
    """The KAI scheduler queue for the pods of a graph on Grove."""
    asked = graph.metadata.annotations.get(labels.KAI_QUEUE, "").strip()
    return asked or names.DEFAULT_KAI_QUEUE


def is_paused(resource: Resource) -> bool:
    """Whether a user has paused the object, so that the operator writes nothing for it."""
    return resource.metadata.annotations.get(labels.PAUSED) == "true"


def parsed_history_limit(text: str) -> int | None:
    """The number in the text of the annotation; None if it is invalid."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_HISTORY_LIMIT))):
        return None
    return int(text) if int(text) <= MAX_HISTORY_LIMIT else None


def history_limit(graph: DynamoGraphDeployment) -> int:
    """Number of former specs to keep; 0 keeps no revision, not even of the current spec."""
    given = graph.metadata.annotations.get(labels.REVISION_HISTORY_LIMIT)
    limit = None if given is None else parsed_history_limit(given)
    return DEFAULT_HISTORY_LIMIT if limit is None else limit
