"""The next step of a managed rollout, from the old revisions of workers to the new one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from dynamo_operator import labels
from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.component.service import WorkerRevision
from dynamo_operator.features.rollouts.revisions import (
    NOTHING,
    Member,
    Revisions,
    RevisionScale,
    digits,
    revised_services,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import ReplicasSpec
from dynamo_operator.shared.conditions import ComponentReason
from kube_runtime.times import seconds_between
from kube_runtime.types.meta import Key, Resource, condition


class ComponentScale(Resource):
    """The scale subresource of a component. Its own type keeps it out of the cache of components."""

    KIND = DynamoComponentDeployment.KIND

    spec: ReplicasSpec = ReplicasSpec()


_AMOUNT = re.compile(r"(?P<number>\d{1,9})(?P<percent>%)?", re.ASCII)
_DEFAULT = {"number": "25", "percent": "%"}
"""Also for invalid amounts, which validation accepts where they have no effect."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Replicas above the desired number that may exist, and below it that may be missing; never both 0."""

    surge: int
    unavailable: int


def budget(service: ComponentSpec, desired: int) -> Budget:
    """Return the budget of a service with so many desired replicas."""
    extra = service.extra_pod_metadata.annotations if service.extra_pod_metadata else {}
    annotations = service.annotations | extra
    surge = _amount(annotations.get(labels.MAX_SURGE), desired, rounds_up=True)
    unavailable = _amount(annotations.get(labels.MAX_UNAVAILABLE), desired, rounds_up=False)
    unavailable = min(unavailable, desired)
    return Budget(surge, unavailable) if surge or unavailable else Budget(1, 0)


def is_recreated(service: ComponentSpec) -> bool:
    """Whether old pods must be gone before new ones start; then no budget applies."""
    return service.annotations.get(labels.STRATEGY) == "Recreate"


def _amount(text: str | None, desired: int, *, rounds_up: bool) -> int:
    match = _AMOUNT.fullmatch(text or "") or _DEFAULT
    number = int(match["number"])
    if not match["percent"]:
        return number
    share = number * desired
    return -(-share // 100) if rounds_up else share // 100


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """The replicas to set: of the new revision, and of each old one in the order given.

    `awaits_settling` is true if the last old replica stays only until the new ones have settled.
    """

    new: int
    old: tuple[int, ...]
    awaits_settling: bool = False


# All old revisions are one pool, so unavailable pods are deleted first, whichever revision they
# belong to. Every input is an observed number and every result a desired one, so a step never
# depends on the one before it, and a step that was applied in part is harmless. With `cap` =
# desired + surge and `floor` = desired - unavailable:
#
# - (a) No step raises the replicas of all revisions above `cap`. If they exceed it already, because the
#   service was scaled down, no step raises them until they are below.
# - (b) No step takes the available replicas below `floor`, or below their present number if that is less.
# - (c) No available replica of the pool is deleted while an unavailable one could be.
# - (d) If the new pods become available, the rollout ends.
# - (e) It can stop between any two writes and continues from the observed state.
def rolling_step(
    desired: int, budget: Budget, new: RevisionScale, old: Sequence[RevisionScale], *, is_settled: bool
) -> RolloutStep:
    """Plan the next step of a rolling replacement; `old` are sorted from the oldest revision to the newest.

    `is_settled` is true once all replicas of the new revision have been available for so long that the
    frontends know them. Until then the last serving old replica stays, if there is room for it.
    """
    cap, floor = desired + budget.surge, desired - budget.unavailable
    left = [scale.replicas for scale in old]
    spare = max(0, new.serving + sum(left) - floor)
    # Unavailable replicas first, but not all at once: they may still become available.
    for index, scale in enumerate(old):
        cut = min(scale.replicas - scale.serving, spare)
        left[index] -= cut
        spare -= cut
    serving = sum(scale.serving for scale in old)
    beside_one = min(desired, cap - 1)
    # Whether frontends know as many new replicas as fit beside one old replica.
    is_taken_up = beside_one <= 0 or (new.serving >= beside_one and is_settled)
    is_held = serving > 0 and not is_taken_up
    may_go = min(spare, serving - 1 if is_held else serving)
    for index, scale in enumerate(old):
        cut = min(scale.serving, may_go)
        left[index] -= cut
        may_go -= cut
    awaits = is_held and sum(left) == 1 and spare >= serving
    # New replicas only fill the room that old pods have already left.
    room = cap - sum(max(scale.replicas, scale.pods) for scale in old)
    grown = desired if new.replicas >= desired else max(new.replicas, min(desired, room))
    return RolloutStep(grown, tuple(left), awaits)


SETTLE_SECONDS = 10.0
"""Time that frontends may take to list workers that have become available."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The next step of a rollout; `workers` is the revision to render.

    `resized` are old components with their new number of replicas, `spared` those not to delete although they
    are not rendered. `through` are the services that run the new revision only, `wait_seconds` the time until
    the plan may change without an event, 0 for never, and `leaving` counts pods of old components that exist.
    """

    revisions: Revisions
    workers: WorkerRevision
    resized: tuple[tuple[DynamoComponentDeployment, int], ...] = ()
    spared: frozenset[tuple[str, Key]] = frozenset()
    through: tuple[str, ...] = ()
    wait_seconds: float = 0.0
    leaving: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def target_hash(self) -> str:
        """The hash of the desired revision; "" without revisions."""
        return digits(self.workers.content)

    @property
    def record(self) -> dict[str, str | None]:
        """The annotation of the graph that names the revision that serves when it is through, or its removal.

        For an adopted revision that is the annotation by which the Go operator finds it again.
        """
        workers = self.workers
        if workers.is_adopted:
            return {labels.CURRENT_WORKER_HASH_V2: workers.suffix}
        return {labels.CURRENT_WORKER_HASH: self.target_hash or None}

    def is_recorded(self, annotations: Mapping[str, str]) -> bool:
        """Whether the annotations of the graph name that revision."""
        if self.workers.is_adopted and annotations.get(labels.CURRENT_WORKER_HASH) == self.workers.suffix:
            return True  # as before release 1.3 of the Go operator
        return all(annotations.get(key) == value for key, value in self.record.items())


@dataclass(frozen=True, slots=True)
class _Planned:
    """The step of one service. `wait_seconds` is the time until it may change without an event (0: never)."""

    step: RolloutStep
    old: tuple[Member, ...]
    is_through: bool
    wait_seconds: float = 0.0


# Services step independently, but an old revision is deleted as a whole when every service is
# complete, since its workers find no others. A service that no longer has revisions is replaced by
# the same steps, by a component with a plain name. Old components are only scaled; their templates
# never change.
def plan_rollout(
    graph: DynamoGraphDeployment,
    revisions: Revisions,
    now: datetime,
    *,
    leaving: Mapping[str, int] | None = None,
) -> Rollout:
    """Plan the next step for a graph whose services have their effective replicas.

    `leaving` counts the pods of old components by component. If None, one is gone when its replicas are.
    """
    if not revisions.old:
        return Rollout(revisions, revisions.target, through=tuple(revised_services(graph)))
    left = leaving or {}
    # Also services that no longer have revisions.
    replaced = revised_services(graph).keys() | {member.service for member in revisions.old}
    planned = {
        key: _planned(key, service, revisions, left, now)
        for key, service in sorted(graph.spec.services.items())
        if key in replaced
    }
    through = tuple(key for key, service in planned.items() if service.is_through)
    is_over = len(through) == len(planned)
    # Only those whose replicas differ from the step.
    resized = (
        (member.component, replicas)
        for service in planned.values()
        for member, replicas in zip(service.old, service.step.old, strict=True)
        if member.scale.replicas != replicas
    )
    waits = [service.wait_seconds for service in planned.values() if service.wait_seconds]
    return Rollout(
        revisions,
        replace(revisions.target, replicas={key: service.step.new for key, service in planned.items()}),
        () if is_over else tuple(resized),
        frozenset()
        if is_over
        else frozenset(
            (DynamoComponentDeployment.KIND.name, member.component.key) for member in revisions.old
        ),
        through,
        min(waits, default=0.0),
        left,
    )


_REFUSALS = frozenset(
    (
        ComponentReason.NAME_CONFLICT,
        ComponentReason.REJECTED,
        ComponentReason.NOT_SERVED,
        ComponentReason.NOT_ALLOWED,
        ComponentReason.API_FORBIDDEN,
    )
)
"""Why an object of a component cannot be written."""


def _scale_of_new(new: Member | None) -> RevisionScale:
    """Its scale. Without one of its objects, such as its Service, its available pods may not be reachable."""
    if new is None:
        return NOTHING
    available = condition(new.component.status.conditions, "Available")
    return replace(new.scale, available=0) if available and available.reason in _REFUSALS else new.scale


def _seconds_to_settle(new: Member | None, now: datetime) -> float | None:
    """Seconds until new workers count as settled; None while some are not available."""
    available = condition(new.component.status.conditions, "Available") if new else None
    if available is None or available.status != "True":
        return None
    passed = seconds_between(available.last_transition_time, now)
    return None if passed is None else max(0.0, SETTLE_SECONDS - passed)


def _planned(
    key: str, service: ComponentSpec, revisions: Revisions, leaving: Mapping[str, int], now: datetime
) -> _Planned:
    desired = service.desired_replicas
    candidates = (*revisions.new, *revisions.successors)
    member = next((candidate for candidate in candidates if candidate.service == key), None)
    new = _scale_of_new(member)
    old = tuple(member for member in revisions.old if member.service == key)
    scales = [member.scale for member in old]
    has_pods = any(leaving.get(member.name) for member in old)
    is_gone = not has_pods and not any(scale.replicas or scale.pods for scale in scales)
    is_complete = is_gone and new.replicas == desired and new.serving >= desired
    if is_recreated(service):
        # Old and new pods must not overlap.
        step = RolloutStep(desired if is_gone else min(new.replicas, desired), (0,) * len(old))
        return _Planned(step, old, is_complete)
    left = _seconds_to_settle(member, now)
    step = rolling_step(desired, budget(service, desired), new, scales, is_settled=left == 0)
    return _Planned(step, old, is_complete, left if left and step.awaits_settling else 0.0)
