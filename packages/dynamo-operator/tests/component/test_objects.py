"""What an object has of the operator, and what of the user."""

from copy import deepcopy
from typing import Any

import pytest

from dynamo_operator.component.objects import merged, merged_environment, merged_probe, pruned
from kube_runtime.types.meta import Object


@pytest.mark.parametrize(
    ("default", "user", "result"),
    [
        (60, 0, 0),
        (True, False, False),
        (60, None, 60),
        ("main", "", "main"),
        ("main", "own", "own"),
        (["a"], [], ["a"]),
        (["a"], ["b", "c"], ["b", "c"]),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 0}}, {"a": {"b": 0, "c": 2}}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_a_value_of_the_user_overrides_the_default(default: Any, user: Any, result: Any) -> None:
    before = deepcopy(default)
    assert result == merged(default, user)
    assert before == default


LIVE = {"httpGet": {"path": "/live", "port": "system"}, "periodSeconds": 5, "timeoutSeconds": 4}


@pytest.mark.parametrize(
    ("user", "result"),
    [
        ({"periodSeconds": 20}, {**LIVE, "periodSeconds": 20}),
        (
            {"exec": {"command": ["true"]}},
            {"exec": {"command": ["true"]}, "periodSeconds": 5, "timeoutSeconds": 4},
        ),
        ({"httpGet": {"path": "/own", "port": 8080}}, {**LIVE, "httpGet": {"path": "/own", "port": 8080}}),
        ({"httpGet": {"path": "/own"}}, {**LIVE, "httpGet": {"path": "/own", "port": "system"}}),
    ],
)
def test_a_probe_keeps_one_handler(user: Any, result: Any) -> None:
    assert result == merged_probe(LIVE, user)


def test_variables_are_sorted_and_the_stronger_entry_wins_whole() -> None:
    low: list[Object] = [{"name": "B", "value": "low"}, {"name": "A", "value": "low"}]
    high: list[Object] = [
        {"name": "B", "valueFrom": {"fieldRef": {}}},
        {"name": "C"},
        {"name": "C", "value": ""},
    ]
    assert [
        {"name": "A", "value": "low"},
        {"name": "B", "valueFrom": {"fieldRef": {}}},
        {"name": "C", "value": ""},
    ] == merged_environment(low, high)


def test_nulls_and_empty_lists_are_pruned() -> None:
    given = {"a": None, "b": [], "c": {"d": None}, "e": [None, {"f": None}], "g": "", "h": 0}
    assert {"c": {}, "e": [{}], "g": "", "h": 0} == pruned(given)
