"""Reads a Containerfile and .dockerignore: what our images need of them, and nothing silently less.

An image has one description then, which any builder accepts as well. What is not understood is an error with
its line.

Source: the Dockerfile reference; substitution is that of ARG and ENV, without modifiers.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from kube_runtime.errors import ConfigError

_KNOWN = frozenset(
    "FROM ARG ENV WORKDIR COPY RUN USER ENTRYPOINT CMD LABEL EXPOSE".split()  # noqa: SIM905 - read as one
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `text` is what stands behind its word."""

    word: str
    text: str
    line: int

    def refused(self, reason: str) -> ConfigError:
        """An error that names the place."""
        return ConfigError(f"Containerfile:{self.line}", f"{self.word}: {reason}")


@dataclass(frozen=True, slots=True)
class BuildStage:
    """One stage. `base` is an image or the name of a stage before."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """A COPY. An empty `stage` means: from the folder that is built from."""

    stage: str
    sources: tuple[str, ...]
    target: str


def parse(text: str, arguments: Mapping[str, str]) -> list[BuildStage]:
    """The stages, with arguments put in place where a stage begins.

    Raises: ConfigError.
    """
    declared: dict[str, str] = {}
    stages: list[BuildStage] = []
    for instruction in _instructions(text):
        if instruction.word == "FROM":
            base, _, name = substituted(instruction.text, declared).partition(" AS ")
            stages.append(BuildStage(base.strip(), name.strip(), ()))
        elif stages:
            last = stages.pop()
            stages.append(BuildStage(last.base, last.name, (*last.instructions, instruction)))
        elif instruction.word == "ARG":
            name, value = argument(instruction, arguments)
            declared[name] = value
        else:
            raise instruction.refused("stands before FROM")
    if not stages:
        raise ConfigError("Containerfile", "has no FROM")
    return stages


def argument(instruction: Instruction, given: Mapping[str, str]) -> tuple[str, str]:
    """The name and value of an ARG; one that is given wins over its default."""
    name, _, default = instruction.text.partition("=")
    return name, given.get(name, default)


def pairs(instruction: Instruction, variables: Mapping[str, str]) -> dict[str, str]:
    """What an ENV or LABEL sets, with variables put in place.

    Raises: ConfigError.
    """
    values = {}
    for part in shlex.split(instruction.text):
        name, equals, value = part.partition("=")
        if not equals:
            raise instruction.refused(f"{part!r} has no value")
        values[name] = substituted(value, variables)
    return values


def command(instruction: Instruction) -> tuple[str, ...]:
    """The words of an ENTRYPOINT or CMD, which must be a JSON list.

    Raises: ConfigError.
    """
    try:
        words = json.loads(instruction.text)
    except json.JSONDecodeError as error:
        raise instruction.refused("must be a JSON list") from error
    return tuple(words)


def copy(instruction: Instruction, variables: Mapping[str, str]) -> Copy:
    """What a COPY copies.

    Raises: ConfigError.
    """
    words = shlex.split(substituted(instruction.text, variables))
    stage = ""
    while words and words[0].startswith("--"):
        option = words.pop(0)
        name, _, stage = option.partition("=")
        if name != "--from":
            raise instruction.refused(f"{name} is not understood here")
    if len(words) < 2:  # noqa: PLR2004 - a source and a target
        raise instruction.refused("needs a source and a target")
    *sources, target = words
    return Copy(stage, tuple(sources), target)


def substituted(text: str, variables: Mapping[str, str]) -> str:
    """The text with `$NAME` and `${NAME}` replaced. Unknown names become empty, as builders have it."""
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], ""), text)


def place(path: str, folder: str) -> PurePosixPath:
    """A path in an image, which may be relative to the working folder."""
    return PurePosixPath("/", folder, path)


@dataclass(frozen=True, slots=True)
class Ignored:
    """The lines of a .dockerignore file, each with whether it takes something back in.

    Only as much as ours says: names and `**/name`, and `!`. The last line that matches decides.
    """

    rules: Sequence[tuple[re.Pattern[str], bool]]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The rules of a folder. Without a file, nothing is left out."""
        file = folder / ".dockerignore"
        lines = file.read_text().splitlines() if file.exists() else []
        rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        return cls([(_pattern(rule.removeprefix("!")), rule.startswith("!")) for rule in rules])

    def leaves_out(self, path: PurePosixPath) -> bool:
        """Whether the file with this relative path stays away."""
        out = False
        for pattern, takes_in in self.rules:
            if any(pattern.fullmatch(str(ancestor)) for ancestor in (path, *path.parents)):
                out = not takes_in
        return out


def _instructions(text: str) -> Iterator[Instruction]:
    begun, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("#") or (not stripped and not begun):
            continue
        start = start or number
        begun += stripped
        if begun.endswith("\\"):
            begun = begun[:-1]
            continue
        word, _, rest = begun.partition(" ")
        instruction = Instruction(word.upper(), rest.strip(), start)
        if instruction.word not in _KNOWN:
            raise instruction.refused("is not understood here")
        yield instruction
        begun, start = "", 0


def _pattern(rule: str) -> re.Pattern[str]:
    parts = []
    for part in re.split(r"(\*\*/|\*|\?)", rule.strip("/")):
        special = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
        parts.append(special.get(part, re.escape(part)))
    return re.compile("".join(parts))
