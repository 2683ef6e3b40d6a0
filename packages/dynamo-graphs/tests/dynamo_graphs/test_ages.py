"""Times are told in the largest unit that fits, and an odd one is told as it is."""

from datetime import UTC, datetime

import pytest

from dynamo_graphs.ages import ago, listed, short_age, since

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time", "length", "short"),
    [
        ("2026-01-02T12:00:00Z", "0 seconds", "0s"),
        ("2026-01-02T11:59:01Z", "59 seconds", "59s"),
        ("2026-01-02T11:59:00Z", "1 minute", "1m"),
        ("2026-01-02T07:00:00+01:00", "6 hours", "6h"),
        ("2025-12-31T12:00:00Z", "2 days", "2d"),
        ("2026-01-02T12:00:09Z", "0 seconds", "0s"),  # the clock of the server is ahead
    ],
)
def test_an_age_is_shown_in_its_largest_unit(time: str, length: str, short: str) -> None:
    assert f" since {time} ({length})" == since(time, NOW)
    assert f" at {time} ({length} ago)" == ago(time, NOW)
    assert short == short_age(time, NOW)


@pytest.mark.parametrize("odd", ["yesterday", "2026-01-02T11:00:00", None])
def test_a_timestamp_without_a_time_zone_and_a_missing_one_have_no_age(odd: str | None) -> None:
    expected = (f" since {odd}", f" at {odd}", "-") if odd else ("", "", "-")
    assert expected == (since(odd, NOW), ago(odd, NOW), short_age(odd, NOW))


def test_a_long_list_shows_how_many_names_are_left_out() -> None:
    assert ("a, b", "a and 2 more") == (listed(["a", "b"], 2), listed(["a", "b", "c"], 1))
