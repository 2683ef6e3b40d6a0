"""The room that an object has for the annotations in which its conversion keeps something.

An API server fails a conversion after which the annotations of an object have more than they may have, and
with it each list of the kind. So what has no room is left out of the converted object. Admission refuses an
object of which something would be left out (`admission/written.py`).
"""

from collections.abc import Sequence
from typing import Final

from dynamo_operator.versions.parts import present, without
from dynamo_operator.versions.typed import SHORT_NAMES
from kube_runtime.types.meta import Object

MOST_BYTES: Final = 256 * 1024
"""Of the names and texts of all annotations of an object (`TotalAnnotationSizeLimitB` of Kubernetes).

A spec of 64 KiB, the most by default, needs up to 150 KiB of it, so others have 100 KiB at least.
"""

_PARTS: Final = ("status", "typed", "spec")
"""What is left out first: the operator writes a status again, and an empty value means the same as none."""


def crowded_out(converted: Object) -> tuple[str, ...]:
    """The annotations of its conversion for which a converted object has no room."""
    annotations: dict[str, str] = converted.get("metadata", {}).get("annotations", {})
    characters = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if characters * 4 <= MOST_BYTES:  # one has at most 4 bytes
        return ()
    sizes = {name: _size(name) + _size(text) for name, text in annotations.items()}
    size, left_out = sum(sizes.values()), list[str]()
    for part in _PARTS:
        name = f"nvidia.com/{SHORT_NAMES.get(converted['kind'])}-{part}"
        if size > MOST_BYTES and name in sizes:
            size -= sizes[name]
            left_out.append(name)
    return tuple(left_out)


def without_annotations(converted: Object, names: Sequence[str]) -> Object:
    """The object without these annotations."""
    metadata: Object = converted["metadata"]
    annotations = without(metadata["annotations"], *names)
    return {**converted, "metadata": {**without(metadata, "annotations"), **present(annotations=annotations)}}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
