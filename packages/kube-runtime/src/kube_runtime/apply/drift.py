"""Whether a live object still contains what we applied.

The API server fills in defaults, other managers add fields of their own, and both keep what we wrote. So
the question is not "equal" but "contained": every value that we want is there. Some values others must not
extend: a Service's selector, a Role's rules and the like are one value each, in which an addition is a
change. There, only what the API server itself fills in may be added to ours.
"""

import hashlib
from collections.abc import Collection
from functools import cache
from typing import Any

import msgspec

from kube_runtime.apply.merge_schema import FieldSchema, field_of, identity, is_left_out_when_zero
from kube_runtime.kind import Object
from kube_runtime.quantity import is_same_amount
from kube_runtime.types.meta import Resource


def has_no_drift(wanted: Object, live: Object) -> bool:
    """Whether `live` still says all of `wanted`; both as `content` and `content_of` give them."""
    return _holds(wanted, live, field_of(wanted), is_whole=False)


def _holds(wanted: object, live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    """Whether a value still says what is wanted. `is_whole` means: it is part of one that is one value."""
    is_whole = is_whole or field.is_whole
    if isinstance(wanted, dict):
        return _map_holds(wanted, live, field, is_whole=is_whole)
    if isinstance(wanted, list | tuple):
        return _list_holds(list(wanted), live, field, is_whole=is_whole)
    if wanted == live and type(wanted) is type(live):
        return True
    if live is None:
        return (
            not wanted and not field.is_known
        )  # custom resources; see `_means_nothing` for others
    return field.is_quantity and is_same_amount(wanted, live)


def _map_holds(wanted: Object, live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    if not isinstance(live, dict):
        return not wanted and not live
    if is_whole and not all(
        name in wanted or value in (None, {}, [], field.default(name))
        for name, value in live.items()
    ):
        return False
    for name, value in wanted.items():
        theirs = live.get(name)
        if type(value) is str and value == theirs:
            continue  # most values are texts, and looking up what they are costs more than comparing them
        if theirs is None and field.is_known:
            if not _means_nothing(name, value):
                return False
        elif not _holds(value, theirs, field.child(name), is_whole=is_whole):
            return False
    return True


def _list_holds(wanted: list[Any], live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    if not isinstance(live, list):
        return not wanted and not live
    items, keys = field.items, field.keys
    if not keys or is_whole or not all(isinstance(item, dict) for item in (*wanted, *live)):
        pairs = zip(wanted, live, strict=False)
        return len(wanted) == len(live) and all(
            _holds(ours, theirs, items, is_whole=is_whole) for ours, theirs in pairs
        )
    by_identity = {identity(item, keys): item for item in live}
    ours = [identity(item, keys) for item in wanted]
    known = set(ours)
    order = [each for each in by_identity if each in known]
    is_whole = items.is_whole
    return order == ours and all(
        _map_holds(item, by_identity[each], items, is_whole=is_whole)
        for item, each in zip(wanted, ours, strict=True)
    )


def _means_nothing(name: str, value: object) -> bool:
    """Whether the API server leaves a field out that is applied with this value.

    Not every zero: `false` for a field that is true when it is absent must be there.
    """
    return value in (None, {}, []) or (not value and is_left_out_when_zero(name))


def content(body: Object) -> Object:
    """Everything that an object to be applied sets, but for what names and guards it."""
    return {**body, "metadata": _claims(body["metadata"])}


def content_of(live: Resource) -> Object:
    """A live object as plain JSON, without its status and without what the API server counts."""
    body: Object = _plain(live)
    body.pop("status", None)
    kind = {"apiVersion": live.KIND.api_version, "kind": live.KIND.name}
    return {**body, **kind, "metadata": _claims(body.get("metadata", {}))}


def differ_in_size_only(before: Resource, after: Resource, *, but_for: Collection[str]) -> bool:
    """Whether two states of an object differ in `spec.replicas`, and in nothing else.

    Of the annotations `but_for` it does not matter whether they differ.
    """
    old, new = content_of(before), content_of(after)
    sizes = [each.get("spec", {}).pop("replicas", None) for each in (old, new)]
    for each in (old, new):
        each["metadata"] = {**each["metadata"]}
        each["metadata"]["annotations"] = {
            name: value
            for name, value in each["metadata"].get("annotations", {}).items()
            if name not in but_for
        }
    return sizes[0] != sizes[1] and old == new


def fingerprint_of(live: Resource) -> bytes:
    """A hash of all that `content_of` gives: the same for two states that differ in nothing of it."""
    found = live.metadata
    claims = (found.labels, found.annotations, found.owner_references)
    rest = [getattr(live, name) for name in _content_fields(type(live))]
    return hashlib.blake2b(msgspec.json.encode((claims, rest)), digest_size=16).digest()


@cache
def _content_fields(type_: type[Resource]) -> tuple[str, ...]:
    return tuple(name for name in type_.__struct_fields__ if name not in ("metadata", "status"))


def _plain(value: object) -> Any:
    """A decoded value as JSON: defaults of structs are written out, so that they can be compared."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        found = {wire: _plain(getattr(value, name)) for name, wire in names}
        return {name: each for name, each in found.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return msgspec.to_builtins(value)


def _claims(metadata: Object) -> Object:
    names = ("labels", "annotations", "ownerReferences")
    return {name: metadata[name] for name in names if name in metadata}
