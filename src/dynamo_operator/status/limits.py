"""What a graph asks for that this release does not do, so that `Ready` cannot be taken for all of it.

The hard part is to say it only where it matters: a graph that asks for nothing of the kind has no such
condition, unless it had one that stands and has to be taken back.
"""

from collections.abc import Iterator

from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.kube.types.meta import Condition, condition
from dynamo_operator.status.reasons import GraphReason

_TYPE = "Limited"


def limits(graph: DynamoGraphDeployment) -> tuple[Condition, ...]:
    """The condition that names the fields without effect; empty when there is nothing to say."""
    generation, paths = graph.metadata.generation, tuple(_fields_without_effect(graph))
    if paths:
        text = f"This release of the operator does nothing about: {', '.join(paths)}"
        reason = GraphReason.FIELDS_WITHOUT_EFFECT
        return (Condition(_TYPE, "True", reason, text, observed_generation=generation),)
    if condition(graph.status.conditions, _TYPE) is None:
        return ()
    text, reason = "All fields that are set have an effect", GraphReason.NO_LIMITS
    return (Condition(_TYPE, "False", reason, text, observed_generation=generation),)


def _fields_without_effect(graph: DynamoGraphDeployment) -> Iterator[str]:
    if graph.spec.restart is not None:
        yield "spec.restart"
    for key, service in sorted(graph.spec.services.items()):
        if service.scaling_adapter is not None and service.scaling_adapter.enabled:
            yield f"spec.services.{key}.scalingAdapter.enabled"
