"""Write a status: a merge patch of the difference only, and no request when there is none.

The desired status is computed from the stored one: `msgspec.structs.replace(live.status, state=...)`. So a
field that is not mentioned stays as it is, and one that gets its default is removed.

A transition time is the moment when a condition's status flipped, so it is taken over from the stored
condition unless the status really changed.
"""

from collections.abc import Collection, Iterable

import msgspec
import structlog

from kube_runtime.apply.drift import plain
from kube_runtime.apply.writer import Writer
from kube_runtime.kind import Fields, Object
from kube_runtime.rate_limits import Debounce, WriteActivity, WriteRate
from kube_runtime.times import utc_now
from kube_runtime.types.meta import Condition, R, Resource, Status, status_of

_log = structlog.get_logger()

_WORDS = ("observed_generation", "state")
"""What programs wait for, besides conditions."""

SETTLE_SECONDS = 1.0
"""How long the first status of a new spec may wait for the last one."""

BUSY_SECONDS = 3.0
"""The same while there is much to do. Of a hundred graphs that are made at once, most are ready so long after
the first of their three services."""


async def patch_status(
    writer: Writer, resource: R, desired: Status, *, pace: "StatusRateLimit | None" = None
) -> R:
    """The resource with this status; one request, or none when the stored status says the same.

    The conditions of `desired` need no transition times; stored ones of other types stay. `pace` takes note
    of the write once it has succeeded.

    Raises:
        Conflict: the object changed meanwhile; the caller retries at once.
        OperatorError: the patch failed otherwise.
    """
    patch = difference(resource, desired)
    if not patch:
        return resource
    # The API server ignores a uid in a status patch of a custom resource (measured on v1.36). The version
    # keeps a status that was computed for one spec, or one object, away from the next.
    version = resource.metadata.resource_version
    stored = await writer.merge_patch(
        type(resource),
        resource.key,
        {"metadata": {"resourceVersion": version}, "status": patch},
        subresource="status",
    )
    if pace is not None:
        pace.wrote(resource)
    if changes := _news(resource, desired):
        _log.info("status changed", generation=resource.metadata.generation, **changes)
    return stored


def _news(resource: Resource, desired: Status) -> Object:
    """What the log says of a new status: its state and the conditions that flipped or have another reason."""
    stored = status_of(resource)
    reported = {(old.type, old.status, old.reason) for old in stored.conditions}
    flipped = [
        f"{new.type}={new.status} {new.reason}: {new.message}".removesuffix(": ")
        for new in desired.conditions
        if (new.type, new.status, new.reason) not in reported
    ]
    before, state = getattr(stored, "state", None), getattr(desired, "state", None)
    moved = {"state": str(state), "was": before or ""} if state and state != before else {}
    return {**moved, **({"conditions": flipped} if flipped else {})}


class StatusRateLimit:
    """Keeps a status from being written more often than readers can use it.

    *Progress*, counts and texts while nothing is decided, is written once in `seconds`: a rollout changes
    its counts several times a second, and each status is a request that wakes others. What a program waits
    for, a condition that flips or gets another reason, is not held back by that. `passing` are states on the
    way to another one; to go from one of them to the next is progress too.

    *A status of an older generation* is not reliable, as its `observedGeneration` shows.
    So the first status of a new spec waits up to `SETTLE_SECONDS` for the final one: `goal` is the type
    of the condition that is true then, and with it the status is written at once. Most changes of a number
    of replicas are over by then. "" as `goal` means: no such wait.

    *In busy times*, as `activity` reports, both wait up to `BUSY_SECONDS`, progress for more of it too.

    `greets`: in other times an object that has no status yet gets one at once, because a user watches it.
    `records` are what later steps are decided by, such as how far a restart is, by their wire names in the
    status or as types of conditions: a change of one never waits.
    """

    def __init__(
        self,
        seconds: float = 1.0,
        *,
        goal: str = "",
        greets: bool = False,
        records: Collection[str] = (),
        passing: Collection[str] = (),
        activity: WriteActivity | None = None,
    ) -> None:
        self._write_rate = WriteRate(seconds)
        self._goal = goal
        self._greets = greets
        self._records = frozenset(records)
        self._passing = frozenset(passing)
        self._activity = activity or WriteActivity()
        self._settling = Debounce()
        self._progress = Debounce()

    @property
    def remembered(self) -> int:
        """Of how many objects something is remembered."""
        return self._write_rate.remembered + self._settling.remembered + self._progress.remembered

    def wait(self, resource: Resource, desired: Status) -> float:
        """Seconds to wait before this status is to be written; 0 means at once."""
        uid, is_busy = resource.metadata.uid, self._activity.is_high
        patch = difference(resource, desired)
        if not patch:
            self._progress.forget(uid)
            return 0.0
        is_record = self._is_record(resource, desired, patch)
        if is_record or not self._may_settle(resource, desired):
            self._settling.forget(uid)
        elif left := self._settling.wait(uid, BUSY_SECONDS if is_busy else SETTLE_SECONDS):
            return left
        if not (is_record or self._decides(resource, desired)):
            gathering = self._progress.wait(uid, BUSY_SECONDS) if is_busy else 0.0
            if left := max(self._write_rate.wait(uid), gathering):
                return left
        return 0.0

    def wrote(self, resource: Resource) -> None:
        """Take note that a status of that object was written."""
        uid = resource.metadata.uid
        self._progress.forget(uid)
        self._write_rate.note(uid)

    def _decides(self, resource: Resource, desired: Status) -> bool:
        """Whether a status says more than that counts or texts have moved."""
        stored = status_of(resource)
        for name in _WORDS:
            old, new = getattr(stored, name, None), getattr(desired, name, None)
            if old != new and not (name == "state" and {old, new} <= self._passing):
                return True
        reported = {_reported(condition) for condition in stored.conditions}
        return any(_reported(condition) not in reported for condition in desired.conditions)

    def _is_record(self, resource: Resource, desired: Status, patch: Object) -> bool:
        stored = {(old.type, old.status) for old in status_of(resource).conditions}
        flipped = {new.type for new in desired.conditions if (new.type, new.status) not in stored}
        return bool(self._records & (patch.keys() | flipped))

    def _may_settle(self, resource: Resource, desired: Status) -> bool:
        """Whether the stored status is of an older spec, and this one is not final for the newest."""
        observed = getattr(status_of(resource), "observed_generation", 0)
        if not self._goal or observed == resource.metadata.generation:
            return False
        if self._greets and not observed and not self._activity.is_high:
            return False
        return not any(
            new.type == self._goal and new.status == "True" for new in desired.conditions
        )


def _reported(condition: Condition) -> tuple[str, str, str, int | None]:
    return condition.type, condition.status, condition.reason, condition.observed_generation


def difference(resource: Resource, desired: Status) -> Object:
    """The merge patch from the stored status to the wanted one; empty when they are equal.

    Raises:
        TypeError: the kind has no status with conditions.
    """
    stored = status_of(resource)
    conditions = with_transition_times(desired.conditions, stored.conditions, now=utc_now())
    desired = msgspec.structs.replace(desired, conditions=conditions)
    return {} if desired == stored else merge_patch(_as_json(stored), _as_json(desired))


def _as_json(status: Status) -> Object:
    """A status on the wire, without fields that have their default, and with whole conditions."""
    body: Object = msgspec.to_builtins(status)
    return {**body, "conditions": plain(status.conditions)}


def with_transition_times(
    desired: Iterable[Condition], stored: Iterable[Condition], *, now: str
) -> tuple[Condition, ...]:
    """The wanted conditions, then the stored ones of other types.

    `lastTransitionTime` is the stored one unless the status differs; then it is `now` (RFC 3339).
    """
    rest = {condition.type: condition for condition in stored}
    conditions = []
    for condition in desired:
        old = rest.pop(condition.type, None)
        kept = old.last_transition_time if old and old.status == condition.status else None
        conditions.append(msgspec.structs.replace(condition, last_transition_time=kept or now))
    return (*conditions, *rest.values())


def merge_patch(stored: Fields, desired: Fields) -> Object:
    """The JSON merge patch (RFC 7386) that turns `stored` into `desired`; empty when they are equal."""
    patch: Object = {}
    for name in {**stored, **desired}:
        old, new = stored.get(name), desired.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := merge_patch(old, new):
                patch[name] = inner
        elif not _same(old, new):
            patch[name] = new
    return patch


def _same(old: object, new: object) -> bool:
    return old == new or (old is None and new in ({}, [])) or (new is None and old in ({}, []))
