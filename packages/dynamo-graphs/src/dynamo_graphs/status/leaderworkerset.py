"""Whether the groups of a multinode component are ready, and why not.

Each replica is one LeaderWorkerSet with one group of pods. LeaderWorkerSet reports `Available` for old pods
too, and up to release 0.7 does not report which generation its status describes. So the StatefulSet of the
leaders counts as well: it carries the hash of the templates from which it was created.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from dynamo_graphs.api.component import ServiceReplicaStatus
from dynamo_graphs.api.labels import GROUP_HASH
from dynamo_graphs.status.reasons import ComponentReason
from dynamo_graphs.status.unobserved import unobserved
from dynamo_graphs.status.workload import Readiness
from dynamo_graphs.types.optional_apis import (
    LeaderWorkerSet,
    LeaderWorkerSetSpec,
    LeaderWorkerTemplate,
    PodGroup,
)
from kube_runtime.types.apps import PodTemplate, StatefulSet
from kube_runtime.types.meta import Metadata, Resource, condition

NO_ORCHESTRATOR = "no multinode orchestrator available"
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Group:
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
    live_spec = msgspec.json.decode(live.spec, type=LeaderWorkerSetSpec)
    digest = {GROUP_HASH: _digest(live_spec.leader_worker_template.leader_template)}
    leader = PodTemplate(Metadata(annotations=digest))
    spec = LeaderWorkerSetSpec(live_spec.replicas, LeaderWorkerTemplate(leader))
    metadata = replace(live.metadata, labels={}, annotations={})
    return replace(live, metadata=metadata, spec=msgspec.Raw(msgspec.json.encode(spec)))


def groups_readiness(groups: Mapping[str, Group]) -> Readiness:
    """Whether every group, by name, runs its newest templates."""
    late = {name: text for name, group in groups.items() if (text := next(_obstacles(group), ""))}
    if not late:
        return Readiness(
            is_ready=True,
            reason=ComponentReason.GROUPS_READY,
            message="All LeaderWorkerSets are ready",
        )
    texts = [f"{name}: {text}" for name, text in late.items()]
    if len(texts) > _MOST_NAMED:
        texts[_MOST_NAMED:] = [f"and {len(texts) - _MOST_NAMED} more"]
    return Readiness(
        is_ready=False,
        reason=ComponentReason.GROUPS_NOT_READY,
        message=f"Some LeaderWorkerSets are not ready: {'; '.join(texts)}",
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
    """Why the group is not ready, in the order of a rollout."""
    pods = group.pods
    if pods is None:
        yield "it does not exist yet or is being deleted"
        return
    status = pods.status
    spec = msgspec.json.decode(pods.spec, type=LeaderWorkerSetSpec)
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
    """Whether the group does not run its newest templates yet."""
    if group.pods is None or group.leaders is None:
        return True
    spec, status = msgspec.json.decode(group.pods.spec, type=LeaderWorkerSetSpec), group.pods.status
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
    """Volcano's message if it cannot schedule the group, else ""."""
    unschedulable = condition(group.status.conditions, "Unschedulable") if group else None
    return f"; {unschedulable.message}" if unschedulable and unschedulable.status == "True" else ""
