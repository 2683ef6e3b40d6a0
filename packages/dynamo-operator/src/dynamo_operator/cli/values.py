"""Parse the value of a setting from text or YAML.

Text follows Go's flag package, so command lines of the reference operator keep their meaning: booleans are
`1 t true 0 f false` in three spellings, durations are `1h30m` or `1.5s`.
"""

import re
from difflib import get_close_matches
from typing import Literal, get_args, get_origin

from dynamo_graphs.settings import SettingField

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_UNIT_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = re.compile(r"(\d++(?:\.\d*+)?|\.\d++)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def from_text(field: SettingField, text: str) -> object:
    """Parse the text of a flag or an environment variable.

    Raises: ValueError; the message says what is expected.
    """
    if field.is_duration:
        return _duration(field, text)
    if field.type_ is bool:
        return boolean(text)
    if field.type_ is int:
        return _number(text)
    return _chosen(field, field.setting.spelling(text))


def from_yaml(field: SettingField, value: object) -> object:
    """Parse a value of the settings file.

    Raises: ValueError; the message says what is expected.
    """
    is_number = field.type_ is int and not field.is_duration
    expected = bool if field.type_ is bool else int if is_number else str
    if not isinstance(value, expected) or (is_number and isinstance(value, bool)):
        message = f"expected {_expectation(field)}, got {_described(value)}"
        raise ValueError(message)
    return from_text(field, value) if isinstance(value, str) else value


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise ValueError(f"expected a whole number, got {text!r}")
    return int(text)


def boolean(text: str) -> bool:
    """Parse a boolean as Go's flag package does.

    Raises: ValueError.
    """
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"expected true or false, got {text!r}")


def duration_seconds(text: str) -> float:
    """The seconds in a Go duration such as `15m`, `1h30m`, `-1.5s` or `0`.

    Raises: ValueError.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return 0.0
    seconds, at = 0.0, 0
    while part := _PART.match(rest, at):  # a search would restart at every digit
        seconds, at = seconds + float(part[1]) * _UNIT_SECONDS[part[2]], part.end()
    if not rest or at < len(rest):
        raise ValueError(f"expected a duration such as 15m or 1h30m, got {text!r}")
    return sign * seconds


def nearest(word: str, choices: tuple[str, ...]) -> str:
    """A suggestion for a misspelt word, such as `; did you mean json?`; "" if no choice is similar."""
    match = get_close_matches(word, choices, n=1)
    return f"; did you mean {match[0]}?" if match else ""


def _duration(field: SettingField, text: str) -> float | int:
    seconds = duration_seconds(text)
    if field.type_ is float:
        return seconds
    if seconds != int(seconds):
        raise ValueError(f"expected whole seconds, got {text!r}")
    return int(seconds)


def _chosen(field: SettingField, word: str) -> str:
    if get_origin(field.type_) is not Literal:
        return word
    choices: tuple[str, ...] = get_args(field.type_)
    if word not in choices:
        raise ValueError(f"expected {_expectation(field)}, got {word!r}{nearest(word, choices)}")
    return word


def _expectation(field: SettingField) -> str:
    if field.is_duration:
        return "a duration such as 15m"
    if field.type_ is bool:
        return "true or false"
    if field.type_ is int:
        return "a whole number"
    if get_origin(field.type_) is Literal:
        return "one of " + ", ".join(get_args(field.type_))
    return "a string"


def _described(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else f"{value!r}"
