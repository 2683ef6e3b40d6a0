"""Maps that become empty are found, wherever they are."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.apply.drift import without_emptied

JSON: st.SearchStrategy[Any] = st.recursive(
    st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_what_is_the_same_stays_the_same(value: Any) -> None:
    assert {"spec": value} == without_emptied({"spec": value}, {"spec": value})


@given(JSON)
def test_what_is_new_stays_the_same(value: Any) -> None:
    assert {"spec": value} == without_emptied({"spec": value}, {})


def test_a_map_that_was_full_is_left_out() -> None:
    assert {"b": 1} == without_emptied({"a": {}, "b": 1}, {"a": {"x": 1}})
    assert {"a": {}, "b": 1} == without_emptied({"a": {}, "b": 1}, {"a": {}})


def test_items_are_matched_by_what_names_them() -> None:
    wanted = [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    live = [{"name": "b", "emptyDir": {"sizeLimit": "1Gi"}}]
    expected = [{"name": "a", "emptyDir": {}}, {"name": "b"}]
    assert _with_volumes(expected) == without_emptied(_with_volumes(wanted), _with_volumes(live))


def test_a_list_that_is_one_value_stays_as_it_is() -> None:
    wanted: dict[str, Any] = {"rules": [{"match": {}}]}
    assert wanted == without_emptied(wanted, {"rules": [{"match": {"x": 1}}]})


def _with_volumes(volumes: list[Any]) -> Any:
    return {"extraPodSpec": {"volumes": volumes}}
