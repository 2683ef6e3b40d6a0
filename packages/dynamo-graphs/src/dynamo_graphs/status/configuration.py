"""The condition that says what of a graph's spec cannot work as it is written.

It is there while there is something to say, and after that has been corrected: most graphs never have it.
"""

from collections.abc import Iterator
from typing import Final

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.graph import service_path
from dynamo_graphs.validation.inoperative import graph_inoperative
from kube_runtime.text import fitted
from kube_runtime.types.meta import Condition, condition

TYPE: Final = "ConfigurationWarning"
_MESSAGE_LIMIT: Final = 1024


def configuration_warning(
    graph: DynamoGraphDeployment, *, istio_served: bool = True
) -> tuple[Condition, ...]:
    """The condition, or nothing for a graph without warnings that never had any. It has no problems."""
    found = [str(each) for each in graph_inoperative(graph)]
    if not istio_served:
        found += [str(each) for each in _without_istio(graph)]
    if not found and condition(graph.status.conditions, TYPE) is None:
        return ()
    status, reason = (
        ("True", GraphReason.INOPERATIVE) if found else ("False", GraphReason.NO_WARNING)
    )
    text = (
        fitted(found, _MESSAGE_LIMIT) if found else ("The spec has no known configuration problem")
    )
    generation = graph.metadata.generation
    return (Condition(TYPE, status, reason, text, observed_generation=generation),)


def _without_istio(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """VirtualServices that are not created, in a cluster without Istio."""
    for key, service in sorted(graph.spec.services.items()):
        wanted = service.ingress
        if wanted is None or not (wanted.enabled and wanted.use_virtual_service):
            continue
        if wanted.virtual_service_gateway:
            text = "no VirtualService is created: Istio is not installed, or withheld from the operator"
            yield Problem(f"{service_path(key)}.ingress.useVirtualService", text)
