"""A kind that is stored in another version than that of our type, and is the same in both."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Raw

from kube_runtime.types.meta import Kind, Object, Resource


@dataclass
class SameInBoth:
    """The translation of such a kind."""

    stored: Kind
    reads: int = 0
    """How many objects were translated."""

    def read(self, raw: bytes | Raw) -> bytes | Raw:
        self.reads += 1
        return raw

    def written(self, body: Object) -> Object:
        return body

    def patch(self, patch: Object) -> Object:
        return patch

    def pointer(self, live: Resource, path: Sequence[str]) -> tuple[str, list[Object]]:
        raise NotImplementedError
