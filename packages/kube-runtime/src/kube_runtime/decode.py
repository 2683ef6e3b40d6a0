"""Decode JSON of the API server into structs.

`msgspec.Raw` is a view: one field of one object would keep the bytes of a whole page of the list in memory.
So every Raw inside a decoded object is replaced by its own copy.
"""

from collections.abc import Iterable
from functools import cache

import msgspec
from msgspec import Raw, inspect, structs

from kube_runtime.errors import DecodeError, TooLarge
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.size import UNLIMITED, bytes_over, key_in, too_large
from kube_runtime.types.meta import R, Struct

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for foreign JSON: not of its type, not UTF-8, nested too deeply."""


def decode(type_: type[R], raw: bytes | Raw, most_bytes: int = UNLIMITED) -> R:
    """One object of that type, holding on to nothing of `raw`.

    Raises:
        TooLarge: it has more than `most_bytes`.
        DecodeError: the JSON does not fit the type.
    """
    try:
        if size := bytes_over(raw, most_bytes):
            raise TooLarge(type_.KIND, key_in(raw), too_large(size, most_bytes))
        resource: R = _decoder(type_).decode(raw)
        _detach(resource)
    except UNREADABLE as error:
        raise DecodeError(type_.KIND, _key_of_broken(raw), str(error)) from error
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

    Raises:
        DecodeError: this is not a list at all.
    """
    try:
        return _LIST.decode(raw)
    except UNREADABLE as error:
        raise DecodeError(kind, None, f"list: {error}") from error


class _Broken(Struct, frozen=True):
    """The fields that identify an object which does not fit its type."""

    metadata: Object = {}


_LIST = msgspec.json.Decoder(ObjectList)
_BROKEN = msgspec.json.Decoder(_Broken)


@cache
def _decoder(type_: type[R]) -> msgspec.json.Decoder[R]:
    return msgspec.json.Decoder(type_)


def _key_of_broken(raw: bytes | Raw) -> Key | None:
    try:
        metadata = _BROKEN.decode(raw).metadata
    except UNREADABLE:
        return None  # not even JSON, or too deep
    name = metadata.get("name")
    return Key(str(metadata.get("namespace") or ""), str(name)) if name else None


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
            return {key: _detach(each) for key, each in value.items()}
        case tuple():
            return tuple(_detach(each) for each in value)
        case list():
            return [_detach(each) for each in value]
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
        case inspect.DictType(value_type=each):
            inner = (each,)
        case inspect.VarTupleType(item_type=each) | inspect.ListType(item_type=each):
            inner = (each,)
        case inspect.TupleType(item_types=types) | inspect.UnionType(types=types):
            inner = types
    return any(_mentions_raw(each, seen) for each in inner)
