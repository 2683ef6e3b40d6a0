"""The next step of replacing the old pods of a service by new ones: numbers in, numbers out.

All old revisions are one pool, so unavailable pods are deleted first, whichever revision they belong to.
Every input is an observed number and every result a desired one, so a step never depends on the one
before it, and a step that was applied in part is harmless. With `cap` = desired + surge and `floor` =
desired - unavailable:

- (a) No step raises the replicas of all revisions above `cap`. If they exceed it already, because the
  service was scaled down, no step raises them until they are below.
- (b) No step takes the available replicas below `floor`, or below their present number if that is less.
- (c) No available replica of the pool is deleted while an unavailable one could be.
- (d) If the new pods become available, the rollout ends.
- (e) It can stop between any two writes and continues from the observed state.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import ComponentSpec

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
class RevisionScale:
    """The scale of a service in one revision.

    `replicas` are desired, `available` are serving, and `pods` exist without being deleted: more than
    `replicas` for a moment after a scale-down.
    """

    replicas: int
    available: int = 0
    pods: int = 0

    @property
    def serving(self) -> int:
        """Available replicas that will stay: after a scale-down, counts lag behind."""
        return min(self.available, self.replicas)


NOTHING = RevisionScale(0)


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """The replicas to set: of the new revision, and of each old one in the order given.

    `awaits_settling` is true if the last old replica stays only until the new ones have settled.
    """

    new: int
    old: tuple[int, ...]
    awaits_settling: bool = False


def rolling_step(
    desired: int,
    budget: Budget,
    new: RevisionScale,
    old: Sequence[RevisionScale],
    *,
    is_settled: bool,
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
    is_held = serving > 0 and not _is_taken_up(desired, cap, new, is_settled=is_settled)
    may_go = min(spare, serving - 1 if is_held else serving)
    for index, scale in enumerate(old):
        cut = min(scale.serving, may_go)
        left[index] -= cut
        may_go -= cut
    awaits = is_held and sum(left) == 1 and spare >= serving
    return RolloutStep(_grown(desired, cap, new, old), tuple(left), awaits)


def recreating_step(
    desired: int, new: RevisionScale, old: Sequence[RevisionScale], *, is_gone: bool
) -> RolloutStep:
    """Plan the next step where old and new pods must not overlap; `is_gone` once no old pod is left."""
    replicas = desired if is_gone else min(new.replicas, desired)
    return RolloutStep(replicas, (0,) * len(old))


def is_through(desired: int, new: RevisionScale, old: Sequence[RevisionScale]) -> bool:
    """Whether the new revision has replaced all old ones."""
    is_complete = new.replicas == desired and new.serving >= desired
    return is_complete and not any(scale.replicas or scale.pods for scale in old)


def _is_taken_up(desired: int, cap: int, new: RevisionScale, *, is_settled: bool) -> bool:
    """Whether frontends know as many new replicas as fit beside one old replica."""
    beside_one = min(desired, cap - 1)
    return beside_one <= 0 or (new.serving >= beside_one and is_settled)


def _grown(desired: int, cap: int, new: RevisionScale, old: Sequence[RevisionScale]) -> int:
    """The replicas of the new revision, which only fill the room that old pods have already left."""
    if new.replicas >= desired:
        return desired
    room = cap - sum(max(scale.replicas, scale.pods) for scale in old)
    return max(new.replicas, min(desired, room))
