"""Keeps us from asking for the same thing again and again.

Two things make a write pointless: the API server has just refused it, or another client reverts it each
time. Both are remembered for a while, in memory only: forgetting them, as a restart does, costs a request.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import msgspec

from kube_runtime.apply.result import Blocked, Obstructed, rejected
from kube_runtime.clock import loop_time
from kube_runtime.errors import Forbidden, Invalid
from kube_runtime.kind import Key, Object

V = TypeVar("V")

REFUSED_SECONDS = 110.0
"""How long a refusal counts. A little less than the controllers wait before they look again."""

CONTEST_SECONDS = 60.0
CONTEST_WRITES = 5
"""So many equal writes to one object within `CONTEST_SECONDS` are a contest with another client."""

REMEMBERED = 4096


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
    def attempting(self, wish: Target, digest: str, live_uid: str) -> Iterator[None]:
        """Around a write: a refusal is remembered, and one that still counts ends it at once.

        Raises:
            Obstructed: refused, now or a moment ago, in the same words.
        """
        known = self._refusals.get(wish)
        is_same = known is not None and (known.digest, known.live_uid) == (digest, live_uid)
        if known is not None and is_same and loop_time() < known.until:
            raise Obstructed(known.blocked)
        try:
            yield
        except (Invalid, Forbidden) as error:
            blocked = rejected(wish.kind, wish.key.name, error)
            self._refusals.put(
                wish, _Refusal(digest, live_uid, blocked, loop_time() + REFUSED_SECONDS)
            )
            raise Obstructed(blocked) from error

    def is_refused(self, target: Target) -> bool:
        """Whether a write of that object was refused a moment ago, whatever it said."""
        known = self._refusals.get(target)
        return known is not None and loop_time() < known.until

    def forget(self, uid: str) -> None:
        """Remember no writes of an object that is gone."""
        self._writes.forget(uid)

    def is_contested(self, object_: str, digest: str) -> bool:
        """Whether another client has reverted exactly this write to the object too often of late.

        `object_` is its uid, or its name where each write makes another uid.
        """
        known = self._writes.get(object_)
        if known is None or known.digest != digest or loop_time() - known.since > CONTEST_SECONDS:
            return False
        return known.times >= CONTEST_WRITES

    def note_write(self, object_: str, digest: str) -> None:
        """Take note of one write to the object."""
        known, now = self._writes.get(object_), loop_time()
        if known is None or known.digest != digest or now - known.since > CONTEST_SECONDS:
            known = _Writes(digest, 0, now)
        self._writes.put(object_, known._replace(times=known.times + 1))


def digest_of(wanted: Object) -> str:
    """A hash of everything that is wanted, in the order in which it is rendered."""
    return hashlib.sha256(msgspec.json.encode(wanted, order="deterministic")).hexdigest()
