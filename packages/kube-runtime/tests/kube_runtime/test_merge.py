"""Merging by the list types of a schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.merge import MergeError, merged
from kube_runtime.schema import embedded
from kube_runtime.types.meta import Object

TEXT: Object = {"type": "string"}


def an_object(**fields: Object) -> Object:
    """The schema of an object with these fields."""
    return {"type": "object", "properties": fields}


def a_list(items: Object, **types: Any) -> Object:
    """The schema of a list."""
    return {
        "type": "array",
        "items": items,
        **{f"x-kubernetes-list-{name}": it for name, it in types.items()},
    }


PORT = an_object(
    number={"type": "integer"}, protocol={"type": "string", "default": "TCP"}, name=TEXT, host=TEXT
)
SCHEMA = an_object(
    name=TEXT,
    words=a_list(TEXT, type="set"),
    args=a_list(TEXT, type="atomic"),
    plain=a_list(TEXT),
    ports=a_list(PORT, type="map", **{"map-keys": ["number", "protocol"]}),
    selector={**an_object(a=TEXT, b=TEXT), "x-kubernetes-map-type": "atomic"},
    labels={"type": "object", "additionalProperties": TEXT},
    anything={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    size={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, TEXT]},
)


@pytest.mark.parametrize(
    ("whole", "partial", "expected"),
    [
        ({"name": "a", "size": 1}, {"name": "b"}, {"name": "b", "size": 1}),
        ({"labels": {"a": "1", "b": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}),
        ({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}),
        ({"plain": ["a"]}, {"plain": ["b"]}, {"plain": ["b"]}),
        ({"words": ["a", "b"]}, {"words": ["c", "b", "c"]}, {"words": ["a", "b", "c"]}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "2"}}, {"selector": {"b": "2"}}),
        (
            {"ports": [{"number": 1, "name": "x"}, {"number": 1, "protocol": "UDP"}]},
            {"ports": [{"number": 2}, {"number": 1, "protocol": "TCP", "host": "h"}]},
            {
                "ports": [
                    {"number": 1, "name": "x", "protocol": "TCP", "host": "h"},
                    {"number": 1, "protocol": "UDP"},
                    {"number": 2},
                ]
            },
        ),
        (
            {"anything": {"a": {"b": 1}, "c": [1]}},
            {"anything": {"a": {"d": None}, "c": [2]}},
            {"anything": {"a": {"b": 1, "d": None}, "c": [2]}},
        ),
    ],
)
def test_each_kind_of_value_is_merged_in_its_own_way(
    whole: Object, partial: Object, expected: Object
) -> None:
    assert expected == merged(whole, partial, SCHEMA)


@pytest.mark.parametrize(
    ("partial", "path", "text"),
    [
        ({"name": None}, ("name",), "must not be null; field deletion is not supported"),
        ({"labels": {"a": None}}, ("labels", "a"), "must not be null; field deletion is not supported"),
        ({"size": None}, ("size",), "must not be null; field deletion is not supported"),
        ({"nmae": "a"}, ("nmae",), "is not a field of this version"),
        ({"args": "a"}, ("args",), "must be a list"),
        ({"labels": ["a"]}, ("labels",), "must be an object"),
        ({"ports": [{"name": "x"}]}, ("ports", 0), "must be an object with number and protocol"),
        ({"ports": [{"number": 1}] * 2}, ("ports", 1), "is the second entry with number 1"),
    ],
)
def test_what_cannot_be_merged_is_named(partial: Object, path: tuple[str | int, ...], text: str) -> None:
    with pytest.raises(MergeError) as error:
        merged({}, partial, SCHEMA)
    assert (path, text) == (error.value.path, error.value.text)


TEXTS = st.text("abc", min_size=1, max_size=3)
PORTS = st.fixed_dictionaries(
    {"number": st.integers(1, 3), "protocol": st.sampled_from(["TCP", "UDP"])}, optional={"name": TEXTS}
)


def _identity(port: Any) -> tuple[int, str]:
    return port["number"], port["protocol"]


OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXTS,
        "words": st.lists(TEXTS, unique=True),
        "args": st.lists(TEXTS),
        "ports": st.lists(PORTS, unique_by=_identity),
        "selector": st.dictionaries(st.sampled_from("ab"), TEXTS),
        "labels": st.dictionaries(TEXTS, TEXTS),
    },
)


@given(OBJECTS, OBJECTS)
def test_a_merge_has_all_of_the_partial_object_and_a_second_one_changes_nothing(
    whole: Object, partial: Object
) -> None:
    once = merged(whole, partial, SCHEMA)
    assert once == merged(once, partial, SCHEMA)
    assert whole == merged(whole, {}, SCHEMA)
    assert {**whole, **partial}.keys() == once.keys()
    for name in ("name", "args", "selector"):
        if name in partial:
            assert partial[name] == once[name]
    assert {*partial.get("words", ())} | {*whole.get("words", ())} == {*once.get("words", ())}


def test_containers_of_a_pod_are_merged_by_name() -> None:
    whole = {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}], "args": ["a"]}]}
    partial = {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}], "args": ["b"]}]}
    (container,) = merged(whole, partial, embedded("PodSpec"))["containers"]
    assert [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}] == container["env"]
    assert ["b"] == container["args"]
