"""The events of a watch."""

from dataclasses import dataclass
from typing import Generic, TypeAlias

from kube_runtime.errors import DecodeError
from kube_runtime.kind import Key
from kube_runtime.types.meta import R


@dataclass(frozen=True, slots=True)
class Started:
    """A list begins, and ends with `Synced`. An earlier unfinished list is void."""


@dataclass(frozen=True, slots=True)
class Present(Generic[R]):
    """An object of the list. If it comes several times, the last state counts."""

    resource: R


@dataclass(frozen=True, slots=True)
class Synced:
    """The list is complete: objects that are not in it do not exist."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[R]):
    """An object was created or changed."""

    resource: R


@dataclass(frozen=True, slots=True)
class Removed:
    """An object is gone, or no longer selected; within a list, it is no longer part of it."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class Broken:
    """An object does not fit its type. The others are not affected."""

    error: DecodeError


Event: TypeAlias = Started | Present[R] | Synced | Changed[R] | Removed | Broken
