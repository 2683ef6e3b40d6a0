"""Whether the workload of a component is ready, what is missing, and the status from it and its pods."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import (
    DynamoComponentDeployment,
    DynamoComponentDeploymentStatus,
    ServiceReplicaStatus,
    is_updating,
    service_reason,
)
from dynamo_operator.component.diagnosis import UNKNOWN, Diagnosis, diagnose
from dynamo_operator.component.framework import declared_or_detected
from dynamo_operator.component.objects import component_labels, group_names, parent_graph, runtime_namespace
from dynamo_operator.component.plan import ComponentInputs
from dynamo_operator.labels import GROUP_HASH
from dynamo_operator.shared.cluster import (
    LeaderWorkerSet,
    LeaderWorkerSetSpec,
    LeaderWorkerTemplate,
    PodGroup,
)
from dynamo_operator.shared.conditions import ComponentReason, pause_over, unobserved
from dynamo_operator.shared.problems import Problem
from kube_runtime.apply.result import Applied, Blocked, Obstacle, Verb, controls
from kube_runtime.types.kinds import Deployment, DeploymentSpec, PodTemplate, StatefulSet
from kube_runtime.types.meta import (
    MESSAGE_LIMIT,
    Condition,
    Metadata,
    Resource,
    condition,
    fitted,
    from_json,
    new_condition,
)

NO_ORCHESTRATOR = "no multinode orchestrator available"
_MOST_NAMED = 5


def diagnosed(counts: ServiceReplicaStatus, diagnosis: Diagnosis) -> ServiceReplicaStatus:
    """The counts with the state of the pods."""
    scheduled = diagnosis.scheduled_replicas
    if scheduled is not None:
        # A ready pod has a node, even if its workload reports it before the pod does.
        scheduled = max(scheduled, counts.ready_replicas or counts.available_replicas or 0)
    return replace(
        counts,
        reason=diagnosis.reason,
        message=diagnosis.message,
        blocked_pods=diagnosis.blocked_pods,
        scheduled_replicas=scheduled,
    )


class Readiness(msgspec.Struct, frozen=True):
    """Whether a workload is ready, with the reason and message of its component's `Available`.

    `is_rolling` is whether some replicas lack the newest template; `has_older`, whether replicas of an older
    one remain.
    """

    reason: ComponentReason
    message: str
    is_ready: bool = False
    is_rolling: bool = False
    has_older: bool = False


NO_DEPLOYMENT = Readiness(
    ComponentReason.DEPLOYMENT_NOT_READY, "Deployment is not ready: it does not exist yet or is being deleted"
)


# The counts of a Deployment describe the newest template only once its controller has observed the
# newest generation, and they count old pods as available too.
def deployment_readiness(deployment: Deployment) -> Readiness:
    """Whether all desired replicas of a Deployment run its newest template, and no others."""
    status, spec = deployment.status, from_json(deployment.spec, DeploymentSpec)
    desired = spec.replicas
    updated, available = status.updated_replicas, status.available_replicas
    is_behind = status.observed_generation < deployment.metadata.generation
    checks = (  # in the order of a rollout
        (spec.paused and desired > 0, "it is paused"),
        (is_behind, "its controller has not observed the newest spec yet"),
        (updated < desired, f"{updated} of {desired} replicas are updated"),
        (status.replicas > updated, f"{status.replicas - updated} replicas of an older revision remain"),
        (status.replicas > desired, f"{status.replicas - desired} surplus replicas remain"),
        (available < desired, f"{available} of {desired} replicas are available"),
    )
    obstacle = next((text for applies, text in checks if applies), None)
    if obstacle is None:
        return Readiness(ComponentReason.DEPLOYMENT_READY, "Deployment is ready", is_ready=True)
    for type_, bad in (("ReplicaFailure", "True"), ("Progressing", "False")):
        entry = condition(status.conditions, type_)
        if entry and entry.status == bad:  # the Deployment controller knows why it is stuck
            obstacle = f"{obstacle}; {entry.message}"
            break
    return Readiness(
        ComponentReason.DEPLOYMENT_NOT_READY,
        f"Deployment is not ready: {obstacle}",
        is_rolling=is_behind or updated < max(desired, status.replicas),
        has_older=status.replicas > updated,
    )


def deployment_replicas(deployment: Deployment) -> ServiceReplicaStatus:
    """The counts of a Deployment; none is updated until its controller has observed the newest spec."""
    status = deployment.status
    is_behind = status.observed_generation < deployment.metadata.generation
    return ServiceReplicaStatus(
        component_kind="Deployment",
        component_name=deployment.metadata.name,
        replicas=status.replicas,
        updated_replicas=0 if is_behind else status.updated_replicas,
        ready_replicas=status.ready_replicas,
        available_replicas=status.available_replicas,
        component_names=(deployment.metadata.name,),
    )


# Each replica is one LeaderWorkerSet with one group of pods. LeaderWorkerSet reports `Available`
# for old pods too, and up to release 0.7 does not report which generation its status describes. So
# the StatefulSet of the leaders counts as well: it carries the hash of the templates from which it
# was created.
class Group(msgspec.Struct, frozen=True):
    """The live objects of one multinode replica; None if one does not exist yet or is being deleted."""

    pods: LeaderWorkerSet | None
    leaders: StatefulSet | None
    placement: PodGroup | None


def reduced(live: Resource) -> Resource:
    """A LeaderWorkerSet with only the fields that are read here, for the cache; other objects unchanged.

    There may be a thousand of them, each with two pod templates of any size.
    """
    if not isinstance(live, LeaderWorkerSet):
        return live
    live_spec = from_json(live.spec, LeaderWorkerSetSpec)
    digest = {GROUP_HASH: _digest(live_spec.leader_worker_template.leader_template)}
    leader = PodTemplate(Metadata(annotations=digest))
    spec = LeaderWorkerSetSpec(live_spec.replicas, LeaderWorkerTemplate(leader))
    metadata = replace(live.metadata, labels={}, annotations={})
    return replace(live, metadata=metadata, spec=msgspec.Raw(msgspec.json.encode(spec)))


def groups_readiness(groups: Mapping[str, Group]) -> Readiness:
    """Whether every group, by name, runs its newest templates."""
    late = {name: text for name, group in groups.items() if (text := next(_obstacles(group), ""))}
    if not late:
        return Readiness(ComponentReason.GROUPS_READY, "All LeaderWorkerSets are ready", is_ready=True)
    texts = [f"{name}: {text}" for name, text in late.items()]
    if len(texts) > _MOST_NAMED:
        texts[_MOST_NAMED:] = [f"and {len(texts) - _MOST_NAMED} more"]
    return Readiness(
        ComponentReason.GROUPS_NOT_READY,
        f"Some LeaderWorkerSets are not ready: {'; '.join(texts)}",
        is_rolling=any(_is_rolling(group) for group in groups.values()),
        has_older=any(_has_older(group) for group in groups.values()),
    )


def groups_replicas(groups: Mapping[str, Group], first: str) -> ServiceReplicaStatus:
    """The counts of all groups together, with the name of the `first`."""
    statuses = [group.pods.status for group in groups.values() if group.pods is not None]
    return ServiceReplicaStatus(
        component_kind="LeaderWorkerSet",
        component_name=first,
        replicas=sum(status.replicas for status in statuses),
        updated_replicas=sum(status.updated_replicas for status in statuses),
        ready_replicas=sum(status.ready_replicas for status in statuses),
        component_names=tuple(name for name, group in groups.items() if group.pods is not None),
    )


def _obstacles(group: Group) -> Iterator[str]:
    # In the order of a rollout.
    pods = group.pods
    if pods is None:
        yield "it does not exist yet or is being deleted"
        return
    status = pods.status
    spec = from_json(pods.spec, LeaderWorkerSetSpec)
    desired, leaders = spec.replicas, group.leaders
    observed = status.observed_generation
    if observed is not None and observed < pods.metadata.generation:
        yield "its controller has not observed the newest spec yet"
    if desired == 0:
        return
    if not status.conditions or leaders is None:
        yield unobserved(pods, pods.KIND.name)
        return
    if _digest(spec.leader_worker_template.leader_template) != _digest(leaders.spec.template):
        yield "its controller has not observed the newest spec yet"
    is_stale = leaders.status.observed_generation < leaders.metadata.generation
    updated = 0 if is_stale else min(leaders.status.updated_replicas, status.updated_replicas)
    if _is_true(pods, "UpdateInProgress") or updated < desired:
        yield f"its pods do not run the newest spec yet{_placement(group.placement)}"
    if status.ready_replicas < desired:
        yield f"its pods are not ready{_placement(group.placement)}"
    if not _is_true(pods, "Available"):
        progress = condition(status.conditions, "Progressing")
        yield f"it is not available{f'; {progress.message}' if progress else ''}"


def _is_rolling(group: Group) -> bool:
    if group.pods is None or group.leaders is None:
        return True
    spec, status = from_json(group.pods.spec, LeaderWorkerSetSpec), group.pods.status
    newest = _digest(spec.leader_worker_template.leader_template)
    is_behind = newest != _digest(group.leaders.spec.template)
    return is_behind or status.updated_replicas < spec.replicas or _has_older(group)


def _has_older(group: Group) -> bool:
    return group.pods is not None and _is_true(group.pods, "UpdateInProgress")


def _digest(template: PodTemplate) -> str:
    return template.metadata.annotations.get(GROUP_HASH, "")


def _is_true(pods: LeaderWorkerSet, type_: str) -> bool:
    entry = condition(pods.status.conditions, type_)
    return entry is not None and entry.status == "True"


def _placement(group: PodGroup | None) -> str:
    unschedulable = condition(group.status.conditions, "Unschedulable") if group else None
    return f"; {unschedulable.message}" if unschedulable and unschedulable.status == "True" else ""


_REFUSED = "Validation failed: "
_OBSTACLE_REASONS = {
    Obstacle.NAME_CONFLICT: ComponentReason.NAME_CONFLICT,
    Obstacle.REJECTED: ComponentReason.REJECTED,
    Obstacle.NOT_SERVED: ComponentReason.NOT_SERVED,
    Obstacle.NOT_ALLOWED: ComponentReason.NOT_ALLOWED,
    Obstacle.FORBIDDEN: ComponentReason.API_FORBIDDEN,
    Obstacle.PREDECESSOR: ComponentReason.DEPLOYMENT_NOT_READY,
    Obstacle.CONTESTED: ComponentReason.DEPLOYMENT_NOT_READY,
}


def refused_status(
    component: DynamoComponentDeployment, problems: Sequence[Problem]
) -> DynamoComponentDeploymentStatus:
    """The status of a component with an invalid spec.

    Its counts stay, and `observedGeneration` stays at the last spec that was applied.
    """
    text = _REFUSED + fitted([str(problem) for problem in problems], MESSAGE_LIMIT - len(_REFUSED))
    reason = ComponentReason.VALIDATION_FAILED
    invalid = new_condition(component, "Valid", "False", reason, text)
    unavailable = availability(component, Readiness(reason, text))
    return component.status.with_conditions([invalid, *unavailable])


def applied_status(
    component: DynamoComponentDeployment, inputs: ComponentInputs, applied: Applied, now: datetime
) -> tuple[DynamoComponentDeploymentStatus, float | None]:
    """The status of a component after an apply, and in how many seconds it may differ without a change."""
    blocked, name = applied.blocked, component.metadata.name
    diagnosis = diagnose(inputs.pods, nodes=component.spec.nodes, now=now)
    seconds = diagnosis.requeue_after_seconds
    if component.spec.nodes > 1:
        kind, placements = LeaderWorkerSet.KIND.name, applied.by_name(PodGroup)
        deleted = {it.name for it in applied.changes if (it.verb, it.kind) == (Verb.DELETE, kind)}
        # With those that were neither written nor deleted, because another object is in the way.
        sets = {
            left.metadata.name: left
            for left in inputs.live.values()
            if isinstance(left, LeaderWorkerSet)
            and controls(component, left)
            and left.metadata.deletion_timestamp is None
            and left.metadata.name not in deleted
        } | applied.by_name(LeaderWorkerSet)
        groups = {
            group: Group(sets.get(group), inputs.leaders.get(group), placements.get(group))
            for group in group_names(component)
        }
        surplus = {group: Group(left, None, None) for group, left in sets.items() if group not in groups}
        readiness = groups_readiness(groups)
        replicas = groups_replicas(groups | surplus, names.group_name(name, 0))
    elif (deployment := applied.get(Deployment, names.workload_name(name))) is not None:
        readiness, replicas = deployment_readiness(deployment), deployment_replicas(deployment)
    else:
        return component_status(component, NO_DEPLOYMENT, None, blocked), seconds
    return component_status(component, readiness, replicas, blocked, diagnosis), seconds


# Programs match the reasons, which are the Go operator's. People need to know which pod fails, and
# why: that is in the message and in the counts.
def component_status(
    component: DynamoComponentDeployment,
    readiness: Readiness,
    replicas: ServiceReplicaStatus | None,
    blocked: Sequence[Blocked],
    diagnosis: Diagnosis = UNKNOWN,
) -> DynamoComponentDeploymentStatus:
    """The status after an apply. An object that could not be written makes the component unavailable."""
    service = _service(component, readiness, replicas, diagnosis) if replicas else None
    if blocked:
        text = fitted([obstacle.message for obstacle in blocked], MESSAGE_LIMIT)
        readiness = Readiness(_OBSTACLE_REASONS[blocked[0].obstacle], text)
    elif not readiness.is_ready and diagnosis.message:
        text = fitted([readiness.message, diagnosis.message], MESSAGE_LIMIT)
        readiness = Readiness(readiness.reason, text)
    before = component.status
    pods = selector = {labels.SELECTOR: names.workload_name(component.metadata.name)}
    if component.spec.nodes > 1:
        pods = _labels(component)
        selector = pods | {labels.ROLE: "leader"}  # one pod of each replica
    return replace(
        before,
        conditions=(valid_condition(component), *availability(component, readiness)),
        service=service,
        pod_selector=pods,
        selector=",".join(f"{name}={value}" for name, value in sorted(selector.items())),
        backend_framework=declared_or_detected(component.spec),
        # The newest spec that was applied without an obstacle.
        observed_generation=before.observed_generation if blocked else component.metadata.generation,
    )


def _service(
    component: DynamoComponentDeployment,
    readiness: Readiness,
    replicas: ServiceReplicaStatus,
    diagnosis: Diagnosis,
) -> ServiceReplicaStatus:
    counts = replace(diagnosed(replicas, diagnosis), runtime_namespace=runtime_namespace(component))
    if readiness.is_ready:
        return counts.of_ready_service()
    status = component.status
    available = condition(status.conditions, "Available")
    updates = is_updating(
        status.service,
        is_same=status.observed_generation == component.metadata.generation,
        was_ready=available is not None and available.status == "True",
        is_rolling=readiness.is_rolling,
        has_older=readiness.has_older,
    )
    reason = service_reason(diagnosis.reason, updates=updates)
    named = f"{component.metadata.name}: {readiness.message}"
    return replace(counts, reason=reason, message=diagnosis.message or named)


def _labels(component: DynamoComponentDeployment) -> dict[str, str]:
    return component_labels(component, parent_graph(component))


def valid_condition(component: DynamoComponentDeployment) -> Condition:
    """The condition `Valid` of a component without problems."""
    text = "DynamoComponentDeployment spec is valid"
    return new_condition(component, "Valid", "True", ComponentReason.VALID, text)


def availability(component: DynamoComponentDeployment, readiness: Readiness) -> list[Condition]:
    """The conditions of a workload's readiness, in both types that programs wait for."""
    status = "True" if readiness.is_ready else "False"
    twins = [
        new_condition(component, type_, status, readiness.reason, readiness.message)
        for type_ in ("Available", "DynamoComponentReady")
    ]
    return [*twins, *pause_over(component.metadata.generation, component.status.conditions)]
