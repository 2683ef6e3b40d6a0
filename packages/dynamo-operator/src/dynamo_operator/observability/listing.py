"""The part of the cache that counting needs."""

from collections.abc import Iterator
from typing import Protocol

from kube_runtime.types.meta import R


class Listing(Protocol):
    """Lists the objects that exist."""

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:
        """The objects of a type."""
        ...
