"""Every recorded conversion has the recorded answer, but for what docs/deviations.md says."""

from pathlib import Path

import pytest

from conformance.conversions import DIRECTIONS, KINDS, found, recordings, rows, unexplained
from dynamo_operator.versions.conversion import convert

EVERY_FILE = pytest.mark.parametrize(
    ("kind", "direction"), [(kind, direction) for kind in KINDS for direction in DIRECTIONS]
)


@EVERY_FILE
def test_recorded_conversions_have_the_recorded_answers(kind: str, direction: str) -> None:
    assert [] == unexplained(kind, direction)


def test_every_row_explains_a_difference() -> None:
    everything = [
        difference for kind in KINDS for direction in DIRECTIONS for difference in found(kind, direction)
    ]
    assert [] == [row for row in rows() if not any(row.explains(difference) for difference in everything)]


@EVERY_FILE
def test_few_recordings_differ(kind: str, direction: str) -> None:
    differing = {difference.object for difference in found(kind, direction)}
    assert len(differing) <= len(recordings(kind, direction)) // 3


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
