"""Decide what one reconcile of a graph writes, from what was read: validate, plan, render, every feature.

After `decide` come the two workload providers, then `FEATURES`: what a graph may use beside its services, a
value for each, in the order of the writes. The controller, `dynamoctl render` and the preview of an upgrade
call the same functions.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import itemgetter

import msgspec

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment, has_adapter
from dynamo_operator.component.plan import canonical
from dynamo_operator.component.pods import diagnose
from dynamo_operator.component.readiness import ServiceView
from dynamo_operator.features.exposure import graph_exposure
from dynamo_operator.features.grove.render import grove_model_objects
from dynamo_operator.features.grove.status import grove_views
from dynamo_operator.features.history import plan_history
from dynamo_operator.features.namespace_defaults import grove_members, rendered_as_running
from dynamo_operator.features.restart import restart_plan
from dynamo_operator.features.rollouts.plan import (
    MANAGED,
    PLAIN,
    ComponentScale,
    Member,
    Revisions,
    members,
    plan_rollout,
    revisions,
    unrecorded,
    worker_component_name,
)
from dynamo_operator.features.rollouts.status import rolling_update
from dynamo_operator.features.scaling.plan import plan_adapters
from dynamo_operator.features.suspension import suspension
from dynamo_operator.features.takeover.apply import (
    adopted_components,
    adopted_set,
    set_starts_to_drain,
    without_new_drains,
)
from dynamo_operator.features.takeover.plan import BESIDE_PODS
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentStatus,
    grove_names_of,
    on_provider,
)
from dynamo_operator.graph.decision import Decision, Feature, GraphInputs, Provider
from dynamo_operator.graph.render import (
    SHARED_ACCOUNTS,
    component_object,
    graph_objects,
    graph_shared_objects,
    pvc_objects,
)
from dynamo_operator.graph.service import effective_replicas, sized
from dynamo_operator.graph.status import component_views, graph_stop
from dynamo_operator.labels import FINALIZER
from dynamo_operator.names import COMPONENT, GROVE, component_name
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import GROVE as GROVE_API
from dynamo_operator.shared.cluster import (
    Facts,
    PodCliqueScale,
    PodCliqueScalingGroupScale,
    PodCliqueSet,
)
from dynamo_operator.shared.conditions import SUSPENDED
from dynamo_operator.shared.problems import Problem
from dynamo_operator.shared.writes import Delete, Patch, Write, scaling
from kube_runtime.apply.drift import has_no_drift
from kube_runtime.apply.result import Applied, Cause, Change, Verb, controls
from kube_runtime.times import rfc3339
from kube_runtime.types.kinds import ControllerRevision
from kube_runtime.types.meta import Object, condition, content_of


def decide(
    live: DynamoGraphDeployment,
    inputs: GraphInputs,
    settings: RenderSettings,
    now: datetime,
    problems_of: Callable[[DynamoGraphDeployment], tuple[Problem, ...]],
) -> Decision:
    """Decide what to write for a graph. `problems_of` validates it, with its provider recorded."""
    is_foreign = FINALIZER in live.metadata.finalizers
    kinds = {kind for kind, _ in inputs.live}
    if runs_on_withheld_grove(live, inputs.facts, kinds, has_foreign_finalizer=is_foreign):
        record = {labels.WORKLOAD_PROVIDER: GROVE}
        graph = on_provider(live, GROVE)
    else:
        record = {}
        graph = with_provider(live, inputs.facts, kinds)
    if stop := graph_stop(graph, inputs.facts, problems_of(graph)):
        return Decision(graph, inputs, settings, now, record=record, stop=stop)
    return plan_graph(live, inputs, settings, now)


def plan_graph(
    live: DynamoGraphDeployment, inputs: GraphInputs, settings: RenderSettings, now: datetime
) -> Decision:
    """Decide what to write for a valid graph whose provider is available."""
    kinds = {kind for kind, _ in inputs.live}
    chosen = workload_provider(live, inputs.facts, kinds)
    record = to_record(live, chosen, inputs.facts, settings, kinds)
    annotations = {**live.metadata.annotations, labels.WORKLOAD_PROVIDER: chosen, **record}
    metadata = msgspec.structs.replace(live.metadata, annotations=annotations)
    graph = msgspec.structs.replace(live, metadata=metadata)
    features = tuple(feature for feature in FEATURES if feature.applies(graph, inputs))
    provider = PROVIDERS.get(chosen, PROVIDERS[COMPONENT])
    decision = Decision(graph, inputs, settings, now, provider, features, record)
    for feature in features:
        if feature.plan:
            decision = feature.plan(decision)
    replicas = effective_replicas(graph, decision.adapters.replicas, decision.suspension.zero)
    ids = decision.restart.ids
    services = {
        key: msgspec.structs.replace(
            service,
            replicas=replicas[key],
            annotations=service.annotations | ({labels.RESTART_AT: ids[key]} if ids.get(key) else {}),
        )
        for key, service in graph.spec.services.items()
    }
    spec = msgspec.structs.replace(graph.spec, services=services)
    effective = msgspec.structs.replace(graph, spec=spec)
    decision = replace(decision, effective=effective, sized=sized(effective))
    for feature in features:
        if feature.settle:
            decision = feature.settle(decision)
    decision = provider.render(decision)
    for feature in features:
        if feature.render:
            decision = feature.render(decision)
    return decision


_PROVIDER_OF_KIND = {
    DynamoComponentDeployment.KIND.name: COMPONENT,
    "Deployment": COMPONENT,
    "LeaderWorkerSet": COMPONENT,
    "PodCliqueSet": GROVE,
    "PodClique": GROVE,
    "PodCliqueScalingGroup": GROVE,
}
"""Kinds that only one provider creates, for graphs without a record."""


# The choice is made once. Repeated on each reconcile, it would move running graphs whenever Grove
# is installed or removed; so it is recorded on the graph before anything is created, and kept.
# Where there is no choice, nothing is recorded: if Grove is installed later, the existing objects
# decide.
def workload_provider(graph: DynamoGraphDeployment, facts: Facts, present: Collection[str]) -> str:
    """Return the provider of a graph: the recorded one, else that of its objects, else the best available.

    `present` are the kinds of the objects that the graph controls. If a user has deleted those that only one
    provider creates, the status still names them. The result may be unavailable.
    """
    if recorded := graph.metadata.annotations.get(labels.WORKLOAD_PROVIDER):
        return recorded
    for kinds in (present, _reported(graph)):
        made = {_PROVIDER_OF_KIND[kind] for kind in kinds if kind in _PROVIDER_OF_KIND}
        if len(made) == 1:
            return made.pop()
    wants_grove = graph.metadata.annotations.get(labels.ENABLE_GROVE, "").lower() != "false"
    return GROVE if wants_grove and facts.grove_served else COMPONENT


def runs_on_withheld_grove(
    graph: DynamoGraphDeployment,
    facts: Facts,
    present: Collection[str],
    *,
    has_foreign_finalizer: bool,
) -> bool:
    """Whether another operator may run a graph on Grove, while RBAC denies this one access to Grove.

    Its PodCliqueSet would be invisible, and components beside it would run every pod twice. So a graph that
    another operator has reconciled, and that has no components, counts as one on Grove.
    """
    annotations = graph.metadata.annotations
    refuses = annotations.get(labels.ENABLE_GROVE, "").lower() == "false"
    if GROVE_API not in facts.withheld or refuses or labels.WORKLOAD_PROVIDER in annotations:
        return False
    if not _PROVIDER_OF_KIND.keys().isdisjoint({*present, *_reported(graph)}):
        return workload_provider(graph, facts, present) == GROVE
    return has_foreign_finalizer or _has_foreign_status(graph)


def _has_foreign_status(graph: DynamoGraphDeployment) -> bool:
    """Whether another operator wrote the status; ours contains an observed generation."""
    status = graph.status
    ready = condition(status.conditions, "Ready")
    is_ours = status.observed_generation or (ready is not None and ready.observed_generation)
    return not is_ours and (status.state is not None or ready is not None)


def _reported(graph: DynamoGraphDeployment) -> set[str]:
    """The kinds of the workloads in the status of a graph."""
    return {service.component_kind for service in (graph.status.services or {}).values()}


def to_record(
    graph: DynamoGraphDeployment,
    chosen: str,
    facts: Facts,
    settings: RenderSettings,
    present: Collection[str],
) -> dict[str, str]:
    """Return the annotations to add to a graph that record its provider and how its workers roll out.

    Empty if there is no choice: a single provider, and native rollouts. Only a graph for which no provider
    has ever created anything gets the operator's default of rollouts; others, which control objects of the
    kinds `present` or report some, keep theirs.
    """
    annotations, record = graph.metadata.annotations, dict[str, str]()
    if labels.WORKLOAD_PROVIDER not in annotations:
        if facts.grove_served:
            record[labels.WORKLOAD_PROVIDER] = chosen
        is_new = _PROVIDER_OF_KIND.keys().isdisjoint({*present, *_reported(graph)})
        manages = settings.worker_rollout == MANAGED and chosen == COMPONENT
        if is_new and manages and labels.WORKER_ROLLOUT not in annotations:
            record[labels.WORKER_ROLLOUT] = MANAGED
    return record


def with_provider(
    graph: DynamoGraphDeployment, facts: Facts, present: Collection[str] = ()
) -> DynamoGraphDeployment:
    """Return the graph with its provider recorded; `present` are the kinds that it controls."""
    return on_provider(graph, workload_provider(graph, facts, present))


def _render_components(decision: Decision) -> Decision:
    """The objects of a graph whose services are components of this operator."""
    graph, inputs = decision.effective, decision.inputs
    workers = decision.rollout.workers if decision.rollout else PLAIN
    rendered = graph_objects(graph, inputs.facts, decision.settings, workers)
    if not inputs.live:
        return replace(decision, rendered=rendered, objects=rendered)
    return replace(
        decision,
        rendered=rendered,
        objects=adopted_components(rendered, inputs.live),
        before=(*decision.before, *_leftovers(decision, PodCliqueSet)),
    )


def _component_views(decision: Decision, applied: Applied, _: datetime) -> Mapping[str, ServiceView]:
    graph, rollout = decision.effective, decision.rollout
    workers = rollout.workers if rollout else PLAIN
    names = {
        key: worker_component_name(graph, key, workers)
        if workers.suffix
        else component_name(graph.metadata.name, key)
        for key in sorted(graph.spec.services)
    }
    components = {key: (name, applied.get(DynamoComponentDeployment, name)) for key, name in names.items()}
    return component_views(graph, components, rollout)


def _render_on_grove(decision: Decision) -> Decision:
    """The objects of a graph on Grove: its pods keep what their namespace gave them, and their templates."""
    graph, inputs = decision.effective, decision.inputs
    members = grove_members(graph, inputs.facts, decision.settings, inputs.pods)
    rendered, objects = rendered_as_running(
        partial(_set_with_facts, decision), itemgetter(1), members, inputs.live, inputs.facts
    )
    return replace(
        decision,
        rendered=rendered,
        objects=objects,
        models=tuple(map(canonical, grove_model_objects(graph))),
        before=(*decision.before, *_leftovers(decision, DynamoComponentDeployment)),
        after=(*decision.after, *_resized_members(decision)),
    )


def _set_with_facts(decision: Decision, facts: Facts) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """The objects as rendered with these facts, and as applied."""
    graph, inputs, settings = decision.effective, decision.inputs, decision.settings
    rendered = graph_objects(graph, facts, settings)
    adopted = adopted_set(rendered, inputs.live, inputs.set_origin)
    if not set_starts_to_drain(adopted, inputs.live):
        return rendered, adopted
    undrained = msgspec.structs.replace(settings, worker_drain_period_seconds=0)
    earlier = graph_objects(graph, facts, undrained)
    return rendered, tuple(without_new_drains(adopted, earlier, inputs.live))


def _resized_members(decision: Decision) -> Iterator[Write]:
    """Scale live cliques and scaling groups whose replicas differ from the graph's."""
    for key, member in decision.inputs.members.items():
        live, replicas = member.live, decision.effective.spec.services[key].replicas
        if live is None or live.metadata.deletion_timestamp:
            continue
        if replicas is not None and replicas != live.spec.replicas:
            type_ = PodCliqueScalingGroupScale if member.is_group else PodCliqueScale
            yield scaling(live, replicas, Cause.SPEC, type_)


def _grove_views(decision: Decision, applied: Applied, now: datetime) -> Mapping[str, ServiceView]:
    graph, inputs = decision.effective, decision.inputs
    services = graph.spec.services
    diagnoses = {
        key: diagnose(inputs.pods.get(key, ()), nodes=service.nodes, now=now)
        for key, service in services.items()
    }
    members = {key: replace(member, desired=services[key].replicas) for key, member in inputs.members.items()}
    clique_set = applied.get(PodCliqueSet, grove_names_of(graph).set)
    return grove_views(graph, clique_set, members, diagnoses)


def _leftovers(decision: Decision, type_: type[DynamoComponentDeployment | PodCliqueSet]) -> Iterator[Delete]:
    """Delete the workloads of the previous provider.

    Before the apply, not among its deletions: these objects hold the names that the apply needs.
    """
    for child in decision.inputs.live.values():
        is_left = isinstance(child, type_) and not child.metadata.deletion_timestamp
        if is_left and controls(decision.graph, child):
            change = Change(Verb.DELETE, type_.KIND.name, child.metadata.name, Cause.PROVIDER)
            yield Delete(child, change)


PROVIDERS = {
    COMPONENT: Provider(_render_components, _component_views),
    GROVE: Provider(_render_on_grove, _grove_views),
}
"""By the value of the annotation that records the choice."""


def _plan_history(decision: Decision) -> Decision:
    kind = ControllerRevision.KIND.name
    history = plan_history(decision.graph, decision.inputs.former)
    writes: list[Write] = []
    if history.renewed is not None:
        revision, number = history.renewed
        cause = f"{Cause.ROLLOUT}: revision {number}"
        body = {"metadata": {"labels": {labels.GRAPH_REVISION: str(number)}}, "revision": number}
        change = Change(Verb.UPDATE, kind, revision.metadata.name, cause)
        writes.append(Patch(revision, body, change, ControllerRevision))
    for revision in history.outdated:
        change = Change(Verb.DELETE, kind, revision.metadata.name, Cause.UNWANTED)
        writes.append(Delete(revision, change, checks_owner=False))
    return replace(decision, history=history, before=(*decision.before, *writes))


def _plan_adapters(decision: Decision) -> Decision:
    inputs = decision.inputs
    present, not_created = inputs.adapters.present, inputs.adapters.not_created
    adapters = plan_adapters(decision.graph, inputs.services, present, not_created)
    return replace(decision, adapters=adapters)


def _uses_rollouts(graph: DynamoGraphDeployment, inputs: GraphInputs) -> bool:
    """Whether rollouts are managed, or something of a managed one is left."""
    annotations = graph.metadata.annotations
    if labels.WORKER_ROLLOUT in annotations or labels.CURRENT_WORKER_HASH in annotations:
        return True
    has_revision = (labels.WORKER_HASH in live.metadata.labels for live in inputs.components)
    return graph.status.rolling_update is not None or any(has_revision)


def _plan_rollouts(decision: Decision) -> Decision:
    components, settings = decision.inputs.components, decision.settings
    return replace(decision, revisions=observed_revisions(decision.graph, components, settings))


def observed_revisions(
    graph: DynamoGraphDeployment,
    components: Iterable[DynamoComponentDeployment],
    settings: RenderSettings,
) -> Revisions:
    """The revisions of workers of the user's graph."""
    present = tuple(components)
    compared = unrecorded(graph, members(graph, present))
    unchanged = {member.name for member in compared if _is_unchanged(graph, member, settings)}
    return revisions(graph, present, unchanged=unchanged)


def _is_unchanged(graph: DynamoGraphDeployment, member: Member, settings: RenderSettings) -> bool:
    """Whether a component under its plain name already matches the graph in every field about pods.

    Nested fields may contain defaults of the API server, so there only the desired ones are compared.
    """
    if member.service not in graph.spec.services:
        return False
    desired = component_object(graph, member.service, settings)
    if _pod_fields(msgspec.convert(desired, DynamoComponentDeployment)) != _pod_fields(member.component):
        return False
    return has_no_drift(_about_pods(desired), _about_pods(content_of(member.component)))


def _pod_fields(component: DynamoComponentDeployment) -> frozenset[str]:
    """The set fields of the spec that affect pods."""
    return frozenset(msgspec.to_builtins(component.spec)) - BESIDE_PODS


def _about_pods(component: Object) -> Object:
    spec = {name: value for name, value in component["spec"].items() if name not in BESIDE_PODS}
    return {"apiVersion": component["apiVersion"], "kind": component["kind"], "spec": spec}


def _settle_rollouts(decision: Decision) -> Decision:
    old = decision.revisions.old
    leaving = {member.name: decision.inputs.leaving.get(member.name, 0) for member in old}
    rollout = plan_rollout(decision.sized, decision.revisions, decision.now, leaving=leaving)
    return replace(decision, rollout=rollout)


def _render_rollouts(decision: Decision) -> Decision:
    """Scale old components; when none is left, record on the graph the worker hash that serves now.

    The hash goes when the workers are not managed any more. One of another operator, which this one never
    managed, stays.
    """
    rollout, annotations = decision.rollout, decision.graph.metadata.annotations
    assert rollout is not None  # noqa: S101  # `_settle_rollouts`
    serves, closing = rollout.target_hash, dict[str, str | None]()
    is_recorded = annotations.get(labels.CURRENT_WORKER_HASH, "") == serves
    is_ours = bool(serves) or labels.WORKER_ROLLOUT in annotations
    if not rollout.is_under_way and not is_recorded and is_ours:
        closing = {labels.CURRENT_WORKER_HASH: serves or None}
    writes = [
        # Without spec.replicas the API server serves no scale subresource.
        scaling(component, replicas, Cause.ROLLOUT, ComponentScale)
        if component.spec.replicas is not None
        else scaling(component, replicas, Cause.ROLLOUT, DynamoComponentDeployment, "")
        for component, replicas in rollout.resized
    ]
    return replace(
        decision,
        spared=decision.spared | rollout.spared,
        after=(*decision.after, *writes),
        closing=closing,
    )


def _rollout_status(decision: Decision, status: DynamoGraphDeploymentStatus) -> DynamoGraphDeploymentStatus:
    assert decision.rollout is not None  # noqa: S101  # `_settle_rollouts`
    progress = rolling_update(decision.graph, decision.rollout, rfc3339(decision.now))
    return msgspec.structs.replace(status, rolling_update=progress)


def _plan_restart(decision: Decision) -> Decision:
    graph, observed = decision.graph, decision.inputs.services
    # A new graph has no pods that a restart could replace.
    is_unknown = not graph.status.observed_generation and graph.status.state is None
    is_new = is_unknown or not any(live.exists for live in observed.values())
    is_rolling_out = decision.revisions.is_rolling_out
    plan = restart_plan(graph, observed, is_new=is_new, is_rolling_out=is_rolling_out)
    return replace(decision, restart=plan)


def _suspension_status(
    decision: Decision, status: DynamoGraphDeploymentStatus
) -> DynamoGraphDeploymentStatus:
    suspended = decision.suspension.condition
    more = () if suspended is None else (suspended,)
    return msgspec.structs.replace(status, conditions=(*status.conditions, *more))


def _render_exposure(decision: Decision) -> Decision:
    exposure = graph_exposure(decision.effective, decision.objects, decision.settings)
    return replace(
        decision,
        objects=tuple(exposure.desired),
        spared=decision.spared | exposure.spared,
        blocked=(*decision.blocked, *exposure.blocked),
    )


HISTORY = Feature(lambda _, __: True, plan=_plan_history)
ADAPTERS = Feature(
    lambda graph, inputs: (
        bool(inputs.adapters.present) or any(map(has_adapter, graph.spec.services.values()))
    ),
    plan=_plan_adapters,
)
ROLLOUTS = Feature(
    _uses_rollouts,
    plan=_plan_rollouts,
    settle=_settle_rollouts,
    render=_render_rollouts,
    status=_rollout_status,
)
RESTART = Feature(
    # Wanted, done, or its id is in pods, which keep it.
    lambda graph, inputs: (
        graph.spec.restart is not None
        or graph.status.restart is not None
        or any(live.restart for live in inputs.services.values())
    ),
    plan=_plan_restart,
    status=lambda decision, status: msgspec.structs.replace(status, restart=decision.restart.status),
)
SUSPENSION = Feature(
    lambda graph, _: (
        labels.SUSPEND in graph.metadata.annotations
        or condition(graph.status.conditions, SUSPENDED) is not None
    ),
    plan=lambda decision: replace(decision, suspension=suspension(decision.graph, decision.inputs.services)),
    status=_suspension_status,
)
CLAIMS = Feature(
    lambda graph, _: bool(graph.spec.pvcs),
    render=lambda decision: replace(decision, claims=pvc_objects(decision.effective)),
)
ACCOUNTS = Feature(
    lambda graph, _: any(
        service.component_type in SHARED_ACCOUNTS for service in graph.spec.services.values()
    ),
    render=lambda decision: replace(
        decision, accounts=graph_shared_objects(decision.effective, decision.settings)
    ),
)
EXPOSURE = Feature(
    lambda graph, _: any(
        service.ingress is not None and service.ingress.enabled for service in graph.spec.services.values()
    ),
    render=_render_exposure,
)

FEATURES = (HISTORY, ADAPTERS, ROLLOUTS, RESTART, SUSPENSION, CLAIMS, ACCOUNTS, EXPOSURE)
