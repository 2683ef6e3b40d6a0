"""How a container starts: what its command and arguments mean to a shell, to Python and to an engine.

Manifests for the Go operator contain arguments in three forms: one word each, one script for `sh -c`, and one
text with several flags. The functions here distinguish them, in time linear in the text.
"""

import re
from collections.abc import Sequence

from dynamo_graphs.api.backends import NOOP
from dynamo_graphs.api.component import WORKER_TYPES
from kube_runtime.kind import Fields, Object

FRONTEND = ("-m", "dynamo.frontend")
"""Default arguments of a frontend's Python."""

_SHELL = re.compile(r"(.*/)?(sh|ash|bash|dash|ksh|zsh)")
_SCRIPT_FLAG = re.compile(r"-[A-Za-z]*c")
_FLAG = re.compile(r"--[A-Za-z][\w.-]*(=.*)?", re.ASCII | re.DOTALL)
_FIRST_FLAG = re.compile(r"--?[A-Za-z][\w.-]*(=.*)?", re.ASCII | re.DOTALL)
_PYTHON = re.compile(r"(.*/)?python\d*(\.\d+)*", re.ASCII)
_PYTHON_FLAGS = ("--help", "--version", "--check-hash-based-pycs")
# Words, quotes and variables, but nothing that ends a command, redirects it or starts another one.
# Possessive, and each alternative begins with other characters, so that matching never backtracks.
_WORDS = re.compile(
    r"""(?:[^\s'"\\;&|<>()#`$]|[\t ]|(?<=\S)\#|\\.|'[^']*'|"(?:[^"\\]|\\.)*+"|\$(?:\([\w.-]+\))?)*+""",
    re.DOTALL,
)


def is_shell(command: Sequence[str]) -> bool:
    """Whether the command passes its first argument to a shell, as `sh -c` does."""
    return (
        len(command) > 1
        and _SHELL.fullmatch(command[0]) is not None
        and _SCRIPT_FLAG.fullmatch(command[-1]) is not None
    )


def is_flag(text: str) -> bool:
    """Whether the text begins with a long flag such as `--model`, which is never a shell script."""
    return _FLAG.match(text) is not None


def is_python(program: str) -> bool:
    """Whether a command's first word is a Python interpreter."""
    return _PYTHON.fullmatch(program) is not None


def has_only_flags(args: Sequence[str]) -> bool:
    """Whether the arguments begin with a long flag that belongs neither to a shell nor to Python."""
    return bool(args) and is_flag(args[0]) and args[0].partition("=")[0] not in _PYTHON_FLAGS


def several_flags(text: str) -> str:
    """Return the flags inside one argument, such as `--model x --tp 2`, as text for a script.

    "" if it is a single argument, or if a shell would read more than the words of one command.
    """
    words = text.split()
    if len(words) < 2 or not _FIRST_FLAG.fullmatch(words[0]):  # noqa: PLR2004  # a flag and more
        return ""
    script = text.strip()
    if words[-1] == "\\":
        script = script[:-1].rstrip()  # a line continuation
    is_several = any(map(is_flag, words[1:])) or (is_flag(words[0]) and "=" not in words[0])
    return script if is_several and _WORDS.fullmatch(script) else ""


def started(component_type: str | None, framework: str, main: Fields) -> Object:
    """Return the main container with the program that its flags are meant for.

    By default, `/bin/sh -c` receives a worker's arguments and `python3` a frontend's. Neither accepts
    flags such as `--model` or `--router-mode`, so such a container could never run; it gets the command
    it was written for.
    """
    container = dict(main)
    args = [str(arg) for arg in main.get("args") or ()]
    if main.get("command") or not args or not is_flag(args[0]):
        return container
    if component_type == "frontend" and args[0].partition("=")[0] not in _PYTHON_FLAGS:
        return container | {"args": [*FRONTEND, *args]}
    if component_type in WORKER_TYPES and framework != NOOP:
        return container | {"command": ["python3", "-m", f"dynamo.{framework}"], "args": args}
    return container
