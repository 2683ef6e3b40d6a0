"""Points in time as people read them: the time itself, and how long ago it was."""

from datetime import datetime, timedelta

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def age(time: str | None, now: datetime) -> timedelta | None:
    """How long ago it was. None means: that is not known, or no time with a zone."""
    try:
        return now - datetime.fromisoformat(time) if time else None
    except (ValueError, TypeError):
        return None


def since(time: str | None, now: datetime) -> str:
    """` since TIME (5 minutes)`; "" if no time is known."""
    length = _length(age(time, now))
    return f" since {time}{f' ({length})' if length else ''}" if time else ""


def ago(time: str | None, now: datetime) -> str:
    """` at TIME (5 minutes ago)`; "" if no time is known."""
    length = _length(age(time, now))
    return f" at {time}{f' ({length} ago)' if length else ''}" if time else ""


def _length(passed: timedelta | None) -> str:
    if passed is None:
        return ""
    seconds = max(int(passed.total_seconds()), 0)
    size, name = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    count = seconds // size
    return f"{count} {name}{'' if count == 1 else 's'}"


def short_age(time: str | None, now: datetime) -> str:
    """How long ago it was, as `kubectl get` shows it, such as `5m`; `-` if that is not known."""
    length = _length(age(time, now))
    count, _, unit = length.partition(" ")
    return f"{count}{unit[0]}" if length else "-"
