"""Which writes to leave out: what is settled, was refused a moment ago, or another client keeps reverting."""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar

import msgspec

from kube_runtime.apply.drift import has_no_drift
from kube_runtime.apply.result import Blocked, Obstructed, rejected
from kube_runtime.errors import NotFound, Refused, ServerFailure
from kube_runtime.times import loop_time
from kube_runtime.types.meta import (
    Fingerprint,
    Key,
    Kind,
    Object,
    Resource,
    claims_of,
    content,
    content_of,
    fingerprint_of,
)

V = TypeVar("V")

REFUSED_SECONDS = 110.0
"""How long a refusal counts: a little less than controllers wait before they retry."""

PASSING_SECONDS = 1.0
"""A failure of the API server that is shorter is retried and not reported."""

CONTEST_SECONDS = 60.0
CONTEST_WRITES = 5
"""So many equal writes to one object within `CONTEST_SECONDS`: another client reverts them."""

_OPEN_SECONDS = 3 * CONTEST_SECONDS
"""A contest may go on for so long: the next write is not always in time."""

REMEMBERED = 4096
SETTLED_REMEMBERED = 32_768
"""Number of settled objects to remember."""


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


# An annotation of the live object records a hash of the desired one. An apply is due when the hash
# differs (the desired state changed) or when the live object no longer contains the desired state
# (drift).
@dataclass(frozen=True, slots=True)
class SettledObjects:
    """Objects that need no write. `hash_annotation` is the annotation with the hash of the desired object."""

    hash_annotation: str
    # For objects that a webhook changes, so that they never contain the desired state: by uid, the hash that
    # was applied and the content that the API server returned. Empty in most clusters.
    _accepted: Recent[tuple[str, bytes]] = field(default_factory=Recent[tuple[str, bytes]])
    # By uid, the last settled state: the hash that was applied, and a fingerprint. Most reconciles find it
    # again, because only a status has changed; comparing the contents costs a hundred times as much.
    _settled: Recent[tuple[str, Fingerprint]] = field(
        default_factory=partial(Recent[tuple[str, Fingerprint]], SETTLED_REMEMBERED)
    )

    def contains(self, live: Resource, body: Object, digest: str) -> bool:
        """Whether an apply of `body`, whose hash is `digest`, would not change the live object."""
        if live.metadata.annotations.get(self.hash_annotation) != digest:
            return False
        uid, state = live.metadata.uid, fingerprint_of(live)
        settled = self._settled.get(uid)
        if settled == (digest, state):
            return True
        # Often only the metadata has changed: other controllers annotate, as a Deployment with its revision.
        claims = {name: body[name] for name in ("apiVersion", "kind", "metadata")}
        is_rest_settled = settled is not None and (settled[0], settled[1].rest) == (digest, state.rest)
        has_claims = is_rest_settled and has_no_drift(content(claims), claims_of(live))
        if not has_claims and not self.is_as_applied(live, body, digest):
            return False
        self._settled.put(uid, (digest, state))
        return True

    def is_as_applied(self, live: Resource, body: Object, digest: str) -> bool:
        """Whether the live object has the desired state, or what the API server made of it before."""
        live_content = content_of(live)
        return has_no_drift(content(body), live_content) or self._accepted.get(live.metadata.uid) == (
            digest,
            msgspec.json.encode(live_content),
        )

    def accept(self, applied: Resource, body: Object, digest: str) -> None:
        """Record the answer to an apply. It counts as settled, even if it lacks some of the desired state."""
        applied_content = content_of(applied)
        if not has_no_drift(content(body), applied_content):
            self._accepted.put(applied.metadata.uid, (digest, msgspec.json.encode(applied_content)))
        self.created(applied, digest)

    def created(self, applied: Resource, digest: str) -> None:
        """Record the answer to a creation: it is settled until something changes it."""
        self._settled.put(applied.metadata.uid, (digest, fingerprint_of(applied)))

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._accepted.forget(uid)
        self._settled.forget(uid)


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

    def is_contested(self, object_: str, digest: str) -> bool:
        """Whether another client keeps reverting this write: until one lasts for `CONTEST_SECONDS`."""
        return self._recent_writes(object_, digest).times >= CONTEST_WRITES

    def count_write(self, object_: str, digest: str) -> None:
        """Count a write that changed the object: one that failed was not reverted."""
        writes = self._recent_writes(object_, digest)
        self._writes.put(object_, writes._replace(times=writes.times + 1))

    def _recent_writes(self, object_: str, digest: str) -> _Writes:
        now = loop_time()
        writes = self._writes.get(object_) or _Writes(digest, 0, now)
        seconds = now - writes.since if writes.digest == digest else math.inf
        if seconds < CONTEST_SECONDS:
            return writes
        # One write may follow, and if that is reverted, the contest goes on: it does not flap.
        is_open = seconds < _OPEN_SECONDS and writes.times >= CONTEST_WRITES
        return _Writes(digest, CONTEST_WRITES - 1 if is_open else 0, now)


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
