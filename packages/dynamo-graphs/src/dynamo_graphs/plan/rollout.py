"""The next step of replacing the old pods of a service by new ones: numbers in, numbers out.

All old revisions are one pool, so what is broken goes first, whichever it belongs to. A plan is right
whatever became of the one before it: every input is an observed number, every answer a desired one, and
applying half of an answer breaks no promise. The promises, for `cap` = wanted +
surge and `floor` = wanted - unavailable:

- (a) No step raises the replicas of all generations above `cap`. Where they are above it already, since the
  service was made smaller, no step raises them at all until they are below.
- (b) No step takes the available replicas below `floor`, or below what they are if that is less.
- (c) No available replica of the pool goes while one that is not available could.
- (d) If the new pods become available, the rollout ends.
- (e) It may be stopped between any two writes and continues from what is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_graphs.plan.budget import Budget


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
    wanted: int,
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
    cap, floor = wanted + budget.surge, wanted - budget.unavailable
    left = [each.replicas for each in old]
    spare = max(0, new.serving + sum(left) - floor)
    # What does not serve goes first. Not all of it at once: it may be all that could come up again.
    for index, side in enumerate(old):
        cut = min(side.replicas - side.serving, spare)
        left[index] -= cut
        spare -= cut
    serving = sum(each.serving for each in old)
    is_held = serving > 0 and not _is_taken_up(wanted, cap, new, is_settled=is_settled)
    may_go = min(spare, serving - 1 if is_held else serving)
    for index, side in enumerate(old):
        cut = min(side.serving, may_go)
        left[index] -= cut
        may_go -= cut
    awaits = is_held and sum(left) == 1 and spare >= serving
    return RolloutStep(_grown(wanted, cap, new, old), tuple(left), awaits)


def recreating_step(
    wanted: int, new: RevisionScale, old: Sequence[RevisionScale], *, is_gone: bool
) -> RolloutStep:
    """The next step where old and new pods must not meet; `is_gone` is whether no old one is left."""
    replicas = wanted if is_gone else min(new.replicas, wanted)
    return RolloutStep(replicas, (0,) * len(old))


def is_through(wanted: int, new: RevisionScale, old: Sequence[RevisionScale]) -> bool:
    """Whether the new generation has taken over."""
    is_there = new.replicas == wanted and new.serving >= wanted
    return is_there and not any(each.replicas or each.pods for each in old)


def _is_taken_up(wanted: int, cap: int, new: RevisionScale, *, is_settled: bool) -> bool:
    """Whether frontends know as many new replicas as there can be beside one old one."""
    beside_one = min(wanted, cap - 1)
    return beside_one <= 0 or (new.serving >= beside_one and is_settled)


def _grown(wanted: int, cap: int, new: RevisionScale, old: Sequence[RevisionScale]) -> int:
    """The replicas of the new generation; room is only what the old ones have left already."""
    if new.replicas >= wanted:
        return wanted
    room = cap - sum(max(each.replicas, each.pods) for each in old)
    return max(new.replicas, min(wanted, room))
