"""Which services have no replicas because the graph is suspended.

On resume, workers wait for the frontends. The condition `Suspended` records that a graph is resuming,
since the annotation is gone by then.
"""

from enum import StrEnum

from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import is_worker
from dynamo_operator.component.service import Observed, ServiceObserved, base_replicas
from dynamo_operator.features.decision import Decision, Feature, Suspension
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.shared.conditions import SUSPENDED
from kube_runtime.types.meta import Condition, condition


class SuspensionReason(StrEnum):
    """Reasons of the condition `Suspended`."""

    SUSPENDING = "suspending"
    SUSPENDED = "suspended"
    RESUMING = "resuming"
    RESUMED = "resumed"


def suspension(graph: DynamoGraphDeployment, observed: Observed) -> Suspension:
    """Plan which services are suspended now, with the condition that reports the progress."""
    if graph.metadata.is_true(labels.SUSPEND):
        return _suspended(graph, observed)
    stored = condition(graph.status.conditions, SUSPENDED)
    if stored is None:
        return Suspension()
    waiting = _unready_frontends(graph, observed) if stored.status != "False" else []
    if not waiting:
        text = "All services have the replicas of the spec"
        return Suspension(condition=_condition(graph, "False", SuspensionReason.RESUMED, text))
    text = f"Workers wait for: {', '.join(waiting)}"
    return Suspension(
        # Only those at zero: a condition that a user forged ends no worker.
        zero=_workers(graph) & _at_zero(graph, observed),
        condition=_condition(graph, "Unknown", SuspensionReason.RESUMING, text),
    )


def _suspended(graph: DynamoGraphDeployment, observed: Observed) -> Suspension:
    """Scale workers first, then the rest, so that frontends can answer with an error meanwhile."""
    workers, services = _workers(graph), frozenset(graph.spec.services)
    zero, status, reason = services, "Unknown", SuspensionReason.SUSPENDING
    stored = condition(graph.status.conditions, SUSPENDED)
    was_suspended = stored is not None and stored.status == "True"
    # An edit of a suspended graph sets no replicas, so there is no report to wait for.
    if was_suspended and not any(live.desired or live.replicas for live in observed.values()):
        observed = dict.fromkeys(services, ServiceObserved(exists=True))
    if left := _with_replicas(workers, observed):
        text = f"Scaling to zero, workers first: {', '.join(left)}"
        # What is at zero stays there, so a graph that is created or edited while suspended starts no pods.
        zero = workers | _at_zero(graph, observed)
    elif left := _with_replicas(services, observed):
        text = f"Scaling to zero: {', '.join(left)}"
    else:
        text = f"All services have zero replicas; remove the annotation {labels.SUSPEND} to resume"
        status, reason = "True", SuspensionReason.SUSPENDED
    return Suspension(zero=zero, condition=_condition(graph, status, reason, text))


def _at_zero(graph: DynamoGraphDeployment, observed: Observed) -> frozenset[str]:
    return frozenset(key for key in graph.spec.services if key not in observed or not observed[key].desired)


def _with_replicas(services: frozenset[str], observed: Observed) -> list[str]:
    """The services that have replicas left or may still create some, each with the reason if it is known.

    One that does not exist yet counts: once it does, it has to report that it is at zero.
    """
    return [
        _described(key, live)
        for key in sorted(services)
        if not (live := observed.get(key, ServiceObserved())).exists
        or live.desired
        or live.replicas
        or not live.is_current
    ]


def _described(key: str, live: ServiceObserved) -> str:
    if live.is_paused:
        return f"{key} (its component is paused)"
    if not live.exists:
        return f"{key} (not created yet)"
    return f"{key} (not reported yet)" if not live.is_current else key


def _unready_frontends(graph: DynamoGraphDeployment, observed: Observed) -> list[str]:
    return [
        _described(key, live)
        for key, service in sorted(graph.spec.services.items())
        if service.component_type == "frontend"
        and base_replicas(graph, key)
        and not (live := observed.get(key, ServiceObserved())).ready
    ]


def _workers(graph: DynamoGraphDeployment) -> frozenset[str]:
    return frozenset(key for key, service in graph.spec.services.items() if is_worker(service))


def _condition(graph: DynamoGraphDeployment, status: str, reason: SuspensionReason, text: str) -> Condition:
    return Condition(SUSPENDED, status, reason, text, observed_generation=graph.metadata.generation)


def _with_suspended(decision: Decision, status: DynamoGraphDeploymentStatus) -> DynamoGraphDeploymentStatus:
    suspended = decision.suspension.condition
    conditions = status.conditions if suspended is None else (*status.conditions, suspended)
    return replace(status, conditions=conditions)


SUSPENSION = Feature(
    lambda it: (
        labels.SUSPEND in it.graph.metadata.annotations
        or condition(it.graph.status.conditions, SUSPENDED) is not None
    ),
    plan=lambda decision: replace(decision, suspension=suspension(decision.graph, decision.inputs.services)),
    status=_with_suspended,
)
