"""The start of a component's main container: its command line, shell text, flags for several nodes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dynamo_operator.component.framework import is_python, is_shell, several_flags
from kube_runtime.types.meta import Object

SHELL = ("/bin/sh", "-c")
_SPACE = re.compile(r"[\t\n\f\r ]")
_SEPARATOR = re.compile(r"([|&;])")
_STARTS_PYTHON = re.compile(rf"python[0-9.]*{_SPACE.pattern}")
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_DOLLARS = re.compile(r"\$[$(]")


# Only this module turns arguments into shell text. A user's word, such as `$(cat x)`, must reach
# the program unchanged and is quoted; shell syntax of the operator is a `Fragment`. An argument of
# `sh -c` is a script and stays one.
@dataclass(frozen=True, slots=True)
class Fragment:
    """Shell syntax of the operator, such as `$((RANK + 1))`; never a user's text.

    `argument` is the same as an argument that the kubelet expands; "" if only a shell can express it.
    """

    text: str
    argument: str = ""

    def followed_by(self, text: str) -> "Fragment":
        """Append plain text, such as a port."""
        return Fragment(f"{self.text}{text}", self.argument and f"{self.argument}{text}")


Word: TypeAlias = str | Fragment
"""A text that is one argument of a launch, or a fragment for the shell."""


def shell_line(words: Iterable[Word]) -> str:
    """Join words to a command line, quoting texts."""
    return " ".join(word.text if isinstance(word, Fragment) else quoted(word) for word in words)


def quoted(text: str) -> str:
    """Quote a text as one shell word, if it needs quotes.

    The kubelet would read `$(` without `)` up to the next `)` of the script; it turns `$$(` into `$(`.
    """
    if _PLAIN.fullmatch(text):
        return text
    end = text.rfind(")") + 1
    rest = _DOLLARS.sub(lambda match: "$$(" if match[0] == "$(" else match[0], text[end:])
    inner = f"{text[:end]}{rest}".replace("'", "'\\''")
    return f"'{inner}'"


# Names and ranks are known only inside a pod. The kubelet expands `$(NAME)` in arguments; a shell
# expands `$NAME` and computes. Orchestrators define these references, backends use them in their
# launch.
@dataclass(frozen=True, slots=True)
class Hosts:
    """The addresses of the pods of a group, as its orchestrator defines them.

    `worker_rank` counts from 1; the leader is 0. `rank_term` is the same number inside `$(( ))`, where the
    kubelet expands no `$(NAME)`: it reads a name up to the first `)`. With `names_come_late`, the names of
    the workers may not resolve yet when the leader starts.
    """

    leader: Fragment
    workers: tuple[Fragment, ...]
    worker_rank: Fragment
    rank_term: str
    names_come_late: bool = False


@dataclass(frozen=True, slots=True)
class GroupNode:
    """The pod of a group that a template is for: the leader, or any of the workers."""

    is_leader: bool
    hosts: Hosts

    @property
    def count(self) -> int:
        """The number of nodes, and of pods, of the group."""
        return 1 + len(self.hosts.workers)

    @property
    def rank(self) -> Word:
        """The pod's number in the group; the leader's is 0."""
        return "0" if self.is_leader else self.hosts.worker_rank


def users_words(texts: Iterable[str]) -> list[Word]:
    """A user's arguments as words. One that contains several flags becomes a fragment that a shell splits.

    The Go operator joins all arguments into a script without quotes, and manifests rely on it there
    (`docs/decisions/0034-manifests-of-strangers.md`).
    """
    return [Fragment(flags) if (flags := several_flags(text)) else text for text in texts]


# Flags are added where a command starts the framework: after the arguments of a program, through a
# shell if only a shell can express them; in a script after the word that names the framework.
def with_flags(container: Object, flags: Sequence[Word], framework: str) -> Object:
    """Add the flags to the command of the container, if it starts the framework."""
    command, args = list(container.get("command", ())), list(container.get("args", ()))
    if _is_program(command, args, framework):
        words = [*users_words(args), *flags]
        if all(isinstance(word, str) or word.argument for word in words):
            return {**container, "args": [word if isinstance(word, str) else word.argument for word in words]}
        return {**container, "command": ["sh", "-c"], "args": [shell_line(["exec", *command, *words])]}
    for index, text in enumerate(args):
        changed = in_script(text, flags, framework)
        if changed != text:
            return {**container, "args": [*args[:index], changed, *args[index + 1 :]]}
    return container


def in_script(script: str, flags: Sequence[Word], framework: str) -> str:
    """Add the flags to every command of a script that starts the framework.

    They follow the final word with the framework's name after a Python. A single pattern for this would take
    quadratic time in a text that users choose.
    """
    text = shell_line(flags)
    return "".join(_in_command(part, text, framework) for part in _SEPARATOR.split(script))


def _in_command(command: str, text: str, framework: str) -> str:
    python = _STARTS_PYTHON.search(command)
    last = command.rfind(framework, python.end()) if python else -1
    if last < 0:
        return command
    space = _SPACE.search(command, last)
    end = space.start() if space else len(command)
    return f"{command[:end]} {text}{command[end:]}"


def _is_program(command: list[str], args: list[str], framework: str) -> bool:
    # A program accepts the framework's flags after its arguments; a shell does not.
    if not command or is_shell(command):
        return False
    is_wrapped = any(map(is_python, [*command, *args])) and f"dynamo.{framework}" in [*command, *args]
    return is_python(command[0]) or is_wrapped


def without_default_port(container: Object, name: str = "system") -> Object:
    """Remove the port of a worker that does not listen, which monitoring would report as down."""
    ports = [port for port in container.get("ports", ()) if port.get("name") != name]
    rest = {key: value for key, value in container.items() if key != "ports"}
    return {**rest, "ports": ports} if ports else rest


def without_probes(container: Object) -> Object:
    """Remove the probes: a worker of a group serves no health endpoints."""
    probes = ("livenessProbe", "readinessProbe", "startupProbe")
    return {name: value for name, value in container.items() if name not in probes}
