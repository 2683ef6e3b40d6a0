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


def has_no_drift(desired: Object, live: Object) -> bool:
    """Whether `live` still says all of `desired`; both as `content` and `content_of` give them."""
    return _holds(desired, live, field_of(desired), is_whole=False)


def _holds(desired: object, live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    """Whether a value still says what is wanted. `is_whole` means: it is part of one that is one value."""
    is_whole = is_whole or field.is_whole
    if isinstance(desired, dict):
        return _map_holds(desired, live, field, is_whole=is_whole)
    if isinstance(desired, list | tuple):
        return _list_holds(list(desired), live, field, is_whole=is_whole)
    if desired == live and type(desired) is type(live):
        return True
    if live is None:
        # Of custom resources; see `_means_nothing` for others.
        return not desired and not field.is_known
    return field.is_quantity and is_same_amount(desired, live)


def _map_holds(desired: Object, live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    if not isinstance(live, dict):
        return not desired and not live
    if is_whole and not all(
        name in desired or value in (None, {}, [], field.default(name))
        for name, value in live.items()
    ):
        return False
    for name, value in desired.items():
        theirs = live.get(name)
        if type(value) is str and value == theirs:
            continue  # most values are texts, and looking up what they are costs more than comparing them
        if theirs is None and field.is_known:
            if not _means_nothing(name, value):
                return False
        elif not _holds(value, theirs, field.child(name), is_whole=is_whole):
            return False
    return True


def _list_holds(desired: list[Any], live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    if not isinstance(live, list):
        return not desired and not live
    items, keys = field.items, field.keys
    if not keys or is_whole or not all(isinstance(item, dict) for item in (*desired, *live)):
        pairs = zip(desired, live, strict=False)
        return len(desired) == len(live) and all(
            _holds(ours, theirs, items, is_whole=is_whole) for ours, theirs in pairs
        )
    by_identity = {identity(item, keys): item for item in live}
    ours = [identity(item, keys) for item in desired]
    identities = set(ours)
    order = [merge_key for merge_key in by_identity if merge_key in identities]
    is_whole = items.is_whole
    return order == ours and all(
        _map_holds(item, by_identity[merge_key], items, is_whole=is_whole)
        for item, merge_key in zip(desired, ours, strict=True)
    )


def _means_nothing(name: str, value: object) -> bool:
    """Whether the API server leaves a field out that is applied with this value.

    Not every zero: `false` for a field that is true when it is absent must be there.
    """
    return value in (None, {}, []) or (not value and is_left_out_when_zero(name))


def without_emptied(desired: Object, live: Object) -> Object:
    """`desired` without the maps that are empty in it and not empty in `live`.

    Equal to `desired` if there is no such map. An apply takes away the fields that we applied before and do
    not apply any more. When these are all that a map has, the API server makes it null and not `{}`, although
    `{}` is what we apply, and a custom resource's schema refuses null (measured on v1.36). So the map is
    first left out, which removes it, and then applied.
    """
    body: Object = _without(desired, live, field_of(desired))
    return body


def _without(desired: object, live: object, field: FieldSchema) -> Any:
    if isinstance(desired, dict) and isinstance(live, dict):
        return {
            name: _without(value, live.get(name), field.child(name))
            if isinstance(value, dict | list)  # looking up what a field is costs more than all else
            else value
            for name, value in desired.items()
            if not (value == {} and isinstance(live.get(name), dict) and live[name])
        }
    keys = field.keys
    if not keys or not isinstance(desired, list) or not isinstance(live, list):
        return desired
    items = field.items
    theirs = {identity(item, keys): item for item in live if isinstance(item, dict)}
    return [
        _without(item, theirs.get(identity(item, keys)), items) if isinstance(item, dict) else item
        for item in desired
    ]


def content(body: Object) -> Object:
    """Everything that an object to be applied sets, but for what names and guards it."""
    return {**body, "metadata": _claims(body["metadata"])}


def content_of(live: Resource) -> Object:
    """A live object as plain JSON, without its status and without what the API server counts."""
    body: Object = plain(live)
    body.pop("status", None)
    kind = {"apiVersion": live.KIND.api_version, "kind": live.KIND.name}
    return {**body, **kind, "metadata": _claims(body.get("metadata", {}))}


def differ_in_size_only(before: Resource, after: Resource, *, but_for: Collection[str]) -> bool:
    """Whether two states of an object differ in `spec.replicas`, and in nothing else.

    Of the annotations `but_for` it does not matter whether they differ.
    """
    old, new = content_of(before), content_of(after)
    sizes = [body.get("spec", {}).pop("replicas", None) for body in (old, new)]
    for body in (old, new):
        body["metadata"] = {**body["metadata"]}
        body["metadata"]["annotations"] = {
            name: value
            for name, value in body["metadata"].get("annotations", {}).items()
            if name not in but_for
        }
    return sizes[0] != sizes[1] and old == new


def fingerprint_of(live: Resource) -> bytes:
    """A hash of all that `content_of` gives: the same for two states that differ in nothing of it."""
    metadata = live.metadata
    claims = (metadata.labels, metadata.annotations, metadata.owner_references)
    rest = [getattr(live, name) for name in _content_fields(type(live))]
    return hashlib.blake2b(msgspec.json.encode((claims, rest)), digest_size=16).digest()


@cache
def _content_fields(type_: type[Resource]) -> tuple[str, ...]:
    return tuple(name for name in type_.__struct_fields__ if name not in ("metadata", "status"))


def plain(value: object) -> Any:
    """A decoded value as JSON, with the defaults of structs and without None, so that it can be compared."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        fields = {wire: plain(getattr(value, name)) for name, wire in names}
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return msgspec.to_builtins(value)


def _claims(metadata: Object) -> Object:
    names = ("labels", "annotations", "ownerReferences")
    return {name: metadata[name] for name in names if name in metadata}
