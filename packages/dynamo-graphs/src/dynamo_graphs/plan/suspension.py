"""Which services have no replicas because the graph is suspended.

On resume, workers wait for the frontends. That a graph is resuming can only be seen from the condition
`Suspended`, which stays until the resume is complete.
"""

from dataclasses import dataclass
from enum import StrEnum

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.roles import is_worker
from dynamo_graphs.plan.observed import Observed
from kube_runtime.types.meta import Condition, condition

TYPE = "Suspended"


class SuspensionReason(StrEnum):
    """Reasons of the condition `Suspended`."""

    SUSPENDING = "suspending"
    SUSPENDED = "suspended"
    RESUMING = "resuming"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class Suspension:
    """`zero` are the services that have no replicas now.

    None means: `condition` is None when the graph has never been suspended.
    """

    is_wanted: bool = False
    zero: frozenset[str] = frozenset()
    condition: Condition | None = None


def suspension(graph: DynamoGraphDeployment, observed: Observed) -> Suspension:
    """What is suspended now, and the condition that says how far that is."""
    if graph.metadata.annotations.get(labels.SUSPEND) == "true":
        return _suspended(graph, observed)
    stored = condition(graph.status.conditions, TYPE)
    if stored is None:
        return Suspension()
    waiting = _frontends_to_come(graph, observed) if stored.status != "False" else []
    if not waiting:
        text = "All services have the replicas of the spec"
        return Suspension(condition=_condition(graph, "False", SuspensionReason.RESUMED, text))
    text = f"Workers wait for: {', '.join(waiting)}"
    return Suspension(
        zero=_workers(graph),
        condition=_condition(graph, "Unknown", SuspensionReason.RESUMING, text),
    )


def _suspended(graph: DynamoGraphDeployment, observed: Observed) -> Suspension:
    """Workers first, then the rest: a frontend without workers can at least report that.

    A service that asks for none stays at zero, also while a worker has not reported yet: a graph that was
    created suspended, or is edited while it is, starts no pod.
    """
    workers, services = _workers(graph), frozenset(graph.spec.services)
    if left := _with_replicas(workers, observed):
        text = f"Scaling to zero, workers first: {', '.join(left)}"
        found = _condition(graph, "Unknown", SuspensionReason.SUSPENDING, text)
        asleep = {key for key in services if key not in observed or not observed[key].wanted}
        return Suspension(is_wanted=True, zero=workers | asleep, condition=found)
    if left := _with_replicas(services, observed):
        text = f"Scaling to zero: {', '.join(left)}"
        found = _condition(graph, "Unknown", SuspensionReason.SUSPENDING, text)
        return Suspension(is_wanted=True, zero=services, condition=found)
    text = f"All services have zero replicas; remove the annotation {labels.SUSPEND} to resume"
    found = _condition(graph, "True", SuspensionReason.SUSPENDED, text)
    return Suspension(is_wanted=True, zero=services, condition=found)


def _with_replicas(services: frozenset[str], observed: Observed) -> list[str]:
    """The services that have replicas left, or may get some, with a word on those that say nothing of it."""
    found = ((key, observed.get(key)) for key in sorted(services))
    return [
        _named(key, observed)
        for key, each in found
        if each and each.exists and (each.wanted or each.replicas or not each.is_current)
    ]


def _named(key: str, observed: Observed) -> str:
    found = observed.get(key)
    if found and found.is_paused:
        return f"{key} (its component is paused)"
    return f"{key} (not reported yet)" if found and not found.is_current else key


def _frontends_to_come(graph: DynamoGraphDeployment, observed: Observed) -> list[str]:
    """Frontends that should serve and do not."""
    waiting = []
    for key, service in sorted(graph.spec.services.items()):
        if service.component_type == "frontend" and service.replicas != 0:
            found = observed.get(key)
            if found is None or not found.ready:
                waiting.append(_named(key, observed))
    return waiting


def _workers(graph: DynamoGraphDeployment) -> frozenset[str]:
    return frozenset(key for key, each in graph.spec.services.items() if is_worker(each))


def _condition(
    graph: DynamoGraphDeployment, status: str, reason: SuspensionReason, text: str
) -> Condition:
    generation = graph.metadata.generation
    return Condition(TYPE, status, reason, text, observed_generation=generation)
