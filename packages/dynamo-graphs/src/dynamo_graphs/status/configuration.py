"""The condition `ConfigurationWarning` of a graph: what in its spec cannot work as written.

Most graphs never have it. Once corrected it stays, with status False.
"""

from collections.abc import Iterator
from typing import Final

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.conditions import MESSAGE_LIMIT, new_condition
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.validation import Problem, service_path
from dynamo_graphs.validation.inoperative import graph_inoperative
from kube_runtime.text import fitted
from kube_runtime.types.meta import Condition, condition

TYPE: Final = "ConfigurationWarning"


def configuration_warning(
    graph: DynamoGraphDeployment, *, istio_served: bool = True
) -> tuple[Condition, ...]:
    """The condition of a graph without problems; empty if it has no warnings and never had any."""
    warnings = [str(problem) for problem in graph_inoperative(graph)]
    if not istio_served:
        warnings += [str(problem) for problem in _without_istio(graph)]
    if not warnings and condition(graph.status.conditions, TYPE) is None:
        return ()
    if warnings:
        text = fitted(warnings, MESSAGE_LIMIT)
        return (new_condition(graph, TYPE, "True", GraphReason.INOPERATIVE, text),)
    text = "The spec has no known configuration problem"
    return (new_condition(graph, TYPE, "False", GraphReason.NO_WARNING, text),)


def _without_istio(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Warn of VirtualServices that are not created because Istio is missing."""
    for key, service in sorted(graph.spec.services.items()):
        ingress = service.ingress
        if ingress is None or not (ingress.enabled and ingress.use_virtual_service):
            continue
        if ingress.virtual_service_gateway:
            text = "no VirtualService is created: Istio is not installed, or withheld from the operator"
            yield Problem(f"{service_path(key)}.ingress.useVirtualService", text)
