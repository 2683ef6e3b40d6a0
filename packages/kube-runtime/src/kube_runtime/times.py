"""Times of the API, RFC 3339 in UTC, and the event loop's clock."""

import asyncio
from datetime import UTC, datetime


def loop_time() -> float:
    """Seconds on the clock of the running event loop, from an arbitrary start."""
    return asyncio.get_running_loop().time()


def rfc3339(time: datetime) -> str:
    """Format a time in whole seconds, such as `2026-11-22T12:00:00Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_now() -> str:
    """The current time in whole seconds."""
    return rfc3339(datetime.now(UTC))


def microtime(time: datetime) -> str:
    """Format a time in microseconds, as in a Lease."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text: str | None) -> datetime | None:
    """Parse a time, in UTC; None if it is missing, invalid or before 1970.

    Users may write Leases and statuses. The API server accepts `0001-01-01T00:00:00+99:99` as `date-time`.
    """
    try:
        time = datetime.fromisoformat(text or "")
        return time.astimezone(UTC) if time.tzinfo and time.year >= 1970 else None  # noqa: PLR2004
    except (ValueError, OverflowError):
        return None


def seconds_between(earlier: str | None, later: datetime) -> float | None:
    """The seconds from one time to another; None if the first is missing or invalid."""
    time = instant(earlier)
    return None if time is None else (later - time).total_seconds()
