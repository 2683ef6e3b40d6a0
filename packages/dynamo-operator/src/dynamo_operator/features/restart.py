"""Which services restart now: the state machine of `spec.restart`.

A restart writes an id into the pod template, so that the workload's controller replaces the pods. A
service is complete when its workload has this id in its template and runs no older pods.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec.structs import replace

from dynamo_operator.component.service import Observed
from dynamo_operator.features.decision import Decision, Feature, RestartPlan
from dynamo_operator.graph.api import DynamoGraphDeployment, Restart, RestartStatus


class Phase(StrEnum):
    """`status.restart.phase`."""

    RESTARTING = "Restarting"
    COMPLETED = "Completed"
    SUPERSEDED = "Superseded"


_FINISHED = frozenset((Phase.COMPLETED, Phase.SUPERSEDED, "Failed"))
"""Phases of finished restarts. `Failed` is one of an earlier operator."""


def restart_plan(
    graph: DynamoGraphDeployment, observed: Observed, *, is_new: bool, is_rolling_out: bool
) -> RestartPlan:
    """Plan the next step of the restart in the spec of the graph.

    Pods keep the ids that they have: an id that only the status names may be forged, and would restart them.
    A graph that `is_new` has no pods to restart, so its restart is complete. A managed rollout, which
    replaces workers anyway (`is_rolling_out`), supersedes the restart.
    """
    restart, stored = graph.spec.restart, graph.status.restart
    kept = {key: live.restart for key, live in observed.items() if live.restart}
    if restart is None or not restart.id:
        # The last restart stays in the status. One in progress is abandoned.
        is_over = stored is not None and stored.phase in _FINISHED
        return RestartPlan(stored if is_over else None, kept)
    if is_new:
        return _completed(graph, restart.id)
    current = stored if stored is not None and stored.observed_id == restart.id else RestartStatus()
    if current.phase in _FINISHED:
        return RestartPlan(current, kept)
    if is_rolling_out:
        return RestartPlan(RestartStatus(restart.id, Phase.SUPERSEDED), kept)
    in_progress = current.in_progress
    if restart.strategy is not None and restart.strategy.type == "Parallel":
        return _parallel(graph, restart, in_progress, observed)
    return _sequential(graph, restart, in_progress, observed, kept)


def _completed(graph: DynamoGraphDeployment, id_: str) -> RestartPlan:
    return RestartPlan(RestartStatus(id_, Phase.COMPLETED), dict.fromkeys(graph.spec.services, id_))


def _parallel(
    graph: DynamoGraphDeployment, restart: Restart, in_progress: tuple[str, ...], observed: Observed
) -> RestartPlan:
    services = sorted(graph.spec.services)
    waiting = [key for key in in_progress or services if key in graph.spec.services]
    left = tuple(key for key in waiting if not _is_restarted(key, restart.id, observed))
    if not left:
        return _completed(graph, restart.id)
    status = RestartStatus(restart.id, Phase.RESTARTING, left)
    return RestartPlan(status, dict.fromkeys(services, restart.id))


def _sequential(
    graph: DynamoGraphDeployment,
    restart: Restart,
    in_progress: tuple[str, ...],
    observed: Observed,
    kept: Mapping[str, str],
) -> RestartPlan:
    """One service after the other. A service that becomes unready after its turn is not restarted again."""
    chosen = restart.strategy.order if restart.strategy is not None else ()
    order = list(chosen) or sorted(graph.spec.services)
    at = order.index(in_progress[0]) if in_progress and in_progress[0] in order else 0
    while at < len(order) and _is_restarted(order[at], restart.id, observed):
        at += 1
    if at == len(order):
        return _completed(graph, restart.id)
    status = RestartStatus(restart.id, Phase.RESTARTING, (order[at],))
    return RestartPlan(status, {**kept, **dict.fromkeys(order[: at + 1], restart.id)})


def _is_restarted(key: str, id_: str, observed: Observed) -> bool:
    live = observed.get(key)
    return live is not None and live.restart == id_ and live.is_ready


def _plan_restart(decision: Decision) -> Decision:
    graph, observed = decision.graph, decision.inputs.services
    # A new graph has no pods that a restart could replace.
    is_unknown = not graph.status.observed_generation and graph.status.state is None
    is_new = is_unknown or not observed  # on Grove, a service is in its set before it has a clique
    is_rolling_out = decision.revisions.is_rolling_out
    plan = restart_plan(graph, observed, is_new=is_new, is_rolling_out=is_rolling_out)
    return replace(decision, restart=plan)


RESTART = Feature(
    # Wanted, done, or its id is in pods, which keep it.
    lambda it: (
        it.graph.spec.restart is not None
        or it.graph.status.restart is not None
        or any(live.restart for live in it.inputs.services.values())
    ),
    plan=_plan_restart,
    status=lambda decision, status: replace(status, restart=decision.restart.status),
)
