"""What is handed to a shell comes out of it as it went in."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_operator.component.framework import is_shell
from dynamo_operator.component.launch import Fragment, Word, quoted, shell_line

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


def output_of(script: str, **environment: str) -> bytes:
    """What a real shell prints."""
    command = ["/bin/sh", "-c", script]
    return subprocess.run(  # noqa: S603  # the shell, with our own text
        command, env=environment, capture_output=True, check=True
    ).stdout


def read_by_a_shell(words: str, **environment: str) -> list[str]:
    """The words that a real shell makes of a line."""
    return output_of(f"printf '%s\\0' {words}", **environment).decode().split("\0")[:-1]


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_reach_a_program_as_they_are(texts: list[str]) -> None:
    assert texts == read_by_a_shell(shell_line(texts))


@pytest.mark.parametrize("text", ["--model", "acme/chat-7b", "a=b", "16", "x,y:z", "/opt/a_b.c"])
def test_a_plain_text_stays_without_quotes(text: str) -> None:
    assert text == quoted(text)


def test_a_fragment_is_for_the_shell_and_the_same_text_of_a_user_is_not() -> None:
    words: list[Word] = [Fragment("$((RANK + 1))"), "$((RANK + 1))"]
    assert ["3", "$((RANK + 1))"] == read_by_a_shell(shell_line(words), RANK="2")


@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        (["/bin/sh", "-c"], True),
        (["bash", "-lc"], True),
        (["/usr/bin/bash", "-euo", "pipefail", "-c"], True),
        (["sh"], False),
        (["python3", "-c"], False),
        (["/opt/push", "-c"], False),
        ([], False),
    ],
)
def test_a_shell_is_told_from_other_programs(command: list[str], is_one: bool) -> None:
    assert is_one == is_shell(command)
