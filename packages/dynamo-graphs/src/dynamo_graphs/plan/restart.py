"""Which services restart now: the state machine behind `spec.restart`.

A restart is an id that goes into the pods' template, so the workload's own controller replaces the pods. A
service is complete when its workload carries this id and runs nothing older; otherwise the state before the
restart would pass for the one after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dynamo_graphs.api.graph import DynamoGraphDeployment, Restart, RestartStatus
from dynamo_graphs.plan.replicas import Observed


class Phase(StrEnum):
    """`status.restart.phase`."""

    RESTARTING = "Restarting"
    COMPLETED = "Completed"
    SUPERSEDED = "Superseded"


_OVER = frozenset((Phase.COMPLETED, Phase.SUPERSEDED, "Failed"))
"""`Failed` is never written by us; an earlier operator may have left it."""


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """The next step of a restart.

    None means: `status` is None when no restart is known. `ids` is the id that each service's pods carry; a
    service that is not in it carries none.
    """

    status: RestartStatus | None
    ids: Mapping[str, str] = field(default_factory=dict[str, str])


def restart_plan(
    graph: DynamoGraphDeployment, observed: Observed, *, is_new: bool, is_rolling_out: bool
) -> RestartPlan:
    """The next step of the restart that the graph asks for.

    `is_new` is whether nothing was made for the graph yet: then there is nothing to restart, and the id
    counts as done. `is_rolling_out` is whether workers are being replaced anyway: the restart gives way.
    """
    restart, stored = graph.spec.restart, graph.status.restart
    kept = {key: live.restart for key, live in observed.items() if live.restart}
    if restart is None or not restart.id:
        return _without_restart(graph, stored, kept)
    if is_new:
        return _completed(graph, restart.id)
    current = stored if stored is not None and stored.observed_id == restart.id else None
    if current is not None and current.phase in _OVER:
        done = current.phase == Phase.COMPLETED
        return _completed(graph, restart.id) if done else RestartPlan(current, kept)
    if is_rolling_out:
        return RestartPlan(RestartStatus(restart.id, Phase.SUPERSEDED), kept)
    under_way = current.in_progress if current is not None else ()
    if restart.strategy is not None and restart.strategy.type == "Parallel":
        return _parallel(graph, restart, under_way, observed)
    return _sequential(graph, restart, under_way, observed, kept)


def _without_restart(
    graph: DynamoGraphDeployment, stored: RestartStatus | None, kept: Mapping[str, str]
) -> RestartPlan:
    """Keep the last restart in the status. One that was in progress ends where it is."""
    if stored is None or stored.phase not in _OVER:
        return RestartPlan(None, kept)
    if stored.phase == Phase.COMPLETED and stored.observed_id:
        return _completed(graph, stored.observed_id)
    return RestartPlan(stored, kept)


def _completed(graph: DynamoGraphDeployment, id_: str) -> RestartPlan:
    return RestartPlan(RestartStatus(id_, Phase.COMPLETED), dict.fromkeys(graph.spec.services, id_))


def _parallel(
    graph: DynamoGraphDeployment, restart: Restart, under_way: tuple[str, ...], observed: Observed
) -> RestartPlan:
    services = sorted(graph.spec.services)
    waiting = [key for key in under_way or services if key in graph.spec.services]
    left = tuple(key for key in waiting if not _is_through(key, restart.id, observed))
    if not left:
        return _completed(graph, restart.id)
    status = RestartStatus(restart.id, Phase.RESTARTING, left)
    return RestartPlan(status, dict.fromkeys(services, restart.id))


def _sequential(
    graph: DynamoGraphDeployment,
    restart: Restart,
    under_way: tuple[str, ...],
    observed: Observed,
    kept: Mapping[str, str],
) -> RestartPlan:
    """One service after the other. A service that failed after its turn does not get a second one."""
    chosen = restart.strategy.order if restart.strategy is not None else ()
    order = list(chosen) or sorted(graph.spec.services)
    at = order.index(under_way[0]) if under_way and under_way[0] in order else 0
    while at < len(order) and _is_through(order[at], restart.id, observed):
        at += 1
    if at == len(order):
        return _completed(graph, restart.id)
    status = RestartStatus(restart.id, Phase.RESTARTING, (order[at],))
    return RestartPlan(status, {**kept, **dict.fromkeys(order[: at + 1], restart.id)})


def _is_through(key: str, id_: str, observed: Observed) -> bool:
    live = observed.get(key)
    return live is not None and live.restart == id_ and live.is_ready
