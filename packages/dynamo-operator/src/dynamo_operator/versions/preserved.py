"""Annotations that preserve what the other version has no fields for.

`nvidia.com/<kind>-spec` holds a sparse spec of the version that the object was converted from, in an
envelope `{"version": 1, "spec": {…}}`; `nvidia.com/<kind>-status` holds a sparse status. Both are old
values: the live fields always win, and a saved piece returns where they still say what it was converted to.
"""

import json
from dataclasses import dataclass
from typing import Final

import msgspec

from dynamo_operator.versions.parts import present, without
from dynamo_operator.versions.shapes import FLAG, TEXT, Base64, ConversionError, Shape, Struct, items
from kube_runtime.types.meta import Object

_VERSION: Final = 1
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_RECORDS: Final = items(path=TEXT, raw=Base64(), nil=FLAG)


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of the annotations of a kind."""

    spec: str
    status: str
    retired: tuple[str, ...] = ()
    """Names that an older conversion wrote; they are removed."""


def keys_of(short: str, *retired: str) -> Keys:
    """The names for the kind with that short name, such as `dgd`."""
    prefix = f"nvidia.com/{short}-"
    return Keys(f"{prefix}spec", f"{prefix}status", tuple(prefix + name for name in retired))


@dataclass(frozen=True, slots=True)
class Payload:
    """A saved spec, and the paths of fields that had no value before a default gave them one."""

    spec: Object
    empty_paths: frozenset[str] = frozenset()


def has_any(metadata: Object, keys: Keys) -> bool:
    """Whether the object carries a payload, readable or not."""
    annotations = metadata.get("annotations", {})
    return keys.spec in annotations or keys.status in annotations


def saved_spec(metadata: Object, keys: Keys, spec: Shape) -> Payload | None:
    """The payload of the spec; None if there is none, or if it is not a spec of the other version.

    A JSON object without the field `spec` is a sparse spec itself, as the first conversions wrote it.
    """
    document = _document(metadata, keys.spec)
    if document is None:
        return None
    envelope = document if "spec" in document else {"spec": document}
    try:
        read = Struct({"spec": spec, "rawJSON": _RECORDS}).read(envelope)
    except ConversionError:
        return None
    paths = {record.get("path", "") for record in read.get("rawJSON", []) if record.get("nil")}
    return Payload(read.get("spec", {}), frozenset(paths))


def saved_status(metadata: Object, keys: Keys, status: Shape) -> Object:
    """The payload of the status; empty if there is none, or if it is not a status of the other version."""
    try:
        read: Object = status.read(_document(metadata, keys.status) or {})
    except ConversionError:
        return {}
    return read


def with_payloads(metadata: Object, keys: Keys, *, spec: Payload | None = None, status: Object) -> Object:
    """The metadata with these payloads in place of those that it has. An empty status is none."""
    old: dict[str, str] = metadata.get("annotations", {})
    dropped = {keys.spec, keys.status, *keys.retired}
    annotations = {name: text for name, text in old.items() if name not in dropped}
    if spec is not None:
        envelope: Object = {"version": _VERSION, "spec": spec.spec}
        if spec.empty_paths:
            envelope["rawJSON"] = [{"path": path, "nil": True} for path in sorted(spec.empty_paths)]
        annotations[keys.spec] = _JSON.encode(envelope)
    if status:
        annotations[keys.status] = _JSON.encode(status)
    return {**without(metadata, "annotations"), **present(annotations=annotations)}


def _document(metadata: Object, key: str) -> Object | None:
    text = metadata.get("annotations", {}).get(key)
    if not text:
        return None
    try:
        document = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # what msgspec raises for a text of no JSON is a ValueError
        return None
    if document is None:
        return {}
    return document if isinstance(document, dict) else None
