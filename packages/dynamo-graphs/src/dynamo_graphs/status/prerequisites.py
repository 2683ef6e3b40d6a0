"""Missing objects that a graph needs and does not create: its status until they exist.

Nothing is written for such a graph, what runs keeps running, and each object that is read here is watched,
so that its creation wakes the graph.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import is_on_grove, kai_queue
from dynamo_graphs.api.graph import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.provider import is_available
from dynamo_graphs.status.graph import (
    GraphState,
    refused_status,
    stopped_status,
    unavailable_status,
)
from dynamo_graphs.status.groups import NO_ORCHESTRATOR
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


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that is not there, and how bad that is."""

    state: GraphState
    reason: GraphReason
    message: str


def missing(graph: DynamoGraphDeployment, facts: Facts) -> tuple[Missing, ...]:
    """All that a graph lacks; the worst first."""
    return (*_apis(graph, facts), *_objects(graph, facts))


def graph_stop(
    graph: DynamoGraphDeployment, facts: Facts, problems: Sequence[Problem]
) -> Stop | None:
    """Why nothing may be applied for a graph with its workload provider on it. None means: it can be."""
    provider = graph.metadata.annotations[labels.WORKLOAD_PROVIDER]
    if not is_available(provider, facts):
        forbidden = withheld_text(facts.withheld, (GROVE,)) if is_on_grove(graph) else ""
        text = f'workload provider "{provider}" is not available'
        text = f"{text}: {forbidden}" if forbidden else text
        status = unavailable_status(graph, provider, forbidden)
        return Stop(status, "WorkloadProviderUnavailable", [text])
    if problems:
        return refused(refused_status(graph, problems), problems)
    if lacks := missing(graph, facts):
        texts = [lack.message for lack in lacks]
        return Stop(lacking_status(graph, lacks), "PrerequisiteMissing", texts)
    return None


def lacking_status(
    graph: DynamoGraphDeployment, lacks: Sequence[Missing]
) -> DynamoGraphDeploymentStatus:
    """The status of a graph that lacks something; counts stay as they were."""
    text = "; ".join(lack.message for lack in lacks)
    return stopped_status(graph, lacks[0].state, lacks[0].reason, text)


def _apis(graph: DynamoGraphDeployment, facts: Facts) -> Iterator[Missing]:
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


def _objects(graph: DynamoGraphDeployment, facts: Facts) -> Iterator[Missing]:
    if facts.missing_ssh_keys:
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
