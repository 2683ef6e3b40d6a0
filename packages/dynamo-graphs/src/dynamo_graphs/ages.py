"""Times and counts in words, such as `5 minutes`."""

from collections.abc import Sequence
from datetime import datetime, timedelta

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def age(time: str | None, now: datetime) -> timedelta | None:
    """The time since `time`; None if it is unknown or has no time zone."""
    try:
        return now - datetime.fromisoformat(time) if time else None
    except (ValueError, TypeError):
        return None


def since(time: str | None, now: datetime) -> str:
    """` since TIME (5 minutes)`; "" without a time."""
    length = _length(age(time, now))
    return f" since {time}{f' ({length})' if length else ''}" if time else ""


def ago(time: str | None, now: datetime) -> str:
    """` at TIME (5 minutes ago)`; "" without a time."""
    length = _length(age(time, now))
    return f" at {time}{f' ({length} ago)' if length else ''}" if time else ""


def counted(number: int, noun: str) -> str:
    """`1 minute`, `2 minutes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many there are more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _length(passed: timedelta | None) -> str:
    if passed is None:
        return ""
    seconds = max(int(passed.total_seconds()), 0)
    size, name = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    return counted(seconds // size, name)


def short_age(time: str | None, now: datetime) -> str:
    """The time since `time` as `kubectl get` shows it, such as `5m`; `-` if it is unknown."""
    length = _length(age(time, now))
    count, _, unit = length.partition(" ")
    return f"{count}{unit[0]}" if length else "-"


_MOST = 3
"""Texts that are shown of many."""


def first_of(texts: Sequence[str]) -> list[str]:
    """The first texts, and how many there are more."""
    more = len(texts) - _MOST
    return [*texts[:_MOST], *([f"and {more} more"] if more > 0 else ())]


def some_of(texts: Sequence[str], separator: str = "; ") -> str:
    """The texts of `first_of` in one line."""
    return separator.join(first_of(texts))
