"""Metrics of frontends: a line without a value is skipped, and the last of several counts."""

import pytest

from dynamoctl.frontend.load import sample_of


@pytest.mark.parametrize(
    "line",
    [
        "requests_total",
        "requests_total x",
        "requests_total NaN",
        "requests_total{",
        "requests_total{} ",
        'requests_total{a="b"} +Inf',
        "requests_total_created 5",
    ],
)
def test_a_line_that_is_no_value_is_skipped(line: str) -> None:
    assert {} == sample_of(f"dynamo_frontend_{line}")


def test_the_last_of_several_values_is_no_time() -> None:
    assert {"requests_total": 5.0} == sample_of("dynamo_frontend_requests_total 5 1790000000000")
