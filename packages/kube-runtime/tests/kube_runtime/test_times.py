"""Times in Leases and statuses, which users may write."""

from datetime import UTC, datetime

import pytest

from kube_runtime.times import instant, rfc3339, seconds_between

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T00:00:00+99:99",
        "2026-01-01T00:00:00x5Z",
        "2026-01-01T00:00:00",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:00",
        "9999-12-31T23:59:59-23:00",
        "soon",
        "",
        None,
    ],
)
def test_an_invalid_time_is_none(text: str | None) -> None:
    """The API server accepts the first five as `date-time`."""
    assert None is instant(text)
    assert None is seconds_between(text, NOW)


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00.123456789Z", "2026-01-01T05:30:00+05:30"])
def test_a_time_is_in_utc(text: str) -> None:
    time = instant(text)
    assert time is not None
    assert "2026-01-01T00:00:00Z" == rfc3339(time)
