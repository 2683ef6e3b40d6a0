"""What a graph may use beside its services: a value for each, in the order of the writes."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment, has_adapter
from dynamo_operator.features.exposure import graph_exposure
from dynamo_operator.features.history import plan_history
from dynamo_operator.features.restart import restart_plan
from dynamo_operator.features.rollouts.plan import (
    ComponentScale,
    Member,
    Revisions,
    members,
    plan_rollout,
    revisions,
    unrecorded,
)
from dynamo_operator.features.rollouts.status import rolling_update
from dynamo_operator.features.scaling.plan import plan_adapters
from dynamo_operator.features.suspension import suspension
from dynamo_operator.features.takeover.plan import BESIDE_PODS
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.graph.decision import Decision, Feature, GraphInputs
from dynamo_operator.graph.render import (
    SHARED_ACCOUNTS,
    component_object,
    graph_shared_objects,
    pvc_objects,
)
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.conditions import SUSPENDED
from dynamo_operator.shared.writes import Delete, Patch, Write, scaling
from kube_runtime.apply.drift import content_of, has_no_drift
from kube_runtime.apply.result import Cause, Change, Verb
from kube_runtime.kind import Object
from kube_runtime.times import rfc3339
from kube_runtime.types.kinds import ControllerRevision
from kube_runtime.types.meta import condition


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
    if _pod_fields(msgspec.convert(desired, DynamoComponentDeployment)) != _pod_fields(
        member.component
    ):
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


def _rollout_status(
    decision: Decision, status: DynamoGraphDeploymentStatus
) -> DynamoGraphDeploymentStatus:
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


def _restart_status(
    decision: Decision, status: DynamoGraphDeploymentStatus
) -> DynamoGraphDeploymentStatus:
    return msgspec.structs.replace(status, restart=decision.restart.status)


def _plan_suspension(decision: Decision) -> Decision:
    return replace(decision, suspension=suspension(decision.graph, decision.inputs.services))


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
    status=_restart_status,
)
SUSPENSION = Feature(
    lambda graph, _: (
        labels.SUSPEND in graph.metadata.annotations
        or condition(graph.status.conditions, SUSPENDED) is not None
    ),
    plan=_plan_suspension,
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
        service.ingress is not None and service.ingress.enabled
        for service in graph.spec.services.values()
    ),
    render=_render_exposure,
)

FEATURES = (HISTORY, ADAPTERS, ROLLOUTS, RESTART, SUSPENSION, CLAIMS, ACCOUNTS, EXPOSURE)
