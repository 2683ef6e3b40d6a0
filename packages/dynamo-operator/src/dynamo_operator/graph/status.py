"""The status of a DynamoGraphDeployment: its services, its progress, and why nothing may be applied."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import structs

from dynamo_operator import labels, names
from dynamo_operator.component.api import (
    DynamoComponentDeployment,
    ServiceReplicaStatus,
    is_updating,
    service_reason,
)
from dynamo_operator.component.framework import frameworks, gpus
from dynamo_operator.component.service import (
    ServiceView,
    as_configured,
    graph_scale,
    graph_selector,
    worker_component_name,
)
from dynamo_operator.features.decision import Decision
from dynamo_operator.features.grove.render import kept_fields
from dynamo_operator.features.rollouts.plan import Rollout
from dynamo_operator.features.rollouts.status import why_it_remains, with_old_revisions
from dynamo_operator.features.suspension import SuspensionReason
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentStatus,
    ProgressStatus,
    RestartStatus,
    RollingUpdateStatus,
)
from dynamo_operator.graph.validate import graph_inoperative
from dynamo_operator.shared.conditions import (
    ComponentReason,
    GraphReason,
    GraphState,
    StatusEvent,
    in_v1beta1,
)
from dynamo_operator.shared.problems import Problem, service_path
from kube_runtime.apply.result import Applied, Blocked, Obstacle
from kube_runtime.times import rfc3339, seconds_between
from kube_runtime.types.meta import MESSAGE_LIMIT, Condition, condition, fitted, new_condition

CONFIGURATION_WARNING: Final = "ConfigurationWarning"


# Most graphs never have it. Once corrected it stays, with status False.
def configuration_warning(
    graph: DynamoGraphDeployment,
    *,
    istio_served: bool = True,
    kept: Iterable[Problem] = (),
    is_later: bool = False,
) -> tuple[Condition, ...]:
    """The condition of a graph without problems; empty if it has no warnings and never had any.

    `kept` are the warnings about what objects that exist keep. The message has the words of v1beta1 if the
    graph `is_later`.
    """
    problems = [*graph_inoperative(graph), *kept]
    if not istio_served and any(service.ingress for service in graph.spec.services.values()):
        problems += _without_istio(graph)
    warnings = list(map(str, in_v1beta1(graph, problems) if problems and is_later else problems))
    if not warnings and condition(graph.status.conditions, CONFIGURATION_WARNING) is None:
        return ()
    if warnings:
        text = fitted(warnings, MESSAGE_LIMIT)
        return (new_condition(graph, CONFIGURATION_WARNING, "True", GraphReason.INOPERATIVE, text),)
    text = "The spec has no known configuration problem"
    return (new_condition(graph, CONFIGURATION_WARNING, "False", GraphReason.NO_WARNING, text),)


def _without_istio(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    for key, service in sorted(graph.spec.services.items()):
        ingress = service.ingress
        if ingress is None or not (ingress.enabled and ingress.use_virtual_service):
            continue
        if ingress.virtual_service_gateway:
            text = "no VirtualService is created: Istio is not installed, or withheld from the operator"
            yield Problem(f"{service_path(key)}.ingress.useVirtualService", text)


DEADLINE_SECONDS = 7800
"""The default deadline: more than the two hours that a model may take to load."""


# The status records the most ready replicas so far and since when; it changes only when more become
# ready or the spec changes. So it survives a restart of the operator without constant writes. A
# change of replicas does not restart the clock: an adapter that scales all day would postpone the
# deadline forever.
class GraphProgress(msgspec.Struct, frozen=True):
    """The progress to store in the status, None once the graph is ready, and whether its deadline has passed.

    `requeue_after_seconds` is the time until the deadline; None if none is running.
    """

    stored: ProgressStatus | None = None
    is_overdue: bool = False
    requeue_after_seconds: float | None = None


def graph_progress(
    stored: ProgressStatus | None,
    *,
    ready: int | None,
    generation: int,
    goal: str,
    now: datetime,
    deadline_seconds: int | None,
) -> GraphProgress:
    """The progress from now on; `stored` is that in the status, and `goal` the `goal_hash`.

    `ready` counts replicas of the newest spec; None once the graph is ready.
    """
    if ready is None:
        return GraphProgress()
    deadline = DEADLINE_SECONDS if deadline_seconds is None else deadline_seconds
    passed = seconds_between(stored.since, now) if stored else None
    is_same = stored is not None and (
        stored.spec_hash == goal
        if stored.spec_hash is not None
        else stored.observed_generation == generation  # older CRDs drop the hash
    )
    if stored is None or passed is None or not is_same or ready > stored.ready_replicas:
        begun = ProgressStatus(ready, rfc3339(now), generation, goal)
        return GraphProgress(begun, requeue_after_seconds=float(deadline))
    left = deadline - passed
    return GraphProgress(stored, is_overdue=left <= 0, requeue_after_seconds=left if left > 0 else None)


def goal_hash(graph: DynamoGraphDeployment, *, is_suspending: bool) -> str:
    """Hash of the desired state, without replica counts."""
    services = {key: structs.replace(service, replicas=None) for key, service in graph.spec.services.items()}
    spec = structs.replace(graph.spec, services=services, replicas=None)
    return names.short_hash(f"{is_suspending} {msgspec.json.encode(spec, order='deterministic')!r}")


_OBSTACLE_REASONS = {
    Obstacle.NAME_CONFLICT: GraphReason.NAME_CONFLICT,
    Obstacle.REJECTED: GraphReason.REJECTED,
    Obstacle.NOT_SERVED: GraphReason.FAILED,
    Obstacle.NOT_ALLOWED: GraphReason.NOT_ALLOWED,
    Obstacle.FORBIDDEN: GraphReason.API_FORBIDDEN,
}

_AT_ZERO = frozenset((SuspensionReason.SUSPENDING, SuspensionReason.SUSPENDED))
"""Without `RESUMING`: a graph that resumes is like any other that is not ready yet."""


class TimedStatus(msgspec.Struct, frozen=True):
    """A status to write, and when it may differ without a change of any object; None means never."""

    status: DynamoGraphDeploymentStatus
    requeue_after_seconds: float | None = None


def applied_status(decision: Decision, applied: Applied, now: datetime) -> TimedStatus:
    """The status of a graph after the decision was applied, and its last annotations were written."""
    graph = decision.graph
    views = decision.provider.views(decision, applied, now) if decision.provider else {}
    inputs, suspended = decision.inputs, decision.suspension.condition
    computed = graph_status(decision.sized, views, applied.blocked, now=now, suspended=suspended)
    replicas, covered = graph_scale(graph, inputs.services)
    facts, is_later = inputs.facts, inputs.in_v1beta1
    kept = kept_fields(graph, facts) if facts.live_templates else ()
    warning = configuration_warning(graph, istio_served=facts.istio_served, kept=kept, is_later=is_later)
    status = structs.replace(
        computed.status,
        conditions=(*computed.status.conditions, *warning),
        replicas=replicas,
        selector=graph_selector(graph, covered),
    )
    for feature in decision.features:
        if feature.status:
            status = feature.status(decision, status)
    wait = decision.rollout.wait_seconds if decision.rollout else None
    times = [seconds for seconds in (computed.requeue_after_seconds, wait) if seconds]
    return TimedStatus(status, min(times, default=None))


def graph_status(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceView],
    blocked: Sequence[Blocked],
    *,
    now: datetime,
    suspended: Condition | None = None,
) -> TimedStatus:
    """The status after an apply of a graph with the desired replicas in its spec; `services` are by its keys.

    `suspended` is its condition `Suspended`; None if it was never suspended.
    """
    is_blocked = any(not obstacle.passes_by_itself for obstacle in blocked)
    is_suspended = suspended is not None and suspended.reason in _AT_ZERO and not is_blocked
    suspension = suspended.reason if suspended and is_suspended else None
    is_done = not blocked and all(view.is_ready for view in services.values())
    if suspension is not None:
        is_done = suspension == SuspensionReason.SUSPENDED
    progress = graph_progress(
        graph.status.progress,
        ready=None if is_done else sum(view.ready_of_newest for view in services.values()),
        generation=graph.metadata.generation,
        goal=goal_hash(graph, is_suspending=suspension is not None),
        now=now,
        deadline_seconds=graph.spec.progress_deadline_seconds,
    )
    views = _explained(graph, services, is_overdue=progress.is_overdue)
    unready = {key: view for key, view in views.items() if not view.is_ready}
    state, reason, text = _state_and_reason(graph, views, unready, blocked)
    if suspended and suspension:
        state, reason, text = GraphState.PENDING, GraphReason.SUSPENDED, suspended.message
    is_true = "True" if state is GraphState.SUCCESSFUL else "False"
    ready = new_condition(graph, "Ready", is_true, reason, text)
    serving = 0 if suspension == SuspensionReason.SUSPENDED else len(views) - len(unready)
    observed, generation = graph.status.observed_generation, graph.metadata.generation
    status = structs.replace(
        graph.status,
        state=str(state),
        conditions=(ready, _progressing(graph, views, progress, suspension)),
        services={key: view.counts for key, view in views.items()},
        backend_framework=frameworks(graph),
        ready_services=f"{serving}/{len(views)}",
        gpus=sum(
            gpus(as_configured(graph, key)) * service.nodes * service.desired_replicas
            for key, service in graph.spec.services.items()
        ),
        progress=progress.stored,
        # The newest spec that was applied without an obstacle.
        observed_generation=observed if blocked else generation,
    )
    times = [progress.requeue_after_seconds, *(view.requeue_after_seconds for view in views.values())]
    return TimedStatus(status, min((seconds for seconds in times if seconds is not None), default=None))


def _state_and_reason(
    graph: DynamoGraphDeployment,
    views: Mapping[str, ServiceView],
    unready: Mapping[str, ServiceView],
    blocked: Sequence[Blocked],
) -> tuple[GraphState, GraphReason, str]:
    if lasting := [obstacle for obstacle in blocked if not obstacle.passes_by_itself]:
        text = "; ".join(obstacle.message for obstacle in lasting)
        return GraphState.FAILED, _OBSTACLE_REASONS[lasting[0].obstacle], text
    is_first = graph.status.state in (None, GraphState.INITIALIZING) and bool(views)
    is_new = is_first and not any(view.exists for view in views.values())
    waiting = GraphState.INITIALIZING if is_new else GraphState.PENDING
    if blocked:
        return waiting, GraphReason.SOME_NOT_READY, "; ".join(obstacle.message for obstacle in blocked)
    if not unready:
        return GraphState.SUCCESSFUL, GraphReason.ALL_READY, "All resources are ready"
    reasons = {view.counts.reason for view in unready.values() if view.counts.reason is not None}
    if not reasons:
        causes: dict[str, set[str]] = defaultdict(set)
        for view in unready.values():
            causes[view.name].update(view.obstacles)
        lines = (f"{name}: {'; '.join(sorted(causes[name]))}" for name in sorted(causes))
        return waiting, GraphReason.SOME_NOT_READY, f"Resources not ready: {'; '.join(lines)}"
    texts = [
        f"{key}: {view.ready_of_newest}/{view.desired} ready; {view.counts.message}"
        for key, view in sorted(unready.items())
    ]
    reason = GraphReason(reasons.pop()) if len(reasons) == 1 else GraphReason.MIXED
    return waiting, reason, fitted(texts, MESSAGE_LIMIT, between=" | ")


def _explained(
    graph: DynamoGraphDeployment, services: Mapping[str, ServiceView], *, is_overdue: bool
) -> dict[str, ServiceView]:
    """`updating` hides the pods' own reason during a rollout, but not once the graph `is_overdue`."""
    is_same = graph.status.observed_generation == graph.metadata.generation
    ready = condition(graph.status.conditions, "Ready")
    was_ready = ready is not None and ready.status == "True"
    views = {}
    for key, view in sorted(services.items()):
        if view.is_ready:
            views[key] = structs.replace(view, counts=view.counts.of_ready_service())
            continue
        updates = view.counts.reason == GraphReason.UPDATING or is_updating(
            graph.status.services.get(key),
            is_same=is_same,
            was_ready=was_ready,
            is_rolling=view.is_rolling,
            has_older=view.has_older,
        )
        reason = service_reason(view.counts.reason, updates=updates and not is_overdue)
        message = view.counts.message or f"{view.name}: {'; '.join(view.obstacles)}"
        counts = structs.replace(view.counts, reason=reason, message=message)
        views[key] = structs.replace(view, counts=counts)
    return views


def _progressing(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceView],
    progress: GraphProgress,
    suspension: str | None,
) -> Condition:
    reached = progress.stored
    if reached is None:
        is_suspended = suspension == SuspensionReason.SUSPENDED
        text = "The graph is suspended" if is_suspended else "All services run the newest spec"
        return new_condition(graph, "Progressing", "True", GraphReason.UPDATE_COMPLETE, text)
    if suspension is not None:
        text = f"Suspending the graph, since {reached.since}"
    else:
        counts = f"{reached.ready_replicas} of {sum(view.desired for view in services.values())}"
        text = f"{counts} replicas of the newest spec are ready, since {reached.since}"
    if progress.is_overdue:
        text, reason = f"No progress within the deadline: {text}", GraphReason.DEADLINE_EXCEEDED
        return new_condition(graph, "Progressing", "False", reason, text)
    return new_condition(graph, "Progressing", "True", GraphReason.UPDATING, text)


_REFUSED = "Validation failed: "


def refused_status(graph: DynamoGraphDeployment, problems: Sequence[Problem]) -> DynamoGraphDeploymentStatus:
    """The status of a graph with an invalid spec."""
    text = _REFUSED + fitted([str(problem) for problem in problems], MESSAGE_LIMIT - len(_REFUSED))
    return stopped_status(graph, GraphState.FAILED, GraphReason.VALIDATION_FAILED, text)


def stopped_status(
    graph: DynamoGraphDeployment, state: GraphState, reason: GraphReason, text: str
) -> DynamoGraphDeploymentStatus:
    """The status of a graph of which nothing is applied; its conditions name that generation.

    The counts of its services stay, and `observedGeneration` stays at the last spec that was applied.
    """
    ready = new_condition(graph, "Ready", "False", reason, text)
    progressing = structs.replace(ready, type="Progressing", status="False")
    return structs.replace(graph.status, state=str(state), conditions=(ready, progressing), progress=None)


def applied_views(decision: Decision, applied: Applied, _: datetime) -> dict[str, ServiceView]:
    """The services of a graph of components, as they are after the decision was applied."""
    graph, rollout = decision.effective, decision.rollout
    components = dict[str, tuple[str, DynamoComponentDeployment | None]]()
    for key in sorted(graph.spec.services):
        name = names.component_name(graph.metadata.name, key)
        if rollout:
            name = worker_component_name(graph, key, rollout.workers)
        components[key] = name, applied.get(DynamoComponentDeployment, name)
    return component_views(graph, components, rollout)


# Right after an edit the conditions of a component still describe the old spec. So they count only
# if they describe the generation that the graph has just applied.
def component_views(
    graph: DynamoGraphDeployment,
    components: Mapping[str, tuple[str, DynamoComponentDeployment | None]],
    rollout: Rollout | None = None,
) -> dict[str, ServiceView]:
    """The services of a graph with the desired replicas in its spec; `rollout` has their older revisions.

    `components` are the name of each service's DynamoComponentDeployment, and the live one if it exists.
    """
    views: dict[str, ServiceView] = {}
    for key, (name, component) in components.items():
        service = graph.spec.services.get(key)
        newest = component.status.service if component else None
        if newest is None:  # zeros with the required kind and name
            is_group = service is not None and service.nodes > 1
            newest = ServiceReplicaStatus(
                "LeaderWorkerSet" if is_group else "Deployment",
                names.group_name(name, 0) if is_group else name,
                replicas=0,
                updated_replicas=0,
            )
        old = [member for member in rollout.revisions.old if member.service == key] if rollout else []
        counts = with_old_revisions(newest, old) if old else newest
        older = [f"{member.name}: {why_it_remains(member, rollout)}" for member in old if rollout]
        is_behind, obstacle, refusal = _availability(component)
        if component is not None and is_behind:
            newest = structs.replace(newest, updated_replicas=0)  # counts of an older spec
        if refusal is not None or obstacle == _PAUSED:  # the pods, if any, do not show that
            counts = structs.replace(counts, reason=refusal, message=f"{name}: {obstacle}")
        views[key] = ServiceView(
            name=name,
            newest=newest,
            counts=counts,
            desired=service.desired_replicas if service else 0,
            obstacles=(*([obstacle] if obstacle else []), *older),
            exists=bool(old) or (component is not None and bool(component.status.conditions)),
            is_rolling=is_behind or bool(old),
            has_older=bool(old),
        )
    return views


_PAUSED = f"it is paused (annotation {labels.PAUSED})"
_UNREADY = (ComponentReason.DEPLOYMENT_NOT_READY, ComponentReason.GROUPS_NOT_READY)
_REFUSALS: dict[str, GraphReason] = {
    ComponentReason.NAME_CONFLICT: GraphReason.NAME_CONFLICT,
    ComponentReason.REJECTED: GraphReason.REJECTED,
}
"""Why a component's objects cannot be written."""


def _availability(component: DynamoComponentDeployment | None) -> tuple[bool, str | None, GraphReason | None]:
    """Whether its status describes an older spec, why it is not ready, and the refusal behind that."""
    if component is None:
        return True, "it is being created", None
    available = condition(component.status.conditions, "Available")
    observed = available.observed_generation if available else None
    is_behind = (observed or component.status.observed_generation) < component.metadata.generation
    if available is None or is_behind:
        text = "the operator has not observed its newest spec yet" if available else "it has no status yet"
        return is_behind, _PAUSED if component.metadata.is_true(labels.PAUSED) else text, None
    if available.status == "True":
        return False, None, None
    return False, available.message, _REFUSALS.get(available.reason)


def is_ready(component: DynamoComponentDeployment) -> bool:
    """Whether the component reports its newest spec as ready."""
    return _availability(component)[1] is None


def is_current(component: DynamoComponentDeployment) -> bool:
    """Whether the counts of a component describe its newest spec."""
    if component.metadata.is_true(labels.PAUSED):
        return True  # no newer ones will come
    available = condition(component.status.conditions, "Available")
    if available is None or _availability(component)[0]:
        return False
    # Unready without desired replicas: the controller of its workload has not observed that yet.
    return component.spec.desired_replicas > 0 or available.reason not in _UNREADY


_SUSPENSIONS = {"True": "Suspended", "False": "Resumed"}
"""Events of the condition `Suspended`, by its new status."""


def status_events(before: DynamoGraphDeployment, after: DynamoGraphDeployment) -> Iterator[StatusEvent]:
    """The Events between two statuses of a graph."""
    if after.status.restart is not None:
        yield from _restart(before.status.restart, after.status.restart)
    if after.status.rolling_update is not None:
        yield from _rolling_update(before.status.rolling_update, after.status.rolling_update)
    for new in after.status.conditions:
        was = condition(before.status.conditions, new.type) or Condition(new.type, "")
        is_overdue = new.reason == GraphReason.DEADLINE_EXCEEDED != was.reason
        if new.type == "Suspended" and new.status != was.status and new.status in _SUSPENSIONS:
            yield StatusEvent(_SUSPENSIONS[new.status], new.message)
        elif new.type == "Progressing" and is_overdue:
            yield StatusEvent("ProgressDeadlineExceeded", new.message, is_warning=True)


def _restart(old: RestartStatus | None, new: RestartStatus) -> Iterator[StatusEvent]:
    before = (old.observed_id, old.phase) if old else (None, None)
    if before == (new.observed_id, new.phase):
        return
    if new.phase == "Restarting":
        yield StatusEvent("RestartStarted", f'Restart "{new.observed_id}" started')
    elif new.phase == "Superseded":
        text = f'Restart "{new.observed_id}" is superseded by the rolling update of the workers'
        yield StatusEvent("RestartSuperseded", text, is_warning=True)
    elif new.phase == "Completed" and before[1] == "Restarting":
        yield StatusEvent("RestartCompleted", f'Restart "{new.observed_id}" completed')


def _rolling_update(old: RollingUpdateStatus | None, new: RollingUpdateStatus) -> Iterator[StatusEvent]:
    if old and (old.phase, old.to_hash) == (new.phase, new.to_hash):
        return
    old_workers = f"workers {new.from_hash or 'without a revision'}"
    change = f"{old_workers} with {new.to_hash or 'those without a revision'}"
    if new.phase == "InProgress":
        yield StatusEvent("RollingUpdateStarted", f"Replacing {change}")
    elif new.phase == "Completed" and old is not None:
        yield StatusEvent("RollingUpdateCompleted", f"Replaced {change}")
