"""How the pods of a multinode replica start: the commands, with the names and ranks of the other pods.

Names and ranks are known only inside a pod. The kubelet expands `$(NAME)` in arguments; a shell expands
`$NAME` and computes. Orchestrators define these references, backends use them in their launch.

Only this module turns arguments into shell text. A user's word, such as `$(cat x)`, must reach the
program unchanged and is quoted; shell syntax of the operator is a `Fragment`. An argument of `sh -c` is
a script and stays one.

Flags are added where a command starts the framework: after the arguments of a program, through a shell
if only a shell can express them; in a script after the word that names the framework.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dynamo_graphs.api.entry_point import is_python, is_shell, several_flags
from kube_runtime.kind import Object

SHELL = ("/bin/sh", "-c")
_SPACE = re.compile(r"[\t\n\f\r ]")
_SEPARATOR = re.compile(r"([|&;])")
_STARTS_PYTHON = re.compile(rf"python[0-9.]*{_SPACE.pattern}")
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_DOLLARS = re.compile(r"\$[$(]")


@dataclass(frozen=True, slots=True)
class Fragment:
    """Shell syntax of the operator, such as `$((RANK + 1))`; never a user's text."""

    text: str


Word: TypeAlias = str | Fragment
"""A text that is one argument, or a fragment for the shell."""


def line(words: Iterable[Word]) -> str:
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


@dataclass(frozen=True, slots=True)
class Reference:
    """A text that is known only inside the pod: as shell syntax, and as an argument that the kubelet expands.

    `argument` is "" if only a shell can express it.
    """

    shell: Fragment
    argument: str = ""

    def followed_by(self, text: str) -> "Reference":
        """Append plain text, such as a port."""
        return Reference(
            Fragment(f"{self.shell.text}{text}"), f"{self.argument}{text}" if self.argument else ""
        )


Part: TypeAlias = str | Reference
"""One argument of a launch."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The addresses of the pods of a group, as its orchestrator defines them.

    `worker_rank` counts from 1; the leader is 0. `rank_term` is the same number inside `$(( ))`, where the
    kubelet expands no `$(NAME)`: it reads a name up to the first `)`. With `names_come_late`, the names of
    the workers may not resolve yet when the leader starts.
    """

    leader: Reference
    workers: tuple[Reference, ...]
    worker_rank: Reference
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
    def rank(self) -> Part:
        """The pod's number in the group; the leader's is 0."""
        return "0" if self.is_leader else self.hosts.worker_rank


def arguments(parts: Sequence[Part]) -> list[str] | None:
    """The parts as arguments that the kubelet expands; None if they need a shell."""
    if any(isinstance(part, Reference) and not part.argument for part in parts):
        return None
    return [part if isinstance(part, str) else part.argument for part in parts]


def users_parts(texts: Iterable[str]) -> list[Part]:
    """A user's arguments as parts. One that contains several flags becomes a fragment that a shell splits.

    The Go operator joins all arguments into a script without quotes, and manifests rely on it there
    (`docs/decisions/0034-manifests-of-strangers.md`).
    """
    return [
        Reference(Fragment(flags)) if (flags := several_flags(text)) else text for text in texts
    ]


def shell_line(parts: Iterable[Part]) -> str:
    """Join the parts for a shell, quoting the user's."""
    return line(part if isinstance(part, str) else part.shell for part in parts)


def with_flags(container: Object, flags: Sequence[Part], framework: str) -> Object:
    """Add the flags to the command of the container, if it starts the framework."""
    command, args = list(container.get("command", ())), list(container.get("args", ()))
    if _is_program(command, args, framework):
        parts = [*users_parts(args), *flags]
        if (plain := arguments(parts)) is not None:
            return {**container, "args": plain}
        script = shell_line(["exec", *command, *parts])
        return {**container, "command": ["sh", "-c"], "args": [script]}
    for index, text in enumerate(args):
        changed = in_script(text, flags, framework)
        if changed != text:
            return {**container, "args": [*args[:index], changed, *args[index + 1 :]]}
    return container


def in_script(script: str, flags: Sequence[Part], framework: str) -> str:
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
    """Whether the command is a program that accepts the framework's flags after its arguments."""
    if not command or is_shell(command):
        return False
    if is_python(command[0]):
        return True
    words = [*command, *args]
    return any(map(is_python, words)) and f"dynamo.{framework}" in words


def without_default_port(container: Object, name: str = "system") -> Object:
    """Remove the port of a worker that does not listen, which monitoring would report as down."""
    ports = [port for port in container.get("ports", ()) if port.get("name") != name]
    rest = {key: value for key, value in container.items() if key != "ports"}
    return {**rest, "ports": ports} if ports else rest


def without_probes(container: Object) -> Object:
    """Remove the probes: a worker of a group serves no health endpoints."""
    probes = ("livenessProbe", "readinessProbe", "startupProbe")
    return {name: value for name, value in container.items() if name not in probes}
