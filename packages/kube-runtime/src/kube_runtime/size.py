"""The size of an object without what the API server and controllers add to it."""

from typing import Final

import msgspec
from msgspec import Raw

from kube_runtime.kind import Key
from kube_runtime.types.meta import Struct

UNLIMITED: Final = 0


class _Added(Struct, frozen=True):
    """The part of the metadata that names the object, and the one that users do not write by hand."""

    name: str = ""
    namespace: str = ""
    managed_fields: Raw = Raw(b"")


class _Frame(Struct, frozen=True):
    metadata: _Added = _Added()
    status: Raw = Raw(b"")


_FRAME = msgspec.json.Decoder(_Frame)


def bytes_over(text: bytes | Raw, most: int) -> int:
    """The size of an object of more than `most` bytes, as compact JSON; 0 if it has fewer.

    Its status and `metadata.managedFields` do not count. `UNLIMITED` as `most` takes every object.

    Raises:
        msgspec.DecodeError: it is not an object. Only a large one is read.
    """
    size = memoryview(text).nbytes
    if most == UNLIMITED or size <= most:
        return 0
    frame = _FRAME.decode(text)
    for added in (frame.metadata.managed_fields, frame.status):
        size -= memoryview(added).nbytes
    return size if size > most else 0


def key_in(text: bytes | Raw) -> Key:
    """The key of an object that is too large to be read as a whole."""
    metadata = _FRAME.decode(text).metadata
    return Key(metadata.namespace, metadata.name)


def too_large(size: int, most: int) -> str:
    """The message for an object of that size, in bytes."""
    return f"the object has {size} bytes (limit {most})"
