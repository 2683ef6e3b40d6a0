"""The next step of replacing the old pods of a service by new ones: numbers in, numbers out.

All old revisions are one pool, so what is broken goes first, whichever it belongs to. A plan is right
whatever became of the one before it: every input is an observed number, every answer a desired one, and
applying half of an answer breaks no promise. The promises, for `cap` = desired +
surge and `floor` = desired - unavailable:

- (a) No step raises the replicas of all generations above `cap`. Where they are above it already, since the
  service was made smaller, no step raises them at all until they are below.
- (b) No step takes the available replicas below `floor`, or below what they are if that is less.
- (c) No available replica of the pool goes while one that is not available could.
- (d) If the new pods become available, the rollout ends.
- (e) It may be stopped between any two writes and continues from what is there.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import ComponentSpec

_AMOUNT = re.compile(r"(?P<number>\d{1,9})(?P<percent>%)?", re.ASCII)
_DEFAULT = {"number": "25", "percent": "%"}
"""Also for what validation refuses, and lets pass where it means nothing."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Replicas beyond the desired ones that may exist, and desired ones that may be missing; not both 0."""

    surge: int
    unavailable: int


def budget(service: ComponentSpec, desired: int) -> Budget:
    """The budget of a service that is to have so many replicas."""
    extra = service.extra_pod_metadata.annotations if service.extra_pod_metadata else {}
    annotations = service.annotations | extra
    surge = _amount(annotations.get(labels.MAX_SURGE), desired, rounds_up=True)
    unavailable = _amount(annotations.get(labels.MAX_UNAVAILABLE), desired, rounds_up=False)
    unavailable = min(unavailable, desired)
    return Budget(surge, unavailable) if surge or unavailable else Budget(1, 0)


def is_recreated(service: ComponentSpec) -> bool:
    """Whether the old pods must be gone before there are new ones; then there is no budget."""
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
    """One generation of a service.

    `replicas` are asked for, `available` of them serve, and so many `pods` exist that are not on their way
    out: more than replicas for a moment after these were lowered.
    """

    replicas: int
    available: int = 0
    pods: int = 0

    @property
    def serving(self) -> int:
        """The available replicas that are to stay; counts lag behind a lowered number."""
        return min(self.available, self.replicas)


NOTHING = RevisionScale(0)


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """The replicas to ask for: of the new generation, and of the old ones in the order given.

    `awaits_settling` is whether the last old replica only stays until the new ones are settled.
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
    """The next step of a rolling replacement; `old` from the oldest generation to the newest.

    `is_settled` is whether all replicas of the new generation have been available for so long that the
    frontends know them. Until then the last old replica that serves stays, if there is room for it.
    """
    cap, floor = desired + budget.surge, desired - budget.unavailable
    left = [scale.replicas for scale in old]
    spare = max(0, new.serving + sum(left) - floor)
    # What does not serve goes first. Not all of it at once: it may be all that could come up again.
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
    """The next step where old and new pods must not meet; `is_gone` is whether no old one is left."""
    replicas = desired if is_gone else min(new.replicas, desired)
    return RolloutStep(replicas, (0,) * len(old))


def is_through(desired: int, new: RevisionScale, old: Sequence[RevisionScale]) -> bool:
    """Whether the new generation has taken over."""
    is_there = new.replicas == desired and new.serving >= desired
    return is_there and not any(scale.replicas or scale.pods for scale in old)


def _is_taken_up(desired: int, cap: int, new: RevisionScale, *, is_settled: bool) -> bool:
    """Whether frontends know as many new replicas as there can be beside one old one."""
    beside_one = min(desired, cap - 1)
    return beside_one <= 0 or (new.serving >= beside_one and is_settled)


def _grown(desired: int, cap: int, new: RevisionScale, old: Sequence[RevisionScale]) -> int:
    """The replicas of the new generation; room is only what the old ones have left already."""
    if new.replicas >= desired:
        return desired
    room = cap - sum(max(scale.replicas, scale.pods) for scale in old)
    return max(new.replicas, min(desired, room))
