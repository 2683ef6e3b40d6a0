"""The next step of a graph: the user's graph, with what is decided for this moment written into it.

Everything after this, from rendering to status, sees only the graph that comes out. So a suspended graph,
one that restarts and one that an autoscaler sizes are rendered by the same code as any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.plan.observed import Observed
from dynamo_graphs.plan.replicas import effective_replicas, sized
from dynamo_graphs.plan.restart import RestartPlan, restart_plan
from dynamo_graphs.plan.suspension import Suspension, suspension


@dataclass(frozen=True, slots=True)
class Step:
    """`graph` is what to make now; the rest says why it is not quite what the user wrote."""

    graph: DynamoGraphDeployment
    sized: DynamoGraphDeployment
    """The same with a number of replicas in every service, to compare with what runs."""
    restart: RestartPlan
    suspension: Suspension


def next_step(
    graph: DynamoGraphDeployment,
    observed: Observed,
    adapters: Mapping[str, int],
    *,
    is_rolling_out: bool = False,
) -> Step:
    """What to make of the graph now. `adapters` are the replicas that scaling adapters ask for."""
    # Before anything was made there is nothing old that a restart could replace.
    is_unknown = not graph.status.observed_generation and graph.status.state is None
    is_new = is_unknown or not any(each.exists for each in observed.values())
    restart = restart_plan(graph, observed, is_new=is_new, is_rolling_out=is_rolling_out)
    suspended = suspension(graph, observed)
    replicas = effective_replicas(graph, adapters, suspended.zero)
    made = effective(graph, replicas, restart.ids)
    return Step(made, sized(made), restart, suspended)


def effective(
    graph: DynamoGraphDeployment,
    replicas: Mapping[str, int | None],
    restarts: Mapping[str, str],
) -> DynamoGraphDeployment:
    """The graph with these replicas, and with the ids of restarts where pods carry them."""
    services = {}
    for key, service in graph.spec.services.items():
        annotations = service.annotations
        if id_ := restarts.get(key):
            annotations = annotations | {labels.RESTART_AT: id_}
        services[key] = msgspec.structs.replace(
            service, replicas=replicas[key], annotations=annotations
        )
    spec = msgspec.structs.replace(graph.spec, services=services)
    return msgspec.structs.replace(graph, spec=spec)
