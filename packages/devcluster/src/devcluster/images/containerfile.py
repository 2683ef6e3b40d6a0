"""Parse the subset of Containerfile and .dockerignore that our images use.

Anything else is an error with its line. So an image has one description, which other builders accept as well.

Source: the Dockerfile reference; variables of ARG and ENV, without modifiers.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from kube_runtime.errors import ConfigError

_KEYWORDS = frozenset(
    "FROM ARG ENV WORKDIR COPY RUN USER ENTRYPOINT CMD LABEL EXPOSE".split()  # noqa: SIM905 - read as one
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `text` follows its keyword."""

    keyword: str
    text: str
    line: int

    def error(self, reason: str) -> ConfigError:
        """An error about this instruction."""
        return ConfigError(f"Containerfile:{self.line}", f"{self.keyword}: {reason}")


@dataclass(frozen=True, slots=True)
class BuildStage:
    """One stage. `base` is an image or the name of an earlier stage."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """A COPY, from another stage, or from the build context if `stage` is empty."""

    stage: str
    sources: tuple[str, ...]
    target: str


def parse(text: str, arguments: Mapping[str, str]) -> list[BuildStage]:
    """Parse the stages; arguments are substituted in FROM only.

    Raises: ConfigError.
    """
    declared: dict[str, str] = {}
    stages: list[BuildStage] = []
    for instruction in _instructions(text):
        if instruction.keyword == "FROM":
            base, _, name = substitute(instruction.text, declared).partition(" AS ")
            stages.append(BuildStage(base.strip(), name.strip(), ()))
        elif stages:
            last = stages.pop()
            stages.append(BuildStage(last.base, last.name, (*last.instructions, instruction)))
        elif instruction.keyword == "ARG":
            name, value = argument(instruction, arguments)
            declared[name] = value
        else:
            raise instruction.error("must not come before FROM")
    if not stages:
        raise ConfigError("Containerfile", "has no FROM")
    return stages


def argument(instruction: Instruction, given: Mapping[str, str]) -> tuple[str, str]:
    """The name of an ARG and its value: the given one, else its default."""
    name, _, default = instruction.text.partition("=")
    return name, given.get(name, default)


def pairs(instruction: Instruction, variables: Mapping[str, str]) -> dict[str, str]:
    """The pairs of an ENV or LABEL, with variables substituted.

    Raises: ConfigError.
    """
    values = {}
    for part in shlex.split(instruction.text):
        name, equals, value = part.partition("=")
        if not equals:
            raise instruction.error(f"{part!r} has no value")
        values[name] = substitute(value, variables)
    return values


def command(instruction: Instruction) -> tuple[str, ...]:
    """The command of an ENTRYPOINT or CMD, which must be a JSON list.

    Raises: ConfigError.
    """
    try:
        words = json.loads(instruction.text)
    except json.JSONDecodeError as error:
        raise instruction.error("must be a JSON list") from error
    return tuple(words)


def copy(instruction: Instruction, variables: Mapping[str, str]) -> Copy:
    """Parse a COPY.

    Raises: ConfigError.
    """
    words = shlex.split(substitute(instruction.text, variables))
    stage = ""
    while words and words[0].startswith("--"):
        option = words.pop(0)
        name, _, stage = option.partition("=")
        if name != "--from":
            raise instruction.error(f"{name} is not understood here")
    if len(words) < 2:  # noqa: PLR2004 - a source and a target
        raise instruction.error("needs a source and a target")
    *sources, target = words
    return Copy(stage, tuple(sources), target)


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}`; unknown names become empty, as in other builders."""
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], ""), text)


def place(path: str, folder: str) -> PurePosixPath:
    """The absolute path in an image of one that may be relative to the working folder."""
    return PurePosixPath("/", folder, path)


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of a .dockerignore file, each with whether it is negated by `!`; the last match decides.

    Supports names and `**/name` only.
    """

    rules: Sequence[tuple[re.Pattern[str], bool]]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Read the file of a folder; without it, nothing is ignored."""
        file = folder / ".dockerignore"
        lines = file.read_text().splitlines() if file.exists() else []
        rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        return cls([(_pattern(rule.removeprefix("!")), rule.startswith("!")) for rule in rules])

    def ignores(self, path: PurePosixPath) -> bool:
        """Whether to ignore the file with this relative path."""
        ignored = False
        for pattern, is_negated in self.rules:
            if any(pattern.fullmatch(str(ancestor)) for ancestor in (path, *path.parents)):
                ignored = not is_negated
        return ignored


def _instructions(text: str) -> Iterator[Instruction]:
    joined, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("#") or (not stripped and not joined):
            continue
        start = start or number
        joined += stripped
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        keyword, _, rest = joined.partition(" ")
        instruction = Instruction(keyword.upper(), rest.strip(), start)
        if instruction.keyword not in _KEYWORDS:
            raise instruction.error("is not understood here")
        yield instruction
        joined, start = "", 0


def _pattern(rule: str) -> re.Pattern[str]:
    parts = []
    for part in re.split(r"(\*\*/|\*|\?)", rule.strip("/")):
        special = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
        parts.append(special.get(part, re.escape(part)))
    return re.compile("".join(parts))
