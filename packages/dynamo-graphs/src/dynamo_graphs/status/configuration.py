"""The condition that says what of a graph's spec cannot work as it is written.

It is there while there is something to say, and after that has been corrected: most graphs never have it.
"""

from collections.abc import Iterator
from typing import Final

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.validation import Problem, service_path
from dynamo_graphs.validation.inoperative import graph_inoperative
from kube_runtime.text import fitted
from kube_runtime.types.meta import Condition, condition

TYPE: Final = "ConfigurationWarning"
_MESSAGE_LIMIT: Final = 1024


def configuration_warning(
    graph: DynamoGraphDeployment, *, istio_served: bool = True
) -> tuple[Condition, ...]:
    """The condition, or nothing for a graph without warnings that never had any. It has no problems."""
    warnings = [str(problem) for problem in graph_inoperative(graph)]
    if not istio_served:
        warnings += [str(problem) for problem in _without_istio(graph)]
    if not warnings and condition(graph.status.conditions, TYPE) is None:
        return ()
    status, reason = "False", GraphReason.NO_WARNING
    text = "The spec has no known configuration problem"
    if warnings:
        status, reason, text = "True", GraphReason.INOPERATIVE, fitted(warnings, _MESSAGE_LIMIT)
    generation = graph.metadata.generation
    return (Condition(TYPE, status, reason, text, observed_generation=generation),)


def _without_istio(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """VirtualServices that are not created, in a cluster without Istio."""
    for key, service in sorted(graph.spec.services.items()):
        ingress = service.ingress
        if ingress is None or not (ingress.enabled and ingress.use_virtual_service):
            continue
        if ingress.virtual_service_gateway:
            text = "no VirtualService is created: Istio is not installed, or withheld from the operator"
            yield Problem(f"{service_path(key)}.ingress.useVirtualService", text)
