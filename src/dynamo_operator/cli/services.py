"""The services of an object with what is known of each: a row for each of a graph, one for a component."""

from dataclasses import dataclass

from dynamo_operator.api.component import DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_operator.api.deployment_config import base_replicas
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.kube.types.meta import condition
from dynamo_operator.lifecycle.replicas import effective_replicas
from dynamo_operator.lifecycle.suspension import TYPE as SUSPENDED
from dynamo_operator.status.standing import Stated


@dataclass(frozen=True, slots=True)
class Service:
    """One service: the replicas that it should have, and what the status says of it.

    None means: `counts` have not been written yet.
    """

    name: str
    wanted: int
    counts: ServiceReplicaStatus | None

    @property
    def ready(self) -> int | None:
        """Replicas that serve. None means: not known."""
        if self.counts is None:
            return None
        found = self.counts.ready_replicas
        return self.counts.available_replicas if found is None else found


def services(stated: Stated) -> list[Service]:
    """The services, by name; none of an object that has no pods of its own."""
    match stated:
        case DynamoGraphDeployment():
            return _of_graph(stated)
        case DynamoComponentDeployment(spec=spec, status=status):
            wanted = 1 if spec.replicas is None else spec.replicas
            return [Service(spec.service_name or stated.metadata.name, wanted, status.service)]
        case _:
            return []


def _of_graph(graph: DynamoGraphDeployment) -> list[Service]:
    # What scaling adapters say is in the graph's spec by the time that it counts.
    suspended = condition(graph.status.conditions, SUSPENDED)
    is_at_zero = suspended is not None and suspended.status == "True"
    replicas = effective_replicas(graph, {}, graph.spec.services if is_at_zero else ())
    return [
        Service(
            key,
            base_replicas(graph, key) if wanted is None else wanted,
            graph.status.services.get(key),
        )
        for key, wanted in sorted(replicas.items())
    ]
