"""Quantities are numbers, however they are written."""

from decimal import Decimal

import pytest

from kube_runtime.types.meta import amount


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("1", "1"),
        (1, "1"),
        ("1000m", "1"),
        ("0.5", "0.5"),
        (".5", "0.5"),
        ("8Gi", str(8 * 1024**3)),
        ("2Ei", str(2 * 1024**6)),
        ("2E", "2e18"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("-2k", "-2000"),
        ("100u", "0.0001"),
        ("0." + "0" * 40 + "1", "1e-41"),
        ("9223372036854775807", "9223372036854775807"),
    ],
)
def test_the_number_of_a_quantity(quantity: str | int, value: str) -> None:
    assert Decimal(value) == amount(quantity)


@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "-1e999999999",
        "1e1000000000000",
        "1e-999999999999999999999",
        "1" * 5000,
        "0." + "1" * 5000,
        "1e" + "1" * 5000,
        "9223372036854775808",
    ],
)
def test_an_amount_beyond_what_kubernetes_counts_is_none(text: str) -> None:
    assert amount(text) is None


@pytest.mark.parametrize("text", ["", "one", "1 Gi", "1GiB", "0x1", "1_000", "Gi", "1K"])
def test_what_is_not_a_quantity_has_no_number(text: str) -> None:
    assert amount(text) is None
