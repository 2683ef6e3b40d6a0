"""Every recorded conversion has the recorded answer, but for what docs/deviations.md says."""

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from conformance.compare import ABSENT, Difference
from conformance.conversions import DIRECTIONS, KINDS, Recording, differences, recordings, rows
from dynamo_operator.versions.conversion import ConversionError, convert
from kube_runtime.types.meta import Object

EVERY_FILE = pytest.mark.parametrize(
    ("kind", "direction"), [(kind, direction) for kind in KINDS for direction in DIRECTIONS]
)


@cache
def found(kind: str, direction: str) -> tuple[Difference, ...]:
    """All differences of a file: of the answers, and of the answers converted back."""
    return tuple(
        difference for recording in recordings(kind, direction) for difference in of(recording, direction)
    )


def of(recording: Recording, direction: str) -> Iterator[Difference]:
    source, target = (f"nvidia.com/{version}" for version in direction.split("-to-"))
    yield from answered(recording, recording.input, target, recording.output)
    if recording.output is not None:
        yield from answered(recording, recording.output, source, recording.returned)


def answered(recording: Recording, sent: Object, to: str, expected: Object | None) -> Iterator[Difference]:
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


@EVERY_FILE
def test_recorded_conversions_have_the_recorded_answers(kind: str, direction: str) -> None:
    unexplained = [
        difference
        for difference in found(kind, direction)
        if not any(row.explains(difference) for row in rows())
    ]
    assert [] == unexplained


def test_every_row_explains_a_difference() -> None:
    everything = [
        difference for kind in KINDS for direction in DIRECTIONS for difference in found(kind, direction)
    ]
    assert [] == [row for row in rows() if not any(row.explains(difference) for difference in everything)]


@EVERY_FILE
def test_few_recordings_differ(kind: str, direction: str) -> None:
    differing = {difference.object for difference in found(kind, direction)}
    assert len(differing) <= len(recordings(kind, direction)) // 4


NOT_STABLE = ("edge-dgd-b-pt-two-mains",)
"""Inputs that no schema lets through."""


@EVERY_FILE
def test_an_object_that_went_there_and_back_is_converted_the_same_again(kind: str, direction: str) -> None:
    source, target = (f"nvidia.com/{version}" for version in direction.split("-to-"))
    for recording in recordings(kind, direction):
        if recording.output is not None and recording.name not in NOT_STABLE:
            first = convert(recording.input, target)
            second = convert(convert(first, source), target)
            assert first.get("spec") == second.get("spec"), recording.name


def test_rows_have_documented_ids() -> None:
    text = (Path(__file__).parents[2] / "docs" / "deviations.md").read_text(encoding="utf-8")
    assert [] == [row.id for row in rows() if f"| {row.id} |" not in text]
