"""Which writes are left out: those that would change nothing, and those that were tried in vain.

A hash of the desired object is kept in an annotation of the live one. An apply is due when the hash differs
(something else is desired) or when the live object no longer contains what is desired (drift). And two things
make a write pointless: the API server has just refused it, or another client reverts it each time.

All of it is remembered in memory only. Without it, as after a restart, the answers are the same: forgetting
costs time, and a request.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import msgspec

from kube_runtime.apply.drift import content, content_of, fingerprint_of, has_no_drift
from kube_runtime.apply.result import Blocked, Obstructed, rejected
from kube_runtime.clock import loop_time
from kube_runtime.errors import Forbidden, Invalid
from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Resource

V = TypeVar("V")

REFUSED_SECONDS = 110.0
"""How long a refusal counts. A little less than the controllers wait before they look again."""

CONTEST_SECONDS = 60.0
CONTEST_WRITES = 5
"""So many equal writes to one object within `CONTEST_SECONDS` are a contest with another client."""

REMEMBERED = 4096
SETTLED_REMEMBERED = 32_768
"""Objects that were found settled; a graph of three services has thirteen."""


class Recent(Generic[V]):
    """So many values by key: those that were put or asked for last.

    What is asked for is in use, however long ago it was put. What is gone from the cluster is asked for
    no more.
    """

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._values: OrderedDict[object, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: object) -> V | None:
        """The value of that key, if it is remembered."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: object, value: V) -> None:
        """Remember a value; the one least in use is forgotten when there are too many."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._limit:
            self._values.popitem(last=False)

    def forget(self, key: object) -> None:
        """Remember nothing of that key."""
        self._values.pop(key, None)


@dataclass(frozen=True, slots=True)
class SettledObjects:
    """What needs no write. `hash_annotation` is the key of the annotation with the hash."""

    hash_annotation: str
    # What our own last apply returned, for objects that the API server changes beyond recognition:
    # by uid, the hash that was applied and the content that came back. Empty in a normal cluster.
    _accepted: Recent[tuple[str, bytes]] = field(default_factory=Recent[tuple[str, bytes]])
    # By uid, the fingerprint of what was last found settled. Most reconciles find the same again, because
    # only a status has changed; to compare the contents costs a hundred times as much.
    _fingerprints: Recent[bytes] = field(default_factory=partial(Recent[bytes], SETTLED_REMEMBERED))

    def contains(self, live: Resource, body: Object, digest: str) -> bool:
        """Whether a live object is what an apply of `body`, whose hash is `digest`, would leave as it is."""
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
        """Take note of the answer to an apply, which counts as what is desired even if it is not."""
        applied_content = content_of(applied)
        if not has_no_drift(content(body), applied_content):
            self._accepted.put(applied.metadata.uid, (digest, msgspec.json.encode(applied_content)))

    def forget(self, uid: str) -> None:
        """Remember nothing of an object that is gone."""
        self._accepted.forget(uid)
        self._fingerprints.forget(uid)


class Target(NamedTuple):
    """Who wants which object."""

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
    """What need not be asked again yet. Times are the event loop's."""

    _refusals: Recent[_Refusal] = field(default_factory=Recent[_Refusal])
    _writes: Recent[_Writes] = field(default_factory=Recent[_Writes])

    @contextmanager
    def attempting(self, target: Target, digest: str, live_uid: str) -> Iterator[None]:
        """Around a write: a refusal is remembered, and one that still counts ends it at once.

        Raises:
            Obstructed: refused, now or a moment ago, in the same words.
        """
        refusal = self._refusals.get(target)
        is_same = refusal is not None and (refusal.digest, refusal.live_uid) == (digest, live_uid)
        if refusal is not None and is_same and loop_time() < refusal.until:
            raise Obstructed(refusal.blocked)
        try:
            yield
        except (Invalid, Forbidden) as error:
            blocked = rejected(target.kind, target.key.name, error)
            self._refusals.put(
                target, _Refusal(digest, live_uid, blocked, loop_time() + REFUSED_SECONDS)
            )
            raise Obstructed(blocked) from error

    def is_refused(self, target: Target) -> bool:
        """Whether a write of that object was refused a moment ago, whatever it said."""
        refusal = self._refusals.get(target)
        return refusal is not None and loop_time() < refusal.until

    def forget(self, uid: str) -> None:
        """Remember no writes of an object that is gone."""
        self._writes.forget(uid)

    def is_contested(self, object_: str, digest: str) -> bool:
        """Whether another client reverts this write again and again; if not, it counts as written now.

        `object_` is its uid, or its name where each write makes another uid.
        """
        writes, now = self._writes.get(object_), loop_time()
        if writes is None or writes.digest != digest or now - writes.since > CONTEST_SECONDS:
            writes = _Writes(digest, 0, now)
        if writes.times >= CONTEST_WRITES:
            return True
        self._writes.put(object_, writes._replace(times=writes.times + 1))
        return False


def digest_of(desired: Object) -> str:
    """A hash of everything that is wanted, in the order in which it is rendered."""
    return hashlib.sha256(msgspec.json.encode(desired, order="deterministic")).hexdigest()
