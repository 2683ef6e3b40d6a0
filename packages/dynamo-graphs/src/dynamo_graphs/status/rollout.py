"""The progress of a managed rollout of workers, for the graph's status.

Nothing else keeps its beginning and its end: they are taken over from the stored status for as long as that
is about the same revision.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment, RollingUpdateStatus
from dynamo_graphs.api.pause import is_paused
from dynamo_graphs.api.revision import digits
from dynamo_graphs.api.service_status import ServiceReplicaStatus
from dynamo_graphs.plan.revisions import Member, Revisions
from dynamo_graphs.plan.rollout_plan import Rollout

PENDING, IN_PROGRESS, COMPLETED = "Pending", "InProgress", "Completed"


def rolling_update(
    graph: DynamoGraphDeployment, rollout: Rollout, now: str
) -> RollingUpdateStatus | None:
    """`status.rollingUpdate` of a graph as it is stored; `now` is RFC 3339.

    None means: there has been no rollout.
    """
    stored = graph.status.rolling_update
    is_open = stored is not None and stored.phase in (PENDING, IN_PROGRESS)
    if not rollout.is_under_way and not is_open:
        return stored
    to = rollout.target_hash
    if stored is not None and not rollout.is_under_way and not to:
        # There are no generations any more, so nothing else could end it. It would block restarts forever.
        # The one that it went to may never have had a pod; no service is in a generation.
        return msgspec.structs.replace(
            stored, phase=COMPLETED, end_time=now, to_hash="", updated_services=()
        )
    known = stored if stored is not None and is_open and stored.to_hash == to else None
    is_noted = graph.metadata.annotations.get(labels.CURRENT_WORKER_HASH, "") == to
    is_over = not rollout.is_under_way and is_noted
    is_begun = is_over or bool(rollout.generations.new or rollout.generations.successors)
    return RollingUpdateStatus(
        phase=COMPLETED if is_over else IN_PROGRESS if is_begun else PENDING,
        start_time=known.start_time if known else now,
        end_time=now if is_over else None,
        updated_services=rollout.through,
        from_hash=known.from_hash if known else _left(rollout.generations, to),
        to_hash=to,
    )


def replacing(rollout: Rollout) -> dict[str, str]:
    """Why a graph is not ready while its workers are replaced: by the names of old components."""
    return {each.name: _why_still_there(each, rollout) for each in rollout.generations.old}


def _why_still_there(old: Member, rollout: Rollout) -> str:
    side, going = old.side, rollout.leaving.get(old.name, 0)
    if is_paused(old.component) and (side.replicas or side.pods or going):
        return (
            f"it belongs to an older revision and is paused (annotation {labels.PAUSED}), so "
            "its pods stay"
        )
    if not side.replicas and (left := max(side.pods, going)):
        return f"its last pods are terminating ({left})"
    if not side.replicas:
        return "it has no pods left and is deleted once all services are replaced"
    heirs = (each.name for each in rollout.generations.successors if each.service == old.service)
    generation = f"worker revision {rollout.target_hash}" if rollout.target_hash else ""
    return f"{next(heirs, generation) or 'its successor'} is replacing it"


def with_old_generations(
    services: Mapping[str, ServiceReplicaStatus], old: Sequence[Member]
) -> dict[str, ServiceReplicaStatus]:
    """The counts of services over all generations; what is updated is what the newest one has."""
    return {
        key: _sum(counts, [each for each in old if each.service == key])
        for key, counts in services.items()
    }


def _sum(new: ServiceReplicaStatus, old: Iterable[Member]) -> ServiceReplicaStatus:
    reported = (each.component.status.service for each in old)
    counts = [each for each in reported if each is not None]
    if not counts:
        return new
    ready = (each.ready_replicas for each in (new, *counts))
    available = (each.available_replicas for each in (new, *counts))
    return msgspec.structs.replace(
        new,
        replicas=sum(each.replicas for each in (new, *counts)),
        ready_replicas=sum(each or 0 for each in ready),
        available_replicas=sum(each or 0 for each in available),
        component_names=tuple(each.component_name for each in (new, *counts)),
    )


def _left(found: Revisions, to: str) -> str:
    """The generation that is left behind: what is on record, or the newest of those that go."""
    if found.current != to or not found.old:
        return found.current
    newest = found.old[-1]
    return digits(newest.content) or newest.suffix
