"""The workload provider of a graph (components or Grove), as recorded on the graph.

Validation, rendering and status all depend on it and read it here only. A graph without a record is
treated as one of components; code that handles a new graph records the choice first (`recorded`).
"""

import msgspec

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.graph import DynamoGraphDeployment

COMPONENT = "component"
GROVE = "grove"


def is_on_grove(graph: DynamoGraphDeployment) -> bool:
    """Whether the graph's workloads are one PodCliqueSet."""
    return graph.metadata.annotations.get(labels.WORKLOAD_PROVIDER) == GROVE


def recorded(graph: DynamoGraphDeployment, provider: str) -> DynamoGraphDeployment:
    """Return the graph with this provider recorded."""
    annotations = {**graph.metadata.annotations, labels.WORKLOAD_PROVIDER: provider}
    metadata = msgspec.structs.replace(graph.metadata, annotations=annotations)
    return msgspec.structs.replace(graph, metadata=metadata)


def kai_queue(graph: DynamoGraphDeployment) -> str:
    """The queue of the KAI scheduler that the pods of a graph on Grove wait in."""
    asked = graph.metadata.annotations.get(labels.KAI_QUEUE, "").strip()
    return asked or names.DEFAULT_KAI_QUEUE
