"""Our flags in the user's command: where the framework is started, and nowhere else.

A command is either a program with arguments or a script for a shell. A program gets the flags as arguments,
or through a shell when only a shell can express them. In a script they go behind the word that names the
framework.
"""

import re
from collections.abc import Sequence

from dynamo_graphs.api.entry_point import is_shell
from dynamo_graphs.render.group import Part, arguments, shell_line, users_parts
from kube_runtime.kind import Object

SHELL = ("/bin/sh", "-c")
_SPACE = re.compile(r"[\t\n\f\r ]")
_SEPARATOR = re.compile(r"([|&;])")
_STARTS_PYTHON = re.compile(rf"python[0-9.]*{_SPACE.pattern}")
_PYTHON = re.compile(r"(.*/)?python\d*(\.\d+)*", re.ASCII)


def with_flags(container: Object, flags: Sequence[Part], framework: str) -> Object:
    """The container with the flags in its command; as it is if nothing there starts the framework."""
    command, args = list(container.get("command", ())), list(container.get("args", ()))
    if _is_program(command, args, framework):
        words = users_parts(args)
        if (plain := arguments([*words, *flags])) is not None:
            return {**container, "args": plain}
        script = shell_line(["exec", *command, *words, *flags])
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
    return "".join(_in_command(each, text, framework) for each in _SEPARATOR.split(script))


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
    if _PYTHON.fullmatch(command[0]):
        return True
    words = [*command, *args]
    return any(map(_PYTHON.fullmatch, words)) and f"dynamo.{framework}" in words


def without_probes(container: Object) -> Object:
    """The container without probes: a worker of a group has no status page of its own."""
    probes = ("livenessProbe", "readinessProbe", "startupProbe")
    return {name: value for name, value in container.items() if name not in probes}
