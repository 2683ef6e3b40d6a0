"""Write a status, and suppress writes that would change nothing, were refused, or are kept reverted."""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
import structlog

from kube_runtime.apply.drift import has_no_drift
from kube_runtime.apply.result import Blocked, Obstructed, rejected
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import NotFound, Refused, ServerFailure
from kube_runtime.times import FORGOTTEN_SECONDS, Since, WriteActivity, loop_time, rfc3339
from kube_runtime.types.meta import (
    Condition,
    Fields,
    Key,
    Kind,
    Object,
    R,
    Resource,
    Status,
    content,
    content_of,
    fingerprint_of,
    plain,
    status_of,
)

_log = structlog.get_logger()

_AWAITED_FIELDS = ("observed_generation", "state")
"""Fields that programs wait for, besides conditions."""

SETTLE_SECONDS = 1.0
"""How long the first status of a new spec may wait for the final one."""

BUSY_SECONDS = 3.0
"""The same in busy times. Of a hundred graphs that are created at once, most are ready that long after the
first of their three services."""


# Compute the desired status from the stored one, `msgspec.structs.replace(live.status, state=...)`,
# to keep the other fields. A field that has its default is removed.
#
# A transition time is the moment when a condition's status flipped: the stored one is kept unless
# the status changed.
async def patch_status(
    writer: Writer, resource: R, desired: Status, *, limit: "StatusRateLimit | None" = None
) -> R:
    """Write this status and return the resource with it; no request when the stored status is equal.

    The conditions of `desired` need no transition times; stored ones of other types stay. `limit` records
    a successful write.

    Raises:
        Conflict: the object changed meanwhile; the caller retries at once.
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
        patch = difference(resource, desired)
        if not patch:
            self._progress.pop(uid, None)
            return 0.0
        stored = {(old.type, old.status) for old in status_of(resource).conditions}
        flipped = {new.type for new in desired.conditions if (new.type, new.status) not in stored}
        is_never_delayed = not (patch.keys() | flipped).isdisjoint(self.never_delayed)
        if is_never_delayed or not self._may_wait_for_goal(resource, desired):
            self._settling.pop(uid, None)
        elif left := self._settling.left_of_wait(uid, BUSY_SECONDS if is_busy else SETTLE_SECONDS):
            return left
        if is_never_delayed or self._is_transition(resource, desired):
            return 0.0
        busy_wait = self._progress.left_of_wait(uid, BUSY_SECONDS) if is_busy else 0.0
        return max(self._written.left(uid, self.seconds), busy_wait)

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


def difference(resource: Resource, desired: Status) -> Object:
    """The merge patch from the stored status to the desired one; empty when they are equal.

    Raises:
        TypeError: the kind has no status with conditions.
    """
    stored = status_of(resource)
    conditions = with_transition_times(desired.conditions, stored.conditions, now=rfc3339())
    desired = msgspec.structs.replace(desired, conditions=conditions)
    if desired == stored:
        return {}
    # Without fields that have their default, but with all fields of conditions.
    old, new = (
        {**msgspec.to_builtins(status), "conditions": plain(status.conditions)}
        for status in (stored, desired)
    )
    return merge_patch(old, new)


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


_EMPTY: Final[tuple[object, ...]] = (None, {}, [])


def merge_patch(stored: Fields, desired: Fields) -> Object:
    """The JSON merge patch (RFC 7386) that turns `stored` into `desired`; empty when they are equal."""
    patch: Object = {}
    for name in {**stored, **desired}:
        old, new = stored.get(name), desired.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := merge_patch(old, new):
                patch[name] = inner
        elif old != new and not (old in _EMPTY and new in _EMPTY):
            patch[name] = new
    return patch


V = TypeVar("V")

REFUSED_SECONDS = 110.0
"""How long a refusal counts: a little less than controllers wait before they retry."""

PASSING_SECONDS = 1.0
"""A failure of the API server that is shorter is retried and not reported."""

CONTEST_SECONDS = 60.0
CONTEST_WRITES = 5
"""So many equal writes to one object within `CONTEST_SECONDS`: another client reverts them."""

REMEMBERED = 4096
SETTLED_REMEMBERED = 32_768
"""Number of settled objects to remember."""


# An annotation of the live object records a hash of the desired one. An apply is due when the hash
# differs (the desired state changed) or when the live object no longer contains the desired state
# (drift).
#
# What is remembered is in memory only. A restart forgets it, which costs time and a request, and
# changes no result.
class Recent(Generic[V]):
    """An LRU cache: the values by key that were put or read last."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._values: OrderedDict[object, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: object) -> V | None:
        """The value of that key, if it is still in the cache."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: object, value: V) -> None:
        """Add or replace a value; drops the least recently used one when the cache is full."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._limit:
            self._values.popitem(last=False)

    def forget(self, key: object) -> None:
        """Remove the value of that key."""
        self._values.pop(key, None)


@dataclass(frozen=True, slots=True)
class SettledObjects:
    """Objects that need no write. `hash_annotation` is the annotation with the hash of the desired object."""

    hash_annotation: str
    # For objects that a webhook changes, so that they never contain the desired state: by uid, the hash that
    # was applied and the content that the API server returned. Empty in most clusters.
    _accepted: Recent[tuple[str, bytes]] = field(default_factory=Recent[tuple[str, bytes]])
    # By uid, the fingerprint of the last settled state. Most reconciles find it again, because only a status
    # has changed; comparing the contents costs a hundred times as much.
    _fingerprints: Recent[bytes] = field(default_factory=partial(Recent[bytes], SETTLED_REMEMBERED))

    def contains(self, live: Resource, body: Object, digest: str) -> bool:
        """Whether an apply of `body`, whose hash is `digest`, would not change the live object."""
        if live.metadata.annotations.get(self.hash_annotation) != digest:
            return False
        # The digest is in the fingerprint too: it is an annotation of the live object.
        uid, fingerprint = live.metadata.uid, fingerprint_of(live)
        if self._fingerprints.get(uid) == fingerprint:
            return True
        live_content = content_of(live)
        if not has_no_drift(content(body), live_content) and self._accepted.get(uid) != (
            digest,
            msgspec.json.encode(live_content),
        ):
            return False
        self._fingerprints.put(uid, fingerprint)
        return True

    def accept(self, applied: Resource, body: Object, digest: str) -> None:
        """Record the answer to an apply. It counts as settled, even if it lacks some of the desired state."""
        applied_content = content_of(applied)
        if not has_no_drift(content(body), applied_content):
            self._accepted.put(applied.metadata.uid, (digest, msgspec.json.encode(applied_content)))

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._accepted.forget(uid)
        self._fingerprints.forget(uid)


class Target(NamedTuple):
    """A desired object and its owner."""

    owner_uid: str
    kind: str
    key: Key


class _Refusal(NamedTuple):
    digest: str
    live_uid: str
    blocked: Blocked
    until: float


class _Writes(NamedTuple):
    digest: str
    times: int
    since: float


@dataclass(slots=True)
class WriteSuppression:
    """Remembers refused and contested writes."""

    _refusals: Recent[_Refusal] = field(default_factory=Recent[_Refusal])
    _writes: Recent[_Writes] = field(default_factory=Recent[_Writes])

    @contextmanager
    def suppressing_repeats(self, target: Target, digest: str, live_uid: str) -> Iterator[None]:
        """Run the write in the block unless the same one was just refused, and remember a refusal.

        Raises:
            Obstructed: refused now or within `REFUSED_SECONDS`.
        """
        refusal = self._refusals.get(target)
        is_same = refusal is not None and (refusal.digest, refusal.live_uid) == (digest, live_uid)
        if refusal is not None and is_same and loop_time() < refusal.until:
            raise Obstructed(refusal.blocked)
        try:
            yield
        except NotFound:
            raise  # what is missing may exist in a moment
        except Refused as error:
            blocked = rejected(target.kind, target.key.name, error)
            self._refusals.put(target, _Refusal(digest, live_uid, blocked, loop_time() + REFUSED_SECONDS))
            raise Obstructed(blocked) from error

    def refusal(self, target: Target) -> Blocked | None:
        """The refusal of any write of that object within `REFUSED_SECONDS`; None if there is none."""
        refusal = self._refusals.get(target)
        is_recent = refusal is not None and loop_time() < refusal.until
        return refusal.blocked if refusal is not None and is_recent else None

    def remember(self, target: Target, blocked: Blocked | None) -> None:
        """Record for `refusal`, until the next call, how a write ended that nothing suppresses."""
        if blocked is None:
            self._refusals.forget(target)
        else:
            self._refusals.put(target, _Refusal("", "", blocked, math.inf))

    def forget(self, uid: str) -> None:
        """Forget the writes of an object that is gone."""
        self._writes.forget(uid)

    def is_contested(self, object_: str, digest: str) -> bool:
        """Whether another client keeps reverting this write. If not, counts the write.

        `object_` is the uid of the object, or its name where each write creates another uid.
        """
        writes, now = self._writes.get(object_), loop_time()
        if writes is None or writes.digest != digest or now - writes.since > CONTEST_SECONDS:
            writes = _Writes(digest, 0, now)
        if writes.times >= CONTEST_WRITES:
            return True
        self._writes.put(object_, writes._replace(times=writes.times + 1))
        return False


def digest_of(desired: Object) -> str:
    """A hash of the desired object; the order of its lists counts."""
    return hashlib.sha256(msgspec.json.encode(desired, order="deterministic")).hexdigest()


class LastingFailures:
    """Since when the API server has failed at an object, by uid of its owner.

    A failure that the next attempt does not meet changes no status: most end before a user could read it.
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[Kind | None, Key | None, float]] = {}

    def forget(self, uid: str) -> None:
        """Forget an owner that is gone."""
        self._since.pop(uid, None)

    def ensure_lasting(self, uid: str, failure: ServerFailure | None) -> None:
        """Raise a failure unless it was the same object for `PASSING_SECONDS`.

        A timeout lasts: it took the whole time that a webhook has.
        """
        if failure is None:
            self._since.pop(uid, None)
            return
        if failure.code == HTTPStatus.GATEWAY_TIMEOUT:
            return
        *failed_at, since = self._since.get(uid, (None, None, 0.0))
        if failed_at != [failure.kind, failure.key]:
            since = loop_time()
            self._since[uid] = (failure.kind, failure.key, since)
        if loop_time() - since < PASSING_SECONDS:
            raise failure
