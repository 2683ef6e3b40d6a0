"""`bento.yaml` of unknown origin: what is read, and what is refused with the place of the mistake."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_legacy.render import (
    MOST_BYTES,
    MOST_SERVICES,
    GraphConfigError,
    merge_patched,
    merged_variables,
    parse_graph_config,
)


def test_unknown_keys_are_ignored_and_numbers_are_amounts() -> None:
    text = "name: x\nservices: [{name: A, models: [], config: {resources: {cpu: 2, gpu: '1'}}}]"
    [service] = parse_graph_config(text).services
    assert service.resources == {"cpu": "2", "gpu": "1"}
    assert service.autoscaling is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one document, found 0"),
        ("a: 1\n---\nb: 2", "expected one document, found 2"),
        ("[1]", "the document: expected a mapping"),
        ("service: [1]", "service: expected a string"),
        ("services: {}", "services: expected a list"),
        ("services: [1]", r"services\[0\]: expected a mapping"),
        ("services: [{}]", r"services\[0\].name: missing name"),
        ("services: [{name: A}, {name: a}]", '"A" and "a" are the same name in lower case'),
        (
            "services: [{name: A, config: {dynamo: {enabled: 1}}}]",
            r"services\[0\].config.dynamo.enabled: expected true or false",
        ),
        (
            "services: [{name: A, config: {resources: {cpu: [1]}}}]",
            'resources.cpu: expected an amount such as "2"',
        ),
        (
            "services: [{name: A, config: {autoscaling: {min_replicas: -1}}}]",
            "autoscaling.min_replicas: expected a number of replicas",
        ),
        ("a: {b: ", "bento.yaml:"),
        (f"services: [{', '.join('{name: x}' for _ in range(MOST_SERVICES + 1))}]", "too many"),
        ("#" * (MOST_BYTES + 1), "too large"),
        ("a: &a [1,1,1,1,1,1,1,1]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(12)
        ), "bento.yaml"),
        ("[" * 50_000, "bento.yaml"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(text: str, message: str) -> None:
    with pytest.raises(GraphConfigError, match=message):
        parse_graph_config(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(GraphConfigError):
        parse_graph_config(text)


_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
_VARIABLES = st.lists(
    st.builds(lambda name, value: {"name": name, "value": value}, st.sampled_from("abcd"), st.text()),
    unique_by=lambda entry: entry["name"],
    max_size=4,
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(field) for key, field in value.items() if field is not None}
    return value


@given(_VALUES, _VALUES)
def test_a_patch_twice_is_the_patch_once_and_one_of_nothing_has_no_nulls(value: Any, patch: Any) -> None:
    once = merge_patched(value, patch)
    assert merge_patched(once, patch) == once
    assert merge_patched(None, patch) == without_nulls(patch)
    if isinstance(value, dict):
        assert merge_patched(value, {}) == value


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
