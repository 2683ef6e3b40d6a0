"""Times, durations and counts as people read and write them."""

import re
from datetime import datetime, timedelta

from cyclopts import CycloptsError

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))

_LONGEST_INTERVAL = 3600
_DURATION = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


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


def _length(passed: timedelta | None) -> str:
    if passed is None:
        return ""
    seconds = max(int(passed.total_seconds()), 0)
    size, name = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    count = seconds // size
    return counted(count, name)


def short_age(time: str | None, now: datetime) -> str:
    """The time since `time` as `kubectl get` shows it, such as `5m`; `-` if it is unknown."""
    length = _length(age(time, now))
    count, _, unit = length.partition(" ")
    return f"{count}{unit[0]}" if length else "-"


def seconds(duration: str) -> int:
    """A duration such as `10m`, in seconds.

    Raises: CycloptsError.
    """
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise CycloptsError(
            f'invalid duration "{duration}" (expected a number and s, m, h or d, for example 10m)'
        )
    return int(match[1]) * _SECONDS[match[2]]


def interval_seconds(duration: str) -> int:
    """The time between two readings of metrics, in seconds.

    Raises: CycloptsError.
    """
    length = seconds(duration)
    if not 1 <= length <= _LONGEST_INTERVAL:
        raise CycloptsError(f'invalid interval "{duration}" (expected 1s to 1h, for example 5s)')
    return length
