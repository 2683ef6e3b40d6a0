"""How a setting is declared: its help text, flags and environment variable."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Setting:
    """The help text and the external names of a field.

    `flags` are without dashes, the preferred one first. `spelling` converts values of the Go operator's
    flags.
    """

    text: str
    flags: tuple[str, ...]
    environment: str = ""
    spelling: Callable[[str], str] = str


class Section(msgspec.Struct, frozen=True, rename="camel"):
    """A group of settings."""
