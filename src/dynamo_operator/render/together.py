"""Objects that are rendered when they are read: a component may have a thousand that are almost the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from dynamo_operator.kube.kind import Object


@dataclass(frozen=True, slots=True)
class Together(Sequence[Object]):
    """The objects of all parts, one after the other. Each is rendered anew whenever it is read."""

    parts: tuple[Sequence[Object], ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, index: int) -> Object: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Object, ...]: ...

    def __getitem__(self, index: int | slice) -> Object | tuple[Object, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        left = index + len(self) if index < 0 else index
        for part in self.parts:
            if 0 <= left < len(part):
                return part[left]
            left -= len(part)
        raise IndexError(index)
