"""Times of the API: RFC 3339 in UTC, in whole seconds, or in microseconds in Leases."""

from datetime import UTC, datetime


def rfc3339(time: datetime) -> str:
    """Format a time in whole seconds, such as `2026-11-22T12:00:00Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_now() -> str:
    """The current time in whole seconds."""
    return rfc3339(datetime.now(UTC))


def microtime(time: datetime) -> str:
    """Format a time in microseconds, as in a Lease."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_between(earlier: str | None, later: datetime) -> float | None:
    """The seconds from one time to another; None if the first is missing or invalid."""
    try:
        return (later - datetime.fromisoformat(earlier or "")).total_seconds()
    except (
        ValueError,
        TypeError,
        OverflowError,
    ):  # any user may write a Lease: no zone, year 0
        return None
