"""The services of a graph or component as rows: what `status`, `why` and drawings show of them."""

from dataclasses import dataclass

from dynamo_operator.component.api import BlockedPod, DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_operator.component.service import ServiceView, base_replicas, effective_replicas
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import SUSPENDED, Stated
from kube_runtime.types.meta import condition


@dataclass(frozen=True, slots=True)
class Service:
    """One row: the desired replicas of a service, and what the status reports.

    None means unknown; for `ready`, that its workload has no such count.
    """

    name: str
    desired: int
    ready: int | None = None
    updated: int | None = None
    ready_of_newest: int = 0
    reason: str = ""
    message: str = ""
    blocked_pods: tuple[BlockedPod, ...] = ()


def services(stated: Stated) -> list[Service]:
    """The services of a graph or component, by name; other kinds have none."""
    match stated:
        case DynamoGraphDeployment():
            return _of_graph(stated)
        case DynamoComponentDeployment(spec=spec, status=status):
            desired = spec.desired_replicas
            return [_service(spec.service_name or stated.metadata.name, desired, status.service)]
        case _:
            return []


def _of_graph(graph: DynamoGraphDeployment) -> list[Service]:
    # The operator copies the replicas of scaling adapters into the spec, so adapters are not read here.
    suspended = condition(graph.status.conditions, SUSPENDED)
    is_at_zero = suspended is not None and suspended.status == "True"
    replicas = effective_replicas(graph, {}, graph.spec.services if is_at_zero else ())
    return [
        _service(
            key, base_replicas(graph, key) if desired is None else desired, graph.status.services.get(key)
        )
        for key, desired in sorted(replicas.items())
    ]


def _service(name: str, desired: int, counts: ServiceReplicaStatus | None) -> Service:
    if counts is None:
        return Service(name, desired)
    return Service(
        name,
        desired,
        ready=counts.ready,
        updated=counts.updated_replicas,
        ready_of_newest=ServiceView(name, counts, desired).ready_of_newest,
        reason=counts.reason or "",
        message=counts.message or "",
        blocked_pods=counts.blocked_pods,
    )
