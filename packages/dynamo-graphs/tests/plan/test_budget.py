"""Surge and unavailability of a rollout."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.features.rollouts.plan import Budget, budget, is_recreated
from specs import a_service

SURGE = "nvidia.com/deployment-rolling-update-max-surge"
UNAVAILABLE = "nvidia.com/deployment-rolling-update-max-unavailable"


def spec(
    annotations: dict[str, str] | None = None, pods: dict[str, str] | None = None
) -> ComponentSpec:
    extra = {"annotations": pods or {}}
    service = a_service(annotations=annotations or {}, extraPodMetadata=extra)
    return msgspec.convert(service, ComponentSpec)


def bounds(surge: str, unavailable: str) -> ComponentSpec:
    return spec({SURGE: surge, UNAVAILABLE: unavailable})


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (0, Budget(1, 0)),
        (1, Budget(1, 0)),
        (3, Budget(1, 0)),
        (4, Budget(1, 1)),
        (10, Budget(3, 2)),
    ],
)
def test_a_quarter_each_unless_it_is_said(wanted: int, expected: Budget) -> None:
    assert expected == budget(spec(), wanted)


def test_surge_is_rounded_up_and_unavailable_down() -> None:
    assert Budget(2, 1) == budget(bounds("34%", "34%"), 5)


def test_numbers_are_taken_as_they_are() -> None:
    assert Budget(7, 2) == budget(bounds("7", "2"), 3)


def test_no_more_can_be_missing_than_are_wanted() -> None:
    assert Budget(0, 2) == budget(bounds("0", "9"), 2)


def test_nothing_allowed_is_lifted_to_a_surge_of_one() -> None:
    assert Budget(1, 0) == budget(bounds("0", "0"), 5)


def test_what_is_said_of_the_pods_wins() -> None:
    assert Budget(3, 1) == budget(spec({SURGE: "1"}, {SURGE: "3"}), 4)


@given(st.text(max_size=6), st.text(max_size=6), st.integers(0, 100))
def test_whatever_is_said_something_can_be_replaced(
    surge: str, unavailable: str, wanted: int
) -> None:
    found = budget(bounds(surge, unavailable), wanted)
    assert found.surge + found.unavailable > 0


def test_only_the_exact_word_recreates() -> None:
    strategy = "nvidia.com/deployment-strategy"
    assert is_recreated(spec({strategy: "Recreate"}))
    assert not is_recreated(spec({strategy: "recreate"}))
    assert not is_recreated(spec())
