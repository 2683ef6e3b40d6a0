"""Patterns take time in proportion to their text; `growth` says how that is measured.

No pattern is listed by hand: they are found in all modules, those of the command line too, so a new one is
measured automatically. Documents and scripts are in `test_growth_of_documents.py`.
"""

import re
from collections.abc import Callable
from functools import partial

import pytest

from adversary.growth import Work, is_found_steep, is_steep, seconds
from adversary.hostile_texts import hostile_texts, patterns
from dynamoctl.inspect.report import redacted, redacted_text

PATTERNS = patterns()
LETTERS, LONGER, SLOW_SECONDS = 3000, 4000, 0.001
"""Of a text for a pattern: at the first size the square is seen, from the second on the slope is taken."""


@pytest.mark.parametrize("where", PATTERNS)
def test_a_pattern_takes_time_like_the_length_of_its_text(where: str) -> None:
    pattern, uses = PATTERNS[where]
    for text in hostile_texts(pattern, LETTERS):
        for use in uses:
            if seconds(partial(use, text), runs=2) < SLOW_SECONDS:
                continue
            body = text[:-1]

            def longer(size: int, body: str = body, use: Callable[[str], object] = use) -> Work:
                grown = body * (size // len(body)) + "\x00"
                return lambda: use(grown)

            assert not is_steep(longer, LONGER), text[:40]


def test_a_pattern_that_goes_back_and_forth_would_be_found() -> None:
    """The patterns that this test is for, as they were."""
    old = (
        re.compile(r"(\S*/)?python[0-9.]*\s+[^|&;]*dynamo\.trtllm", re.ASCII),
        re.compile(r"python[0-9.]*\s[^|&;\n'\"]*dynamo\.vllm[^|&;\n'\"]*\Z", re.ASCII),
    )
    for pattern in old:

        def longer(size: int, text: str, pattern: re.Pattern[str] = pattern) -> Work:
            grown = text[:size] + "\x00"
            return lambda: pattern.search(grown)

        texts = hostile_texts(pattern, LETTERS)
        slow = (each for each in texts if seconds(partial(pattern.search, each)) >= SLOW_SECONDS)
        assert any(is_found_steep(partial(longer, text=each), 600) for each in slow)


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----",
        "token=secretName=",
        "--token ",
        '{"auth": ',
        'auth"\\" : ',
        "://:",
        "eyJ-eyJ.",
        "a" * 70,
        '{"x":["',
    ],
)
def test_a_report_is_written_in_time_like_the_length_of_its_texts(piece: str) -> None:
    def redacting(size: int) -> Work:
        body = {"kind": "Pod", "x": piece * (size // len(piece))}
        return lambda: redacted_text(str(redacted(body)))

    assert not is_steep(redacting, 8000)
