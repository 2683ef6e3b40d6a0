"""A change of every single decoded field of a status, derived from the types so that none is missing.

A field gets another value of its type. In a list, the fields of the first entry are changed.
"""

from collections.abc import Iterator
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from kube_runtime.types.meta import Object, Struct

OTHER_TIME = "2026-01-01T00:00:07Z"


def changes(type_: type[Struct], base: Object) -> Iterator[tuple[str, Object]]:
    """The path of each field of that type, and the merge patch that changes it in `base`.

    Raises:
        KeyError: `base` lacks a list or an object, so that the fields in it cannot be changed.
    """
    for field in msgspec.structs.fields(type_):
        name = field.encode_name
        for path, value in _others(field.type, base.get(name), name):
            yield f"{name}{path}", {name: value}


def _others(type_: Any, value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Other values for a field, each with the path of the difference."""
    inner = _without_none(type_)
    if get_origin(inner) is tuple:
        (item, *_) = get_args(inner)
        if not value:
            raise KeyError(name)
        for path, other in changes(item, value[0]):
            yield f"[0].{path}", [{**value[0], **other}, *value[1:]]
    elif isinstance(inner, type) and issubclass(inner, Struct):
        if value is None:
            raise KeyError(name)
        for path, other in changes(inner, value):
            yield f".{path}", {**value, **other}
    else:
        yield "", _another(inner, value, name)


def _without_none(type_: Any) -> Any:
    """The type of values other than None."""
    if get_origin(type_) in (Union, UnionType):
        return next(part for part in get_args(type_) if part is not type(None))
    return type_


def _another(type_: Any, value: Any, name: str) -> Any:
    if type_ is bool:
        return not value
    if type_ is int:
        return (value or 0) + 1
    return OTHER_TIME if name.endswith(("Time", "At")) else f"another {name}"
