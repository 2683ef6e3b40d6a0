"""Write a status: the difference to the stored one, not more often than readers can use it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec
import structlog

from kube_runtime.apply.writer import Writer
from kube_runtime.times import FORGOTTEN_SECONDS, Since, WriteActivity, rfc3339
from kube_runtime.types.meta import Condition, Fields, Object, R, Resource, Status, plain, status_of
from kube_runtime.wire import Translation

_log = structlog.get_logger(__name__)

_AWAITED_FIELDS = ("observed_generation", "state")
"""Fields that programs wait for, besides conditions."""

SETTLE_SECONDS = 1.0
"""How long the first status of a new spec may wait for the final one."""

BUSY_SECONDS = 3.0
"""The same in busy times. Of a hundred graphs that are created at once, most are ready that long after the
first of their three services."""


# Compute the desired status from the stored one, `msgspec.structs.replace(live.status, state=...)`,
# to keep the other fields. A field that has its default is removed.
async def patch_status(
    writer: Writer, resource: R, desired: Status, *, limit: "StatusRateLimit | None" = None
) -> R:
    """Write this status and return the resource with it; no request when the stored status is equal.

    The conditions of `desired` need no transition times; stored ones of other types stay. `limit` records
    a successful write.

    Raises:
        Conflict: the object changed meanwhile; the caller retries at once.
    """
    translation = writer.client.translations.get(resource.KIND)
    patch = difference(resource, desired, translation)
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
    if limit is not None:
        limit.record_write(resource)
    if changes := _changes_for_log(resource, desired):
        _log.info("status changed", generation=resource.metadata.generation, **changes)
    return stored


def _changes_for_log(resource: Resource, desired: Status) -> Object:
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


@dataclass(slots=True, eq=False)
class StatusRateLimit:
    """Delays statuses, so that an object's status is not written more often than readers can use it.

    *Progress*, such as counts and messages, is written once in `seconds`: each write wakes other clients.
    *Transitions*, for which programs wait, are written at once: a condition that flips or gets another
    reason, another `state` (except from one of `transient_states` to another) or `observedGeneration`.

    *The first status of a new spec* waits up to `SETTLE_SECONDS` for one in which the condition `goal`, if
    there is one, is true: the older `observedGeneration` shows that the status is out of date, and most
    changes of replicas are over by then. `first_at_once`: an object without a status gets one at once, for
    the user who watches it. *In busy times*, as `activity` reports, all but transitions may wait for
    `BUSY_SECONDS`.

    `never_delayed` are status fields, by their name on the wire, and types of conditions on which later steps
    of the reconciler depend, such as the progress of a restart. A change of one is written at once.
    """

    seconds: float = 1.0
    goal: str = ""
    first_at_once: bool = False
    never_delayed: Collection[str] = ()
    transient_states: Collection[str] = ()
    activity: WriteActivity = field(default_factory=WriteActivity)
    _written: Since = field(init=False)
    _settling: Since = field(default_factory=lambda: Since(FORGOTTEN_SECONDS), init=False)
    _progress: Since = field(default_factory=lambda: Since(FORGOTTEN_SECONDS), init=False)

    def __post_init__(self) -> None:
        self._written = Since(self.seconds)

    @property
    def remembered(self) -> int:
        """Number of entries in memory."""
        return len(self._written) + len(self._settling) + len(self._progress)

    def wait(self, resource: Resource, desired: Status) -> float:
        """Seconds to wait before this status is written; 0 means now."""
        uid, is_busy = resource.metadata.uid, self.activity.is_high
        old, new = _compared(resource, desired)
        fields = zip(old.__struct_fields__, old.__struct_encode_fields__, strict=True)
        changed = {wire for name, wire in fields if _differ(getattr(old, name), getattr(new, name))}
        if not changed:
            self._progress.pop(uid, None)
            return 0.0
        stored = {(was.type, was.status) for was in old.conditions}
        flipped = {it.type for it in desired.conditions if (it.type, it.status) not in stored}
        is_never_delayed = not (changed | flipped).isdisjoint(self.never_delayed)
        if is_never_delayed or not self._may_wait_for_goal(resource, desired):
            self._settling.pop(uid, None)
        elif left := self._settling.left_of_wait(uid, BUSY_SECONDS if is_busy else SETTLE_SECONDS):
            return left
        if is_never_delayed or self._is_transition(resource, desired):
            return 0.0
        busy_wait = self._progress.left_of_wait(uid, BUSY_SECONDS) if is_busy else 0.0
        return max(self._written.left(uid, self.seconds), busy_wait)

    def is_settling(self, resource: Resource, desired: Status) -> bool:
        """Whether only the final status of a new spec ends the wait; no later step depends on this one."""
        steps = {new.type for new in desired.conditions if new.status == "True"}
        if not (steps | msgspec.to_builtins(desired).keys()).isdisjoint(self.never_delayed):
            return False
        seconds = BUSY_SECONDS if self.activity.is_high else SETTLE_SECONDS
        return self._settling.left(resource.metadata.uid, seconds) > 0

    def record_write(self, resource: Resource) -> None:
        """Record that a status of that object was written."""
        self._progress.pop(resource.metadata.uid, None)
        self._written.record(resource.metadata.uid)

    def _is_transition(self, resource: Resource, desired: Status) -> bool:
        stored = status_of(resource)
        for name in _AWAITED_FIELDS:
            old, new = getattr(stored, name, None), getattr(desired, name, None)
            if old != new and not (name == "state" and {old, new} <= {*self.transient_states}):
                return True
        reported = {_reported(condition) for condition in stored.conditions}
        return any(_reported(condition) not in reported for condition in desired.conditions)

    def _may_wait_for_goal(self, resource: Resource, desired: Status) -> bool:
        """Whether the stored status is of an older spec, and the desired one is not the final one."""
        observed = getattr(status_of(resource), "observed_generation", 0)
        if not self.goal or observed == resource.metadata.generation:
            return False
        if self.first_at_once and not observed and not self.activity.is_high:
            return False
        return not any(new.type == self.goal and new.status == "True" for new in desired.conditions)


def _reported(condition: Condition) -> tuple[str, str, str, int | None]:
    return condition.type, condition.status, condition.reason, condition.observed_generation


def difference(resource: Resource, desired: Status, translation: Translation | None = None) -> Object:
    """The merge patch from the stored status to the desired one, as it is stored; empty when they are equal.

    Raises:
        TypeError: the kind has no status with conditions.
    """
    stored, desired = _compared(resource, desired)
    if desired == stored:
        return {}
    # Without fields that have their default, but with all fields of conditions.
    old, new = (
        {**msgspec.to_builtins(status, enc_hook=plain), "conditions": plain(status.conditions)}
        for status in (stored, desired)
    )
    if translation is not None:
        metadata = {"name": resource.metadata.name, "annotations": resource.metadata.annotations}
        # A required field is written first with its zero, which conversion gives to an empty status, too.
        is_first = status_of(resource) == type(desired)()
        old, new = (
            translation.written(resource.KIND.manifest(metadata, status=status)).get("status", {})
            for status in (old, new)
        )
        old = {} if is_first else old
    return merge_patch(old, new)


def _compared(resource: Resource, desired: Status) -> tuple[Status, Status]:
    """The stored status and the desired one, with the transition times that it would be written with."""
    stored = status_of(resource)
    conditions = with_transition_times(desired.conditions, stored.conditions, now=rfc3339())
    return stored, msgspec.structs.replace(desired, conditions=conditions)


def with_transition_times(
    desired: Iterable[Condition], stored: Iterable[Condition], *, now: str
) -> tuple[Condition, ...]:
    """The desired conditions, then the stored ones of other types.

    `lastTransitionTime` is the stored one, or `now` (RFC 3339) if the status differs.
    """
    rest = {condition.type: condition for condition in stored}
    conditions = []
    for condition in desired:
        old = rest.pop(condition.type, None)
        kept = old.last_transition_time if old and old.status == condition.status else None
        conditions.append(msgspec.structs.replace(condition, last_transition_time=kept or now))
    return (*conditions, *rest.values())


_EMPTY: Final[tuple[object, ...]] = (None, {}, [], ())


def _differ(old: object, new: object) -> bool:
    return old != new and not (old in _EMPTY and new in _EMPTY)


def merge_patch(stored: Fields, desired: Fields) -> Object:
    """The JSON merge patch (RFC 7386) that turns `stored` into `desired`; empty when they are equal."""
    patch: Object = {}
    for name in {**stored, **desired}:
        old, new = stored.get(name), desired.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := merge_patch(old, new):
                patch[name] = inner
        elif _differ(old, new):
            patch[name] = new
    return patch
