"""The services of an object with what is known of each: a row for each of a graph, one for a component."""

from dataclasses import dataclass

from dynamo_graphs.api.component import DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_graphs.api.deployment_config import base_replicas
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.service_status import BlockedPod
from dynamo_graphs.plan.replicas import effective_replicas
from dynamo_graphs.plan.suspension import TYPE as SUSPENDED
from dynamo_graphs.status.readiness import Stated
from dynamo_graphs.status.service import ServiceView
from kube_runtime.types.meta import condition


@dataclass(frozen=True, slots=True)
class Service:
    """One service: the replicas that it should have, and what the status says of it.

    None means: not known; of `ready`, that its workload has no such count.
    """

    name: str
    wanted: int
    ready: int | None = None
    updated: int | None = None
    ready_of_newest: int = 0
    reason: str = ""
    message: str = ""
    blocked_pods: tuple[BlockedPod, ...] = ()


def services(stated: Stated) -> list[Service]:
    """The services, by name; none of an object that has no pods of its own."""
    match stated:
        case DynamoGraphDeployment():
            return _of_graph(stated)
        case DynamoComponentDeployment(spec=spec, status=status):
            wanted = 1 if spec.replicas is None else spec.replicas
            return [_service(spec.service_name or stated.metadata.name, wanted, status.service)]
        case _:
            return []


def _of_graph(graph: DynamoGraphDeployment) -> list[Service]:
    # What scaling adapters say is in the graph's spec by the time that it counts.
    suspended = condition(graph.status.conditions, SUSPENDED)
    is_at_zero = suspended is not None and suspended.status == "True"
    replicas = effective_replicas(graph, {}, graph.spec.services if is_at_zero else ())
    return [
        _service(
            key,
            base_replicas(graph, key) if wanted is None else wanted,
            graph.status.services.get(key),
        )
        for key, wanted in sorted(replicas.items())
    ]


def _service(name: str, wanted: int, counts: ServiceReplicaStatus | None) -> Service:
    if counts is None:
        return Service(name, wanted)
    ready = counts.available_replicas if counts.ready_replicas is None else counts.ready_replicas
    return Service(
        name,
        wanted,
        ready=ready,
        updated=counts.updated_replicas,
        ready_of_newest=ServiceView(name, counts, wanted).ready_of_newest,
        reason=counts.reason or "",
        message=counts.message or "",
        blocked_pods=counts.blocked_pods,
    )
