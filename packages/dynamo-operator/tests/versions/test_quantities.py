"""Quantities are written as the Go operator writes them, and compared by value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.versions.quantities import canonical, is_quantity, is_same, is_zero, text_of
from kube_runtime.types.meta import amount

REWRITTEN = {
    "1024Mi": "1Gi",
    "8Mi": "8Mi",
    "2.5Gi": "2560Mi",
    "0.5Gi": "512Mi",
    "0.1Ki": "102400m",
    "0Gi": "0",
    "1000m": "1",
    "0.5": "500m",
    "1.5": "1500m",
    ".5": "500m",
    "1000": "1k",
    "1000000": "1M",
    "0.1m": "100u",
    "1e2": "100",
    "2000e3": "2e6",
    "-1000m": "-1",
    "00": "0",
    "1n": "1n",
    "0.1n": "1n",
}
KEPT = (
    "0",
    "1",
    "02",
    "+1",
    "1e3",
    "1.500",
    "100m",
    "1000Mi",
    "12E",
    "80Gi",
    "5.",
    "",
    "x",
    "1 Gi",
    "9" * 5000,
)


@pytest.mark.parametrize(("typed", "written"), REWRITTEN.items())
def test_some_quantities_are_rewritten(typed: str, written: str) -> None:
    assert written == canonical(typed)


@pytest.mark.parametrize("typed", KEPT)
def test_others_are_kept_as_typed(typed: str) -> None:
    assert typed == canonical(typed)


def test_a_number_is_its_text() -> None:
    assert ["2", "1k", "500m"] == [*map(canonical, (2, 1000, 0.5))]
    assert ["2", "0.5", "100000"] == [*map(text_of, (2, 0.5, 1e5))]


def test_quantities_are_compared_by_value() -> None:
    assert is_same("1000m", 1)
    assert is_same("1024Mi", "1Gi")
    assert not is_same("1G", "1Gi")
    assert is_zero("0Gi")
    assert is_zero(0)
    assert not is_zero("1n")


NUMBERS = st.from_regex(r"[+-]?[0-9]{1,6}(\.[0-9]{0,4})?", fullmatch=True)
SUFFIXES = st.sampled_from(["", *"munkMGT", "Ki", "Mi", "Gi", "e3", "e-2", "E1"])


@given(NUMBERS, SUFFIXES)
def test_what_is_written_has_the_same_value_and_is_written_the_same_again(number: str, suffix: str) -> None:
    typed = number + suffix
    written = canonical(typed)
    assert written == canonical(written)
    value, again = amount(typed), amount(written)
    assert value is not None
    assert again is not None
    assert abs(value - again) < amount("1n")  # type: ignore[operator]  # what is below is rounded up


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    assert canonical(text) == text or is_quantity(text)
