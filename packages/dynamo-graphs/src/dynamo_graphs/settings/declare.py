"""How a setting is declared: its one text, and every spelling that it has outside."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field is for and how it is spelt outside.

    `flags` come without dashes, the preferred one first. `spelling` turns a value that only the
    reference operator's users write into ours. `pending` says why the setting does nothing yet.
    """

    text: str
    flags: tuple[str, ...]
    environment: str = ""
    spelling: Callable[[str], str] = str
    pending: str = ""


class Section(msgspec.Struct, frozen=True, rename="camel"):
    """A group of settings."""
