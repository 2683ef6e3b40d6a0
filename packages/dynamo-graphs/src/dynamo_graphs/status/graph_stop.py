"""Why nothing may be applied for a graph, and its status then: an invalid spec or a missing prerequisite.

The operator writes nothing for such a graph, and its pods keep running. It watches each object that it reads
here, so the creation of a missing one wakes the graph.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import is_on_grove, kai_queue
from dynamo_graphs.api.graph import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.provider import is_available
from dynamo_graphs.status.conditions import MESSAGE_LIMIT
from dynamo_graphs.status.graph import GraphState, ready_condition
from dynamo_graphs.status.leaderworkerset import NO_ORCHESTRATOR
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.status.stop import Stop, refused
from dynamo_graphs.types.optional_apis import (
    GROVE,
    INFERENCE_POOL,
    LEADER_WORKER_SET,
    InferencePool,
    withheld_text,
)
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.multinode import lacks_orchestrator
from kube_runtime.text import fitted

_REFUSED = "Validation failed: "


@dataclass(frozen=True, slots=True)
class Missing:
    """A prerequisite that does not exist, with the state, reason and message of a graph that needs it."""

    state: GraphState
    reason: GraphReason
    message: str


def graph_stop(
    graph: DynamoGraphDeployment, facts: Facts, problems: Sequence[Problem]
) -> Stop | None:
    """Why nothing may be applied for a graph with its workload provider on it; None if it may be."""
    provider = graph.metadata.annotations[labels.WORKLOAD_PROVIDER]
    if not is_available(provider, facts):
        forbidden = withheld_text(facts.withheld, (GROVE,)) if is_on_grove(graph) else ""
        text = f'workload provider "{provider}" is not available'
        text = f"{text}: {forbidden}" if forbidden else text
        status = stopped_status(graph, GraphState.FAILED, GraphReason.PROVIDER_UNAVAILABLE, text)
        return Stop(status, "WorkloadProviderUnavailable", [text])
    if problems:
        return refused(refused_status(graph, problems), problems)
    if lacks := missing(graph, facts):
        texts = [lack.message for lack in lacks]
        status = stopped_status(graph, lacks[0].state, lacks[0].reason, "; ".join(texts))
        return Stop(status, "PrerequisiteMissing", texts)
    return None


def refused_status(
    graph: DynamoGraphDeployment, problems: Sequence[Problem]
) -> DynamoGraphDeploymentStatus:
    """The status of a graph with an invalid spec."""
    texts = [str(problem) for problem in problems]
    text = _REFUSED + fitted(texts, MESSAGE_LIMIT - len(_REFUSED))
    return stopped_status(graph, GraphState.FAILED, GraphReason.VALIDATION_FAILED, text)


def stopped_status(
    graph: DynamoGraphDeployment, state: GraphState, reason: GraphReason, text: str
) -> DynamoGraphDeploymentStatus:
    """The status of a graph for which the operator does nothing until a user acts.

    The counts of its services stay, and `observedGeneration` stays at the last spec that was applied; the
    conditions name the generation that was not.
    """
    ready = ready_condition(graph, state, reason, text)
    progressing = structs.replace(ready, type="Progressing", status="False")
    return structs.replace(
        graph.status, state=str(state), conditions=(ready, progressing), progress=None
    )


def missing(graph: DynamoGraphDeployment, facts: Facts) -> tuple[Missing, ...]:
    """All missing prerequisites of a graph, those that fail it first."""
    return (*_missing_apis(graph, facts), *_missing_objects(graph, facts))


def _missing_apis(graph: DynamoGraphDeployment, facts: Facts) -> Iterator[Missing]:
    services = graph.spec.services.values()
    if not is_on_grove(graph) and any(lacks_orchestrator(service, facts) for service in services):
        forbidden = withheld_text(facts.withheld, (LEADER_WORKER_SET, GROVE))
        text = f"failed to reconcile Dynamo components deployments: {forbidden or NO_ORCHESTRATOR}"
        reason = GraphReason.API_FORBIDDEN if forbidden else GraphReason.NO_ORCHESTRATOR
        yield Missing(GraphState.FAILED, reason, text)
    has_picker = any(service.component_type == "epp" for service in services)
    if has_picker and not facts.inference_pools_served:
        if forbidden := withheld_text(facts.withheld, (INFERENCE_POOL,)):
            yield Missing(GraphState.FAILED, GraphReason.API_FORBIDDEN, forbidden)
            return
        text = (
            f"the API of InferencePools ({InferencePool.KIND.group}) is not served: an endpoint "
            "picker requires the Gateway API inference extension"
        )
        yield Missing(GraphState.FAILED, GraphReason.FAILED, text)


def _missing_objects(graph: DynamoGraphDeployment, facts: Facts) -> Iterator[Missing]:
    if facts.ssh_keys_refusal:
        yield Missing(GraphState.FAILED, GraphReason.REJECTED, facts.ssh_keys_refusal)
    elif facts.missing_ssh_keys:
        text = (
            f"Secret {facts.missing_ssh_keys} not found or not readable: it holds the SSH keys "
            "for multinode TensorRT-LLM"
        )
        yield Missing(GraphState.FAILED, GraphReason.FAILED, text)
    queue = kai_queue(graph)
    if is_on_grove(graph) and facts.kai_served and queue not in facts.kai_queues:
        text = (
            f"queue '{queue}' not found in cluster. "
            "Ensure the queue exists before using kai-scheduler"
        )
        yield Missing(GraphState.FAILED, GraphReason.FAILED, text)
    for claim in graph.spec.pvcs:
        if not claim.create and claim.name not in facts.claims:
            text = f"PersistentVolumeClaim {claim.name} not found: create it, or set create: true"
            yield Missing(GraphState.PENDING, GraphReason.SOME_NOT_READY, text)
