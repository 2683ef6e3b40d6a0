"""Events of the watch of a kind, in their order."""

from dataclasses import dataclass
from typing import Generic, TypeAlias

from kube_runtime.errors import DecodeError
from kube_runtime.kind import Key
from kube_runtime.types.meta import R


@dataclass(frozen=True, slots=True)
class Started:
    """A list begins; everything up to `Synced` is part of it. An unfinished earlier list is void."""


@dataclass(frozen=True, slots=True)
class Present(Generic[R]):
    """An object of the list. Of several states of it the last counts."""

    resource: R


@dataclass(frozen=True, slots=True)
class Synced:
    """The list is complete: what it did not bring does not exist."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[R]):
    """An object was created or changed."""

    resource: R


@dataclass(frozen=True, slots=True)
class Removed:
    """The object of this key and uid is gone, or no longer selected. Within a list: it is not part of it."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class Broken:
    """An object exists and does not fit its type. The others are not affected."""

    error: DecodeError


Event: TypeAlias = Started | Present[R] | Synced | Changed[R] | Removed | Broken
