"""Every field of a status that is decoded, changed alone: derived from the types, so that none is missing.

A field is changed to another value that its type allows. A field of an entry of a list is changed in the
first entry.
"""

from collections.abc import Iterator
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct

OTHER_TIME = "2026-01-01T00:00:07Z"


def changes(type_: type[Struct], base: Object) -> Iterator[tuple[str, Object]]:
    """For each field of that type its path, and the merge patch that changes it in `base`.

    Raises:
        KeyError: `base` lacks a list or an object, so that the fields in it cannot be changed.
    """
    for field in msgspec.structs.fields(type_):
        name = field.encode_name
        for path, value in _others(field.type, base.get(name), name):
            yield f"{name}{path}", {name: value}


def _others(type_: Any, value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Other values for a field, each with the path of what is different in it."""
    chosen = _chosen(type_)
    if get_origin(chosen) is tuple:
        (item, *_) = get_args(chosen)
        if not value:
            raise KeyError(name)
        for path, other in changes(item, value[0]):
            yield f"[0].{path}", [{**value[0], **other}, *value[1:]]
    elif isinstance(chosen, type) and issubclass(chosen, Struct):
        if value is None:
            raise KeyError(name)
        for path, other in changes(chosen, value):
            yield f".{path}", {**value, **other}
    else:
        yield "", _another(chosen, value, name)


def _chosen(type_: Any) -> Any:
    """The type that a value has when it is not None."""
    if get_origin(type_) in (Union, UnionType):
        return next(each for each in get_args(type_) if each is not type(None))
    return type_


def _another(type_: Any, value: Any, name: str) -> Any:
    if type_ is bool:
        return not value
    if type_ is int:
        return (value or 0) + 1
    return OTHER_TIME if name.endswith(("Time", "At")) else f"another {name}"
