"""Recorded conversions: objects that the conversion webhook of the Go operator was sent, and its answers.

`python -m conformance.conversions` counts them, in `tests`.

Each file of `conversions/` has one kind and direction, one recording a line. Inputs are manifests of the
reference and of our cases, objects that together set every field of both versions, special cases, and answers
that were edited and sent back.
"""

import copy
import json
import lzma
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from conformance.compare import ABSENT, Difference, text
from conformance.deviations import matches
from dynamo_operator.versions.conversion import ConversionError, convert
from dynamo_operator.versions.quantities import is_quantity, is_same
from kube_runtime.types.meta import Object

FOLDER = Path(__file__).parent / "conversions"
KINDS = ("dgd", "dcd", "dgdr", "dgdsa")
DIRECTIONS = ("v1alpha1-to-v1beta1", "v1beta1-to-v1alpha1")

_PAYLOADS = tuple(f"nvidia.com/{kind}-{part}" for kind in KINDS for part in ("spec", "status"))
_TYPED = tuple(f"nvidia.com/{kind}-typed" for kind in KINDS)
_ZEROS = {"divisor": ("0", 0), "metricsStalenessThreshold": ("0s",), "size": ("0",)}
"""Values that the Go types write for an absent field."""
_VALUE_TYPED = frozenset(
    (
        *("created", "disabled", "enabled", "forceScalingGroup", "globalDynamoNamespace", "ready"),
        *("useAsCompilationCache", "useMocker", "useVirtualService"),
        *("initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"),
        *("chapAuthDiscovery", "chapAuthSession", "hostIPC", "hostNetwork", "hostPID", "readOnly"),
        *("sslEnabled", "stdin", "stdinOnce", "tty"),
        *("failureThreshold", "hostPort", "maxReplicas", "minReplicas", "nodeCount"),
        *("observedGeneration", "partition", "queueDepthThreshold", "updatedReplicas"),
    )
)
"""Fields whose zero value the Go types leave out, or write where there was none."""


class Recording(msgspec.Struct, frozen=True, rename="camel"):
    """An object that was sent, and the answer; `round_trip` is the answer converted back."""

    name: str
    input: Object
    output: Object | None = None
    error: str | None = None
    round_trip: Any = None

    @property
    def returned(self) -> Object | None:
        """The answer converted back."""
        return self.input if self.round_trip == "=input" else self.round_trip


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"is_": "is"}):
    """What one deviation explains. In every pattern `*` stands for any text; what is left out means all."""

    id: str
    paths: tuple[str, ...]
    recordings: tuple[str, ...] = ("*",)
    is_: tuple[str, ...] = ("missing", "extra", "changed")
    theirs: str = "*"
    ours: str = "*"

    def explains(self, difference: Difference) -> bool:
        """Whether that difference is this deviation."""
        return (
            difference.is_ in self.is_
            and matches(self.recordings, difference.object)
            and matches(self.paths, difference.path)
            and (difference.is_ == "extra" or matches((self.theirs,), text(difference.theirs)))
            and (difference.is_ == "missing" or matches((self.ours,), text(difference.ours)))
        )


@cache
def rows() -> tuple[Row, ...]:
    """The rows of `conversions.yaml`."""
    return msgspec.yaml.decode(FOLDER.with_suffix(".yaml").read_bytes(), type=tuple[Row, ...])


@cache
def recordings(kind: str, direction: str) -> tuple[Recording, ...]:
    """What was recorded of one kind, in file order."""
    text = lzma.decompress((FOLDER / f"{kind}.{direction}.jsonl.xz").read_bytes())
    return tuple(msgspec.json.decode(line, type=Recording) for line in text.splitlines())


def differences(recording: str, theirs: Object, ours: Object) -> Iterator[Difference]:
    """Where two answers differ, but for what no reader of the API can tell apart."""
    for path, their, our in _differ("", _normal_object(theirs), _normal_object(ours)):
        if not _is_same_quantity(their, our):
            yield Difference(recording, path, their, our)


def _differ(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    match theirs, ours:
        case dict(), dict():
            for name in sorted(theirs.keys() | ours.keys()):
                inner = f"{path}[{name}]" if "." in name or "/" in name else f"{path}.{name}"
                yield from _differ(inner.lstrip("."), theirs.get(name, ABSENT), ours.get(name, ABSENT))
        case list(), list() if len(theirs) == len(ours):
            for index, (their, our) in enumerate(zip(theirs, ours, strict=True)):
                yield from _differ(f"{path}[{index}]", their, our)
        case _ if theirs != ours:
            yield path, theirs, ours
        case _:
            return


def _is_same_quantity(theirs: object, ours: object) -> bool:
    return (
        isinstance(theirs, str | int | float)
        and isinstance(ours, str | int | float)
        and is_quantity(str(theirs))
        and is_quantity(str(ours))
        and is_same(theirs, ours)
    )


def _normal_object(body: Object) -> Object:
    is_adapter = body.get("kind") == "DynamoGraphDeploymentScalingAdapter"
    value_typed = _VALUE_TYPED | ({"replicas"} if is_adapter else set())
    if body["apiVersion"] == "nvidia.com/v1alpha1":
        value_typed |= {"autoApply"}
    normal: Object = _normal(body, value_typed)
    return _without_typed(normal)


# Row V19 of the deviations. Each answer of the Go operator has empty values that it was not sent.
def _without_typed(body: Object) -> Object:
    metadata = body.get("metadata", {})
    annotations = {key: text for key, text in metadata.get("annotations", {}).items() if key not in _TYPED}
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    metadata = {**rest, **({"annotations": annotations} if annotations else {})}
    return {**{name: value for name, value in body.items() if name != "metadata"}, "metadata": metadata}


def _normal(value: Any, value_typed: frozenset[str]) -> Any:
    """A value with payloads as JSON, and without what means the same as nothing."""
    if isinstance(value, list):
        return [_normal(item, value_typed) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, child in value.items():
        is_status = name == "status" or name.endswith("-status")
        kept = json.loads(child) if name in _PAYLOADS and _is_json(child) else child
        kept = _normal(kept, value_typed | {"replicas"} if is_status else value_typed)
        is_zero = kept in (0, False) and not isinstance(kept, str) and name in value_typed
        if kept is not None and kept not in ("", [], {}, *_ZEROS.get(name, ())) and not is_zero:
            result[name] = kept
    return result


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@cache
def found(kind: str, direction: str) -> tuple[Difference, ...]:
    """All differences of a file: of the answers, and of the answers converted back."""
    return tuple(
        difference for recording in recordings(kind, direction) for difference in _of(recording, direction)
    )


def _of(recording: Recording, direction: str) -> Iterator[Difference]:
    source, target = (f"nvidia.com/{version}" for version in direction.split("-to-"))
    yield from _answered(recording, recording.input, target, recording.output)
    if recording.output is not None:
        yield from _answered(recording, recording.output, source, recording.returned)


def _answered(recording: Recording, sent: Object, to: str, expected: Object | None) -> Iterator[Difference]:
    before = copy.deepcopy(sent)
    try:
        answer = convert(sent, to)
    except ConversionError as error:
        if expected is not None:
            yield Difference(recording.name, "error", ABSENT, str(error))
    else:
        if expected is None:
            yield Difference(recording.name, "error", recording.error, ABSENT)
        else:
            yield from differences(recording.name, expected, answer)
    assert before == sent, recording.name


def unexplained(kind: str, direction: str) -> list[Difference]:
    """The differences of a file that no row explains."""
    return [
        difference
        for difference in found(kind, direction)
        if not any(row.explains(difference) for row in rows())
    ]


def main() -> None:
    """Print how many recordings of each file have the recorded answers, there and back."""
    for kind, direction in product(KINDS, DIRECTIONS):
        total = len(recordings(kind, direction))
        differing = {difference.object for difference in found(kind, direction)}
        wrong = {difference.object for difference in unexplained(kind, direction)}
        equal, deviating = total - len(differing), len(differing - wrong)
        print(f"{kind} {direction}: {equal} equal, {deviating} but for deviations, {len(wrong)} different")


if __name__ == "__main__":
    main()
