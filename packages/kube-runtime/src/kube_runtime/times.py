"""Times as the API has them: RFC 3339, UTC; whole seconds, or microseconds in Leases.

The content of a Lease may come from any user who may write it: the year 0 is valid for the API server and
is not a time in Python.
"""

from datetime import UTC, datetime


def rfc3339(time: datetime) -> str:
    """That time in whole seconds, such as `2026-11-22T12:00:00Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_now() -> str:
    """The current time in whole seconds."""
    return rfc3339(datetime.now(UTC))


def microtime(time: datetime) -> str:
    """That time as a Lease has it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_between(earlier: str | None, later: datetime) -> float | None:
    """The seconds from one time to another. None means: the first is missing, or cannot be read."""
    try:
        return (later - datetime.fromisoformat(earlier or "")).total_seconds()
    except (ValueError, TypeError, OverflowError):  # no time, one without a zone, or out of range
        return None
