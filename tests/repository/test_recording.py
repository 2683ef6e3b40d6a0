"""The recording of the README is of today's screens, can be read, and needs nothing from elsewhere."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.recording import BACKGROUND, COLORS, COLUMNS, RECORDING, ROWS, SCREENS, drawing, timed

ROOT = Path(__file__).parents[2]


def luminance(color: str) -> float:
    """The relative luminance of `#rrggbb`, by WCAG 2.2."""
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", COLORS)
def test_colors_can_be_read(name: str) -> None:
    light, dark = luminance(COLORS[name]), luminance(BACKGROUND)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_recording_is_of_the_screens() -> None:
    found = RECORDING.read_text(encoding="utf-8")
    assert drawing(SCREENS.read_text(encoding="utf-8")) == found, "make docs"
    assert len(found.encode()) < 150_000
    assert "prefers-reduced-motion" in found
    assert [] == re.findall(r"(?:href|src|url|@import|<script)", found)
    title = ElementTree.fromstring(found).find("{http://www.w3.org/2000/svg}title")  # noqa: S314
    assert title is not None
    assert title.text


def test_answers_fit_on_the_pages_of_the_recording() -> None:
    for answer in timed(SCREENS.read_text(encoding="utf-8")):
        assert answer.row + len(answer.lines) + 1 <= ROWS, answer.words
        assert max(map(len, [answer.command, *answer.lines])) <= COLUMNS, answer.words
        assert answer.typed < answer.printed < answer.cleared


@pytest.mark.parametrize("page", ["README.md", "docs/local-control-plane.md"])
def test_pages_show_the_recording_and_describe_it(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (described,) = re.findall(rf"^!\[(.+)\]\((?:docs/)?{RECORDING.name}\)$", text, re.MULTILINE)
    assert described
