"""Filter watch events caused by a reconcile's own writes.

Another client's change may hide behind our own: the state after our write would contain it too. So only a
write that named the version it was made on counts. A change before it made it fail, and a change after it
makes another version.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Resource

_State: TypeAlias = tuple[type[Resource], Key, str, str | None]


class SelfWrites:
    """The states that were written in one reconcile."""

    def __init__(self) -> None:
        self._written: set[_State] = set()
        self.is_silent = True
        """Whether nothing at all was written."""

    def add(self, state: Resource) -> None:
        """Take note of a state that is exactly what we knew and what we wrote."""
        self._written.add(_state(state))

    def has(self, state: Resource | None) -> bool:
        """Whether this state is one of them."""
        return state is not None and _state(state) in self._written


def _state(found: Resource) -> _State:
    """The version, and what the store shows in front of it when we have deleted the object."""
    metadata = found.metadata
    return type(found), found.key, metadata.resource_version, metadata.deletion_timestamp


_current: ContextVar[SelfWrites | None] = ContextVar("_current", default=None)


@contextmanager
def recording_self_writes() -> Iterator[SelfWrites]:
    """Collect what is written inside the block."""
    found = SelfWrites()
    token = _current.set(found)
    try:
        yield found
    finally:
        _current.reset(token)


def record_event() -> None:
    """Take note that something is written, of whatever object; whether it is accepted does not matter."""
    if collected := _current.get():
        collected.is_silent = False


def record_patch(patch: Object, answer: Resource) -> None:
    """Take note of the answer to a patch, if nothing but the patch can have made that state."""
    collected, made_on = _current.get(), patch.get("metadata", {}).get("resourceVersion")
    if collected is not None and made_on and made_on != answer.metadata.resource_version:
        collected.add(answer)
