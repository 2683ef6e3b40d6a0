"""Wrong command lines, in the words that the user typed; imported when there is one."""

import re
from difflib import get_close_matches
from typing import Literal, get_args, get_origin

from cyclopts import (
    App,
    Argument,
    CoercionError,
    CombinedShortOptionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

_LIMIT = re.compile(r"Must be (>=|<=|>|<) (\S+)\.")
_LIMITS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_TYPES = {int: "a whole number", float: "a number", bool: "true or false"}


def usage_message(app: App, error: CycloptsError) -> str:
    """The error in one sentence: what was typed and what is expected.

    A message of a command itself is returned as it is.
    """
    if error.msg is not None and not isinstance(error, CoercionError):
        return str(error)
    command = " ".join((app.name[0], *(error.command_chain or ())))
    return f"{_problem(command, error)}; see `{command} --help`"


def _problem(command: str, error: CycloptsError) -> str:
    argument = error.argument
    match error:
        case UnknownCommandError(unused_tokens=[token, *_], app=app):
            names = [name for name in app or () if not name.startswith("-") and app and app[name].show]
            return f'unknown command "{token}" of `{command}`{_nearest(token, names)}'
        case UnknownOptionError(token=token):
            flag = (token.keyword or token.value).partition("=")[0]
            names = [name for option in error.argument_collection for name in option.names]
            return f'unknown flag "{flag}" of `{command}`{_nearest(flag, names)}'
        case UnusedCliTokensError(unused_tokens=[token, *_]):
            return f'unexpected argument "{token}"'
        case RepeatArgumentError(token=token):
            return f"{token.keyword} may be given once only"
        case CoercionError(token=token) if token is not None:
            expected = str(error.msg).removeprefix("expected ") if error.msg else _type(error.target_type)
            place = token.keyword or _name(argument)
            hint = _nearest(token.value, [str(value) for value in get_args(error.target_type)])
            return f'invalid value "{token.value}" for {place} (expected {expected}){hint}'
        case ValidationError() if argument is not None and argument.tokens:
            token = argument.tokens[0]
            text = _LIMIT.sub(
                lambda limit: f"expected {_LIMITS[limit[1]]} {limit[2]}", error.exception_message
            )
            return f'invalid value "{token.value}" for {token.keyword or _name(argument)} ({text})'
        case MissingArgumentError() if error.keyword or (argument and argument.tokens):
            keyword = error.keyword or (argument.tokens[-1].keyword if argument else None)
            return f"{keyword}: missing value (expected {keyword} {_metavar(argument)})"
        case MissingArgumentError():
            return f"missing {_name(argument)}"
        case CombinedShortOptionError():
            return "flags of one letter that take a value stand apart"
        case _:
            error.verbose = False
            return str(error).rstrip(".")


def _nearest(text: str, names: list[str]) -> str:
    close = get_close_matches(text, names, n=1)
    return f' (did you mean "{close[0]}"?)' if close else ""


def _type(type_: object) -> str:
    if get_origin(type_) is Literal:
        return f"one of {', '.join(map(str, get_args(type_)))}"
    return _TYPES.get(type_, "another value") if isinstance(type_, type) else "another value"


def _name(argument: Argument | None) -> str:
    """The argument as help shows it: `NAME`, or `--replicas NUMBER`."""
    if argument is None:
        return "argument"
    metavar = _metavar(argument)
    return f"{argument.name} {metavar}" if argument.name.startswith("-") else metavar


def _metavar(argument: Argument | None) -> str:
    if argument is None:
        return "VALUE"
    metavar = argument.parameter.metavar
    return str(metavar) if metavar else argument.name.lstrip("-").upper()
