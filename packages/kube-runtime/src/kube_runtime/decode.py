"""Decode JSON of the API server into structs, unless it is too large.

`msgspec.Raw` is a view: one field of one object would keep the bytes of a whole page of the list in memory.
So every Raw inside a decoded object is replaced by its own copy.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import msgspec
from msgspec import Raw, inspect, structs

from kube_runtime.errors import DecodeError, TooLarge
from kube_runtime.kind import Key, Kind
from kube_runtime.types.meta import R, Struct

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for foreign JSON: not of its type, not UTF-8, nested too deeply."""

UNLIMITED: Final = 0


def decode(type_: type[R], raw: bytes | Raw, most_bytes: int = UNLIMITED) -> R:
    """One object of that type, holding on to nothing of `raw`.

    Raises:
        TooLarge: it has more than `most_bytes`.
        DecodeError: the JSON does not fit the type.
    """
    try:
        if size := bytes_over(raw, most_bytes):
            raise TooLarge(type_.KIND, _key(raw), too_large(size, most_bytes))
        resource: R = _decoder(type_).decode(raw)
        _detach(resource)
    except UNREADABLE as error:
        raise DecodeError(type_.KIND, _key(raw), str(error)) from error
    return resource


def decode_items(
    type_: type[R], items: list[Raw], most_bytes: int = UNLIMITED
) -> tuple[list[R], list[DecodeError]]:
    """The objects of a list, and an error for each one that does not fit its type or is too large."""
    good: list[R] = []
    broken: list[DecodeError] = []
    for item in items:
        try:
            good.append(decode(type_, item, most_bytes))
        except DecodeError as error:
            broken.append(error)
    return good, broken


class ListMetadata(Struct, frozen=True):
    """Metadata of a list. An empty `continue_` is the last page."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class ObjectList(Struct, frozen=True):
    """One page of a list, its items still JSON text."""

    metadata: ListMetadata = ListMetadata()
    items: list[Raw] | None = None  # Go writes an empty slice as null


def decode_list(kind: Kind, raw: bytes) -> ObjectList:
    """The frame of a list; its items are views into `raw`.

    An item may be nested more deeply than msgspec can skip. It is still found, so that it fails alone when it
    is decoded, and not the list of all.

    Raises:
        DecodeError: this is not a list at all.
    """
    try:
        try:
            return _LIST.decode(raw)
        except RecursionError:
            spans = tuple(_item_spans(raw))
        outside = b"".join(_between(raw, spans))
        items = [Raw(raw[start:end]) for start, end in spans]
        return structs.replace(_LIST.decode(outside), items=items)
    except UNREADABLE as error:
        raise DecodeError(kind, None, f"list: {error}") from error


_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
"""A string or a bracket of JSON. Possessive, so that it is linear for any text."""


def _item_spans(raw: bytes) -> Iterator[tuple[int, int]]:
    """Where the members of the array `items` of a JSON object start and end. Linear, at any depth."""
    depth = start = 0
    name = b""
    for token in _TOKEN.finditer(raw):
        text = token.group()
        if text in b"[{":
            depth += 1
            if depth == _ITEM_DEPTH:
                start = token.start()
        elif text in b"]}":
            if depth == _ITEM_DEPTH and name == b'"items"':
                yield start, token.end()
            depth -= 1
        elif depth == 1:
            name = text  # at the end of a text value this is not a name, and no bracket follows it


_ITEM_DEPTH: Final = 3
"""Of a member's own bracket: that of the list is the first, that of `items` the second."""


def _between(raw: bytes, spans: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """The text outside of the spans, with `null` in the place of each."""
    end = 0
    for start, following in spans:
        yield raw[end:start]
        yield b"null"
        end = following
    yield raw[end:]


class ObjectIdentity(Struct, frozen=True):
    """What every object has, whatever else may be wrong with it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    managed_fields: Raw = Raw(b"")


class _Frame(Struct, frozen=True):
    metadata: ObjectIdentity = ObjectIdentity()
    status: Raw = Raw(b"")


_LIST = msgspec.json.Decoder(ObjectList)
_FRAME = msgspec.json.Decoder(_Frame)


@cache
def _decoder(type_: type[R]) -> msgspec.json.Decoder[R]:
    return msgspec.json.Decoder(type_)


def identity(raw: bytes | Raw) -> ObjectIdentity:
    """What identifies an object; empty if that cannot be read."""
    try:
        return _FRAME.decode(raw).metadata
    except UNREADABLE:
        return ObjectIdentity()


def _key(raw: bytes | Raw) -> Key | None:
    metadata = identity(raw)
    return Key(metadata.namespace, metadata.name) if metadata.name else None


def bytes_over(text: bytes | Raw, most: int) -> int:
    """The size of an object of more than `most` bytes, as compact JSON; 0 if it has fewer.

    Its status and `metadata.managedFields`, which users do not write by hand, do not count. `UNLIMITED` as
    `most` takes every object.

    Raises:
        msgspec.DecodeError: it is not an object. Only a large one is read.
    """
    size = memoryview(text).nbytes
    if most == UNLIMITED or size <= most:
        return 0
    frame = _FRAME.decode(text)
    size -= memoryview(frame.metadata.managed_fields).nbytes + memoryview(frame.status).nbytes
    return size if size > most else 0


def too_large(size: int, most: int) -> str:
    """The message for an object of that size, in bytes."""
    return f"the object has {size} bytes (limit {most})"


def _detach(value: object) -> object:
    """The same value, with every Raw in it owning its bytes."""
    match value:
        case Raw():
            return value.copy()
        case msgspec.Struct():
            for name in _fields_with_raw(type(value)):
                # No other code has seen this object yet, so a frozen struct may still be completed.
                structs.force_setattr(value, name, _detach(getattr(value, name)))
            return value
        case dict():
            return {key: _detach(member) for key, member in value.items()}
        case tuple():
            return tuple(_detach(item) for item in value)
        case list():
            return [_detach(item) for item in value]
    return value


@cache
def _fields_with_raw(type_: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in structs.fields(type_)
        if _mentions_raw(inspect.type_info(field.type), {type_})
    )


def _mentions_raw(info: inspect.Type, seen: set[type]) -> bool:
    if isinstance(info, inspect.RawType):
        return True
    inner: Iterable[inspect.Type] = ()
    match info:
        case inspect.StructType(cls=cls) if cls not in seen:  # a type may contain itself
            seen = seen | {cls}
            inner = (field.type for field in info.fields)
        case inspect.DictType(value_type=item_type):
            inner = (item_type,)
        case inspect.VarTupleType(item_type=item_type) | inspect.ListType(item_type=item_type):
            inner = (item_type,)
        case inspect.TupleType(item_types=types) | inspect.UnionType(types=types):
            inner = types
    return any(_mentions_raw(nested, seen) for nested in inner)
