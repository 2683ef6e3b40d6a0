"""Canonical JSON of rendered objects, and sequences that render their objects when they are read."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import msgspec

from kube_runtime.kind import Object

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(Object)


def canonical(desired: Object) -> Object:
    """Return a deep copy with the keys of every map sorted.

    Encoding and decoding JSON is ten times as fast as sorting map by map.
    """
    return _DECODER.decode(_ENCODER.encode(desired))


class OnDemand(Sequence[Object]):
    """A sequence that renders an object whenever it is read, so that thousands do not stay in memory."""

    __slots__ = ()

    @abstractmethod
    def _rendered(self, index: int) -> Object:
        """Render the object at an index from 0 to below the length."""

    @overload
    def __getitem__(self, index: int) -> Object: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Object, ...]: ...

    def __getitem__(self, index: int | slice) -> Object | tuple[Object, ...]:
        if isinstance(index, slice):
            return tuple(self._rendered(number) for number in range(*index.indices(len(self))))
        length = len(self)
        if not -length <= index < length:
            raise IndexError(index)
        return self._rendered(index % length)


@dataclass(frozen=True, slots=True)
class Concatenated(OnDemand):
    """The objects of all parts, one after the other."""

    parts: tuple[Sequence[Object], ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def _rendered(self, index: int) -> Object:
        for part in self.parts:
            if index < len(part):
                return part[index]
            index -= len(part)
        raise IndexError(index)
