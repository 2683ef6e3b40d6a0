"""Properties of the two merges."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamo_legacy.render import merge_patched, merged_variables

_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=12,
)
_VARIABLES = st.lists(
    st.builds(
        lambda name, value: {"name": name, "value": value}, st.sampled_from("abcd"), st.text()
    ),
    unique_by=lambda entry: entry["name"],
    max_size=4,
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(field) for key, field in value.items() if field is not None}
    return value


@given(_VALUES, _VALUES)
def test_a_patch_twice_is_the_patch_once(value: Any, patch: Any) -> None:
    once = merge_patched(value, patch)
    assert merge_patched(once, patch) == once


@given(_VALUES)
def test_an_empty_patch_changes_nothing_of_a_map(value: Any) -> None:
    if isinstance(value, dict):
        assert merge_patched(value, {}) == value


@given(_VALUES)
def test_a_patch_of_nothing_is_the_patch_without_nulls(patch: Any) -> None:
    assert merge_patched(None, patch) == without_nulls(patch)


@given(_VARIABLES, _VARIABLES)
def test_variables_are_those_of_both_once_each(
    common: list[dict[str, str]], specific: list[dict[str, str]]
) -> None:
    merged = merged_variables(common, specific)
    values = {entry["name"]: entry["value"] for entry in merged}
    assert len(values) == len(merged)
    expected = {entry["name"]: entry["value"] for entry in (*common, *specific)}
    assert values == expected
    assert merged[: len(common)] == [
        {"name": entry["name"], "value": expected[entry["name"]]} for entry in common
    ]
