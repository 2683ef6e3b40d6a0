"""The condition that says what of a graph's spec cannot work as it is written.

It is there while there is something to say, and after that has been corrected: most graphs never have it.
"""

from typing import Final

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.validation.inoperative import graph_inoperative
from kube_runtime.text import fitted
from kube_runtime.types.meta import Condition, condition

TYPE: Final = "ConfigurationWarning"
_MESSAGE_LIMIT: Final = 1024


def configuration_warning(graph: DynamoGraphDeployment) -> tuple[Condition, ...]:
    """The condition, or nothing for a graph without warnings that never had any. It has no problems."""
    found = [str(each) for each in graph_inoperative(graph)]
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
