"""The one place where an argument meets a shell.

A word is either a text that must reach the program as it is, or a piece of shell syntax that we wrote
ourselves. The type distinguishes them: a user's `$(cat x)` is a text, and ours is a `Fragment`. What a user
hands to `sh -c` is a script and stays one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fragment:
    """Shell syntax of our own, such as `$((RANK + 1))`; never a user's text."""

    text: str


Word: TypeAlias = str | Fragment
"""A text that is one argument as it stands, or a fragment that the shell is to read."""


def line(words: Iterable[Word]) -> str:
    """The words as a shell reads them back."""
    return " ".join(word.text if isinstance(word, Fragment) else quoted(word) for word in words)


def quoted(text: str) -> str:
    """The text as one word of a shell; in quotes only if it needs them."""
    if _PLAIN.fullmatch(text):
        return text
    inner = text.replace("'", "'\\''")
    return f"'{inner}'"
