"""What managed rollouts add to the decision on a graph, and to its status."""

from collections.abc import Iterable

from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.objects import restart_id
from dynamo_operator.component.service import component_object
from dynamo_operator.features.decision import Decision, Feature, scaling
from dynamo_operator.features.rollouts import plan, revisions
from dynamo_operator.features.rollouts.status import rolling_update
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.templates import BESIDE_PODS
from dynamo_operator.takeover.plan import has_same_pods
from kube_runtime.apply.drift import has_no_drift
from kube_runtime.apply.result import Cause
from kube_runtime.times import rfc3339
from kube_runtime.types.meta import Object, content_of, from_plain


def observed_revisions(
    graph: DynamoGraphDeployment, components: Iterable[DynamoComponentDeployment], settings: RenderSettings
) -> revisions.Revisions:
    """The revisions of workers of the user's graph."""
    present = tuple(components)
    compared = revisions.unrecorded(graph, revisions.members(graph, present))
    unchanged = {member.name for member in compared if _is_unchanged(graph, member, settings)}
    return revisions.revisions(graph, present, unchanged=unchanged)


# In both directions, since an edit may also remove something. Defaults are no difference: the graph's CRD has
# those of the component's.
def _is_unchanged(graph: DynamoGraphDeployment, member: revisions.Member, settings: RenderSettings) -> bool:
    """Whether a component already matches the graph in every field about pods."""
    if member.service not in graph.spec.services:
        return False
    component = component_object(graph, member.service, settings)
    if member.is_adopted:
        spec, running = from_plain(component, DynamoComponentDeployment).spec, member.component.spec
        if restart := restart_id(running):
            spec = replace(spec, annotations=spec.annotations | {labels.RESTART_AT: restart})
        return has_same_pods(spec, running)
    desired = _about_pods(component)
    live = _about_pods(content_of(member.component))
    return has_no_drift(desired, live) and has_no_drift(live, desired)


def _about_pods(component: Object) -> Object:
    spec = {name: value for name, value in component["spec"].items() if name not in BESIDE_PODS}
    # Not a part of the graph: pods keep the id of their last restart.
    annotations = {key: text for key, text in spec.get("annotations", {}).items() if key != labels.RESTART_AT}
    spec["annotations"] = annotations
    return {"apiVersion": component["apiVersion"], "kind": component["kind"], "spec": spec}


def _plan_rollout(decision: Decision) -> Decision:
    old = decision.revisions.old
    leaving = {member.name: decision.inputs.leaving.get(member.name, 0) for member in old}
    rollout = plan.plan_rollout(decision.sized, decision.revisions, decision.now, leaving=leaving)
    return replace(decision, rollout=rollout)


def _scale_and_record(decision: Decision) -> Decision:
    """Scale old components; when none is left, record on the graph the worker hash that serves now."""
    rollout, annotations = decision.rollout, decision.graph.metadata.annotations
    assert rollout is not None  # noqa: S101  # `_plan_rollout`
    closing = dict[str, str | None]()
    # Removed with managed rollouts. One of another operator, which this one never managed, stays.
    is_ours = bool(rollout.target_hash) or labels.WORKER_ROLLOUT in annotations
    if not rollout.revisions.is_rolling_out and not rollout.is_recorded(annotations) and is_ours:
        closing = rollout.record
        if not rollout.workers.is_adopted and labels.CURRENT_WORKER_HASH_V2 in annotations:
            closing[labels.CURRENT_WORKER_HASH_V2] = None  # that revision of the Go operator is gone
    writes = [
        # Without spec.replicas the API server serves no scale subresource.
        scaling(component, replicas, Cause.ROLLOUT, plan.ComponentScale)
        if component.spec.replicas is not None
        else scaling(component, replicas, Cause.ROLLOUT, DynamoComponentDeployment, "")
        for component, replicas in rollout.resized
    ]
    spared, after = decision.spared | rollout.spared, (*decision.after, *writes)
    return replace(decision, spared=spared, after=after, closing=closing)


def _rollout_status(decision: Decision, status: DynamoGraphDeploymentStatus) -> DynamoGraphDeploymentStatus:
    assert decision.rollout is not None  # noqa: S101  # `_plan_rollout`
    progress = rolling_update(decision.graph, decision.rollout, rfc3339(decision.now))
    return replace(status, rolling_update=progress)


ROLLOUTS = Feature(
    # Managed, or something of a managed one is left.
    lambda it: (
        labels.WORKER_ROLLOUT in it.graph.metadata.annotations
        or labels.CURRENT_WORKER_HASH in it.graph.metadata.annotations
        or it.graph.status.rolling_update is not None
        or any(labels.WORKER_HASH in component.metadata.labels for component in it.inputs.components)
    ),
    plan=lambda decision: replace(
        decision, revisions=observed_revisions(decision.graph, decision.inputs.components, decision.settings)
    ),
    plan_sized=_plan_rollout,
    adjust=_scale_and_record,
    status=_rollout_status,
)
