"""A live object contains what was applied, whatever the API server and others have added."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.kube.contained import contained

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_everything_contains_itself(value: Any) -> None:
    assert contained(value, value)


@given(st.dictionaries(st.text(max_size=3), JSON), st.dictionaries(st.text(max_size=3), JSON))
def test_fields_that_others_add_do_not_matter(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert contained(ours, {**theirs, **ours})


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.integers(min_value=1), min_size=1),
    st.data(),
)
def test_a_changed_value_is_found(ours: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(ours)))
    assert not contained(ours, {**ours, name: ours[name] + 1})
    assert not contained(ours, {each: ours[each] for each in ours if each != name})


def test_a_zero_value_may_be_left_out_by_the_api_server() -> None:
    assert contained({"a": 0, "b": "", "c": False, "d": {}, "e": [], "f": None}, {})


def test_true_is_not_one() -> None:
    assert not contained({"a": True}, {"a": 1})


def test_quantities_compare_by_amount_where_quantities_stand() -> None:
    assert contained({"limits": {"cpu": "1000m", "x/y": 2}}, {"limits": {"cpu": "1", "x/y": "2"}})
    assert not contained({"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}})
    assert not contained({"env": [{"name": "A", "value": "1000m"}]}, _env("A", "1"))


def test_a_sidecar_that_somebody_injects_stays() -> None:
    live = {"containers": [{"name": "main", "image": "i"}, {"name": "mesh", "image": "m"}]}
    assert contained({"containers": [{"name": "main", "image": "i"}]}, live)


def test_an_extra_argument_does_not_stay() -> None:
    assert not contained({"args": ["a"]}, {"args": ["a", "b"]})


def test_an_extra_item_of_an_atomic_list_does_not_stay() -> None:
    rule = {"verbs": ["get"]}
    assert not contained({"rules": [rule]}, {"rules": [rule, {"verbs": ["delete"]}]})


def test_the_order_of_environment_variables_matters() -> None:
    wanted = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]}
    live = {"env": [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}]}
    assert not contained(wanted, live)


def test_a_default_protocol_does_not_hide_a_port() -> None:
    wanted = {"ports": [{"name": "http", "containerPort": 8000}]}
    live = {"ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]}
    assert contained(wanted, live)


def _env(name: str, value: str) -> dict[str, Any]:
    return {"env": [{"name": name, "value": value}]}
