"""How the pods of one replica on several nodes start: what their commands say of each other.

Names and ranks are known only inside a pod. The kubelet writes `$(NAME)` into arguments, a shell reads
`$NAME` and computes; what only a shell can express has no form as an argument. Backends write their launch
with these references, orchestrators define them.

This is also the one place where an argument meets a shell. A word is either a text that must reach the
program as it is, or a piece of shell syntax that we wrote ourselves. The type distinguishes them: a user's
`$(cat x)` is a text, and ours is a `Fragment`. What a user hands to `sh -c` is a script and stays one.

Our flags go where a command starts the framework, and nowhere else: behind the arguments of a program, or
through a shell when only a shell can express them; in a script behind the word that names the framework.
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


@dataclass(frozen=True, slots=True)
class Reference:
    """A text that is known only inside the pod, in the two ways to write it.

    `argument` is what the kubelet expands in `args`; "" means that only a shell can say it.
    """

    shell: Fragment
    argument: str = ""

    def followed_by(self, text: str) -> "Reference":
        """The reference with plain text behind it, such as a port."""
        return Reference(
            Fragment(f"{self.shell.text}{text}"), f"{self.argument}{text}" if self.argument else ""
        )


Part: TypeAlias = str | Reference
"""One argument of a launch: a text, or a text that is known only inside the pod."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """How the pods of one group name each other under an orchestrator.

    `worker_rank` counts from 1; the leader is 0. `names_come_late` means: the names of the workers
    may not resolve yet when the leader starts, so a leader that needs them waits.
    """

    leader: Reference
    workers: tuple[Reference, ...]
    worker_rank: Reference
    names_come_late: bool = False


@dataclass(frozen=True, slots=True)
class GroupNode:
    """For which pod of a group a template is: the leader, or any of the workers."""

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
    """The parts as arguments that the kubelet expands. None means: they need a shell."""
    if any(isinstance(part, Reference) and not part.argument for part in parts):
        return None
    return [part if isinstance(part, str) else part.argument for part in parts]


def users_parts(texts: Iterable[str]) -> list[Part]:
    """A user's arguments; one that holds several flags is as many words, which only a shell can say.

    The Go operator joins all arguments into a script without quotes, and manifests rely on it there
    (`docs/decisions/0034-manifests-of-strangers.md`).
    """
    return [
        Reference(Fragment(flags)) if (flags := several_flags(text)) else text for text in texts
    ]


def shell_line(parts: Iterable[Part]) -> str:
    """The parts as text for a shell, the user's quoted and ours as they are."""
    return line(part if isinstance(part, str) else part.shell for part in parts)


def with_flags(container: Object, flags: Sequence[Part], framework: str) -> Object:
    """The container with the flags in its command; as it is if nothing there starts the framework."""
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
    """The script with the flags behind every place that starts the framework.

    That is, in each of its commands, the final word with the framework's name behind a Python. One pattern
    for it would take time that grows with the square of a text that users may choose.
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
    """Whether the command is a program that takes the framework's flags behind its arguments."""
    if not command or is_shell(command):
        return False
    if is_python(command[0]):
        return True
    words = [*command, *args]
    return any(map(is_python, words)) and f"dynamo.{framework}" in words


def without_probes(container: Object) -> Object:
    """The container without probes: a worker of a group has no status page of its own."""
    probes = ("livenessProbe", "readinessProbe", "startupProbe")
    return {name: value for name, value in container.items() if name not in probes}
