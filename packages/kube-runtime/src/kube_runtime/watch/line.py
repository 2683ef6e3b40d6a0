"""Metadata of a watch line, also of one whose object does not decode."""

import msgspec

from kube_runtime.client.requests import WatchLine
from kube_runtime.decode import UNREADABLE
from kube_runtime.types.meta import Struct

END_OF_LIST = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends a streamed list (KEP-3157)."""


class ObjectIdentity(Struct, frozen=True):
    """What every object has, whatever else may be wrong with it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Frame(Struct, frozen=True):
    metadata: ObjectIdentity = ObjectIdentity()


class _Marks(Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Bookmark(Struct, frozen=True):
    metadata: _Marks = _Marks()


_FRAME = msgspec.json.Decoder(_Frame)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)


def identity(line: WatchLine) -> ObjectIdentity:
    """Whose line it is; empty if that cannot be read."""
    try:
        return _FRAME.decode(line.object).metadata
    except UNREADABLE:
        return ObjectIdentity()


def ends_list(line: WatchLine) -> bool:
    """Whether the line is the bookmark that ends a streamed list."""
    if line.type != "BOOKMARK":
        return False
    try:
        marks = _BOOKMARK.decode(line.object).metadata.annotations
    except UNREADABLE:
        return False
    return END_OF_LIST in marks
