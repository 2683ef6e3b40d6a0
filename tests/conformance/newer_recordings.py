"""What the Go operator of the 1.5 line made of 273 inputs: those of `cases`, manifests of Dynamo, and ours.

Its objects are there as stored, which is v1beta1, and as a client of v1alpha1 reads them.
"""

import lzma
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from kube_runtime.types.meta import Object

FOLDER = Path(__file__).parent / "newer"
SOURCES = ("v1alpha1", "manifest", "own")
"""The files: inputs of `cases`, manifests of Dynamo's repository in v1beta1, and inputs for new fields."""


class Recorded(
    msgspec.Struct, frozen=True, rename={"in_v1alpha1": "objectsV1alpha1", "apply_errors": "applyErrors"}
):
    """What existed after a stage; `in_v1alpha1` has the convertible kinds, once more."""

    objects: tuple[Object, ...] = ()
    in_v1alpha1: tuple[Object, ...] = ()
    apply_errors: tuple[str, ...] = ()
    events: tuple[str, ...] = ()

    def object(self, kind: str, name: str, version: str = "") -> Object | None:
        """The object in a version, or as it is stored; None if it is not there."""
        places = chain(self.objects, self.in_v1alpha1)
        return next(
            (
                body
                for body in places
                if body["kind"] == kind
                and body["metadata"]["name"] == name
                and version in ("", body.get("apiVersion"))
            ),
            None,
        )


class NewerCase(msgspec.Struct, frozen=True):
    """One input and its steps, with what existed after each of these stages, by the APIs of the cluster.

    `source` is the path of a manifest in Dynamo's repository, `output` the results of profiling.
    """

    name: str
    source: str
    inputs: tuple[tuple[Object, ...], ...]
    recorded: dict[str, tuple[Recorded | None, ...]]
    output: dict[str, str] = {}

    @property
    def namespace(self) -> str:
        return f"c-{self.name}"

    def after(self, mode: str, stage: int) -> Recorded:
        """What existed in a mode after a stage. Where it is what existed in `none`, it is not repeated."""
        found = self.recorded[mode][stage] or self.recorded["none"][stage]
        assert found is not None, self.name
        return found


@cache
def newer_cases(source: str) -> tuple[NewerCase, ...]:
    """The cases of one file."""
    text = lzma.decompress((FOLDER / f"{source}.jsonl.xz").read_bytes())
    return tuple(msgspec.json.decode(line, type=NewerCase) for line in text.splitlines())


def patched(document: Object, patch: Object) -> Object:
    """The document after the merge patch or the JSON patch of a step."""
    body = patch["body"]
    result: Object = _json_patched(document, body) if isinstance(body, list) else _merged(document, body)
    return result


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, inner in patch.items():
        if inner is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), inner)
    return result


def _json_patched(document: Object, operations: list[Object]) -> Any:
    """The document after operations that add, replace or remove one field each."""
    result: Any = msgspec.json.decode(msgspec.json.encode(document))
    for operation in operations:
        *parents, last = operation["path"].strip("/").replace("~1", "/").split("/")
        holder = result
        for step in parents:
            holder = holder[int(step) if isinstance(holder, list) else step]
        key: Any = int(last) if isinstance(holder, list) else last
        if operation["op"] == "remove":
            del holder[key]
        else:
            holder[key] = operation["value"]
    return result
