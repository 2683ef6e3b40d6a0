"""The planted faults: small changes of the code that a test must find."""

import tomllib
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("faults.toml")

CONTROL_PLANE = ("tests/adversary", "tests/cluster", "tests/conformance", "tests/faults")
"""Folders whose tests need a control plane."""


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of one file: `before` occurs once in it, and `after` takes its place."""

    file: str
    before: str
    after: str

    def applied(self, text: str) -> str:
        """The text of the file after the change.

        Raises:
            ValueError: `before` does not occur exactly once.
        """
        if (count := text.count(self.before)) != 1:
            raise ValueError(f"{self.file}: expected once, found {count} times: {self.before}")
        return text.replace(self.before, self.after)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"class_": "class"}):
    """A mistake, and the tests that should find it.

    `parts` are arguments of pytest, the cheapest first. Several edits are for what is generated as well.
    """

    name: str
    class_: str
    what: str
    parts: tuple[str, ...]
    edits: tuple[Edit, ...]


class _Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: tuple[Fault, ...]


def faults() -> tuple[Fault, ...]:
    return msgspec.convert(tomllib.loads(LIST.read_text(encoding="utf-8")), _Faults).fault


def needs_control_plane(part: str) -> bool:
    """Whether the tests of a part need a control plane."""
    return part.startswith(CONTROL_PLANE)
