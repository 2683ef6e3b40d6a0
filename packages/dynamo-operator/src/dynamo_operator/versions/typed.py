"""Values that the types of Go do not hold as they were typed: empty ones, and resources that are numbers.

A tool that compares an object with its manifest would see a field less, or a text in place of a number. So
the annotation `nvidia.com/<kind>-typed` has them, in a list each, below the steps to their places in the
version that the object was converted from. The Go operator leaves it as it is.
"""

import json
import re
from typing import Any, Final

import msgspec

from dynamo_operator.versions.parts import present, some, without
from dynamo_operator.versions.quantities import text_of
from dynamo_operator.versions.shapes import NO_QUANTITY, ConversionError, Shape
from kube_runtime.types.meta import Fields, Object

SHORT_NAMES: Final = {
    "DynamoGraphDeployment": "dgd",
    "DynamoComponentDeployment": "dcd",
    "DynamoGraphDeploymentRequest": "dgdr",
}
_PARENTS: Final = (dict, list)
_MAIN: Final = "main"
_AMOUNTS: Final = ((_MAIN, "resources", "limits"), (_MAIN, "resources", "requests"))
_WRITTEN: Final = ("mountPath",)
"""Fields that conversion itself writes without a value: they are the keys of a list."""
_DROPPED: Final = "mainContainer"
"""A container that says nothing: v1beta1 has one in any case, and nothing to say that it was there."""
_LIST_OF_JOB: Final = "containers"
"""A list that it writes empty into the Job of a request."""
_INDEX: Final = re.compile("[0-9]{1,8}")


def with_typed(document: Fields, read: Fields, converted: Object, shape: Shape) -> Object:
    """The converted object with what was typed in its version, and a note of what was typed in the other.

    `read` is the document as its types hold it, `shape` that of the converted object.
    """
    short = SHORT_NAMES.get(str(document.get("kind")))
    if short is None:
        return converted
    key = f"nvidia.com/{short}-typed"
    metadata: Object = converted["metadata"]
    annotations: Object = metadata.get("annotations", {})
    lost = _lost(some(document, ["spec"]), read, has_places=short != "dgdr")
    noted = annotations.get(key)
    if noted is None and not lost:
        return converted
    restored = _with_noted(some(converted, ["spec"]), noted, shape)
    note = {key: json.dumps(lost, ensure_ascii=False, separators=(",", ":"))} if lost else {}
    annotations = {**without(annotations, key), **note}
    metadata = {**without(metadata, "annotations"), **present(annotations=annotations)}
    return {**converted, "metadata": metadata, **restored}


def typed_spec(kind: str, metadata: Fields, converted: Object, shape: Shape) -> Object:
    """An object of a converted spec alone, as `with_typed` has it."""
    noted = metadata.get("annotations", {}).get(f"nvidia.com/{SHORT_NAMES[kind]}-typed")
    return _with_noted(converted, noted, shape)


def _with_noted(converted: Object, noted: object, shape: Shape) -> Object:
    if noted is None:
        return converted
    restored = some(_restored(converted, _tree(noted)), ["spec"])
    try:
        shape.read(restored)
    except (
        ConversionError
    ):  # a note of others: with a text in place of a list, no client could list any object
        return converted
    return restored


def _lost(typed: Any, read: Any, *, has_places: bool, at: tuple[str, ...] = ()) -> Object:
    """What is typed in a value and not in what was read of it, each in a list below its steps.

    `has_places`: an empty object that was read has a place in the other version. `at` are the steps from the
    container `main`, whose resources are texts there.
    """
    found: Object = {}
    if isinstance(typed, list):
        for index, child in enumerate(typed):
            if isinstance(child, _PARENTS):
                inner = (_MAIN,) if isinstance(child, dict) and child.get("name") == _MAIN else ()
                if lost := _lost(child, read[index], has_places=has_places, at=inner):
                    found[str(index)] = lost
    elif isinstance(typed, dict):
        for step, child in typed.items():
            is_dropped = step == _DROPPED and len(read) > 1 and not read.get(step)
            if step not in read or is_dropped or (not has_places and child != "" and _is_empty(child)):
                is_written = step in _WRITTEN or (step == _LIST_OF_JOB and not has_places)
                if _is_empty(child) and not is_written:
                    found[step] = [child]
            elif isinstance(child, _PARENTS):
                if child is not read[step] or not has_places or at:
                    inner = (*at, step) if at else ()
                    if lost := _lost(child, read[step], has_places=has_places, at=inner):
                        found[step] = lost
            elif at in _AMOUNTS and _is_number(child):
                found[step] = [child]
    return found


def _restored(live: Any, typed: Fields) -> Any:
    """The value with what was typed in it: what is empty and absent now, or the same number."""
    result: Any = [*live] if isinstance(live, list) else {**live} if isinstance(live, dict) else live
    for step, inner in typed.items():
        place: Any = int(step) if isinstance(live, list) and _INDEX.fullmatch(step) else step
        is_there = place < len(live) if isinstance(place, int) else isinstance(live, dict) and place in live
        if isinstance(inner, dict):
            if is_there:
                result[place] = _restored(live[place], inner)
        elif isinstance(inner, list) and len(inner) == 1 and isinstance(live, dict):
            (value,) = inner
            if not _is_empty(value):
                if _is_number(value) and live.get(place) == text_of(value):
                    result[place] = value
            elif not is_there:
                result[place] = value
            elif isinstance(value, dict) and isinstance(live[place], dict):
                result[place] = {**value, **live[place]}
    return result


def _tree(note: object) -> Object:
    try:
        tree = msgspec.json.decode(note) if isinstance(note, str) else None
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _is_empty(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value in ("", [])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < NO_QUANTITY
