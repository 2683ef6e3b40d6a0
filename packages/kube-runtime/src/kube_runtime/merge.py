"""Merging a partial object over a whole one by the list types of a schema, as server-side apply does.

There are no owners of fields: what the partial object has wins, and it deletes nothing.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from kube_runtime.types.meta import Fields

Path: TypeAlias = tuple[str | int, ...]

_FORMS: Final[dict[str, tuple[type, str]]] = {"object": (dict, "an object"), "array": (list, "a list")}
_ANYTHING: Final[Fields] = {}


class MergeError(ValueError):
    """A value of the partial object that cannot be merged, at `path`."""

    def __init__(self, path: Path, text: str) -> None:
        """`text` completes a sentence that begins with the path."""
        super().__init__(text)
        self.path = path
        self.text = text


def merged(whole: Any, partial: Any, schema: Fields, path: Path = ()) -> Any:
    """The whole value with the partial one over it; neither is changed, and parts are shared.

    Fields of objects are merged one by one, entries of lists by their keys, sets are united, and other
    lists replaced. New entries follow the present ones.

    Raises:
        MergeError: the partial value has a null, a field or a form that the schema does not have, an
            entry without its key, or one twice.
    """
    if _is_free(schema):
        return _merged_freely(whole, partial)
    if partial is None:
        raise MergeError(path, "must not be null; field deletion is not supported")
    form = _FORMS.get(schema.get("type", ""))
    if form and not isinstance(partial, form[0]):
        raise MergeError(path, f"must be {form[1]}")
    if isinstance(partial, dict):
        return _merged_object(whole if isinstance(whole, dict) else {}, partial, schema, path)
    if isinstance(partial, list):
        return _merged_list(whole if isinstance(whole, list) else [], partial, schema, path)
    return partial


def _is_free(schema: Fields) -> bool:
    """Whether the schema says nothing of what is inside."""
    return "type" not in schema and "x-kubernetes-int-or-string" not in schema


def _merged_freely(whole: Any, partial: Any) -> Any:
    if not isinstance(whole, dict) or not isinstance(partial, dict):
        return partial
    return {**whole, **{name: _merged_freely(whole.get(name), value) for name, value in partial.items()}}


def _merged_object(whole: Fields, partial: Fields, schema: Fields, path: Path) -> dict[str, Any]:
    result = {**whole}
    is_replaced = schema.get("x-kubernetes-map-type") == "atomic"
    for name, value in partial.items():
        inner = _schema_of(name, schema)
        if inner is None:
            raise MergeError((*path, name), "is not a field of this version")
        before = None if is_replaced else whole.get(name)
        result[name] = merged(before, value, inner, (*path, name))
    return {name: result[name] for name in partial} if is_replaced else result


def _schema_of(name: str, schema: Fields) -> Fields | None:
    inner: Fields | None = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
    if inner is None and schema.get("x-kubernetes-preserve-unknown-fields"):
        return _ANYTHING
    return inner


def _merged_list(whole: list[Any], partial: list[Any], schema: Fields, path: Path) -> list[Any]:
    entries = schema.get("items", _ANYTHING)
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return _merged_by_keys(whole, partial, schema, path)
        case "set":
            added = [merged(None, value, entries, (*path, at)) for at, value in enumerate(partial)]
            return [*whole, *(value for at, value in enumerate(added) if value not in [*whole, *added[:at]])]
        case _:
            return [merged(None, value, entries, (*path, at)) for at, value in enumerate(partial)]


def _merged_by_keys(whole: list[Any], partial: list[Any], schema: Fields, path: Path) -> list[Any]:
    keys, entries = schema["x-kubernetes-list-map-keys"], schema["items"]
    result = list(whole)
    places = {_identity(entry, keys, entries): at for at, entry in enumerate(whole)}
    seen: set[tuple[str, ...]] = set()
    for at, entry in enumerate(partial):
        inner = (*path, at)
        if not isinstance(entry, dict) or not any(entry.get(key) is not None for key in keys):
            raise MergeError(inner, f"must be an object with {' and '.join(keys)}")
        identity = _identity(entry, keys, entries)
        if identity in seen:
            raise MergeError(inner, f"is the second entry with {', '.join(_described(entry, keys))}")
        seen.add(identity)
        if identity in places:
            place = places[identity]
            result[place] = merged(whole[place], entry, entries, inner)
        else:
            result.append(merged(None, entry, entries, inner))
    return result


def _identity(entry: Any, keys: list[str], schema: Fields) -> tuple[str, ...]:
    """What identifies an entry: the values of its keys, or their defaults."""
    fields = schema.get("properties", {})
    present = entry if isinstance(entry, dict) else {}
    return tuple(str(present.get(key, fields.get(key, {}).get("default", ""))) for key in keys)


def _described(entry: Fields, keys: list[str]) -> Iterator[str]:
    return (f"{key} {entry[key]}" for key in keys if key in entry)
