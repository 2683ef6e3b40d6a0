"""The way back to a former spec: pure parts of `history` and `undo`."""

from typing import Any

import pytest

from dynamo_graphs.history import revisions_of, undone
from dynamo_graphs.ownership import merge_patch
from kube_runtime.types.meta import Object
from simulated.storage import merged

OWNER = {"uid": "uid", "controller": True}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"a": 1}, {}),
        ({}, {"a": {"b": {}}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": [1]}),
        ({"a": [1, 2]}, {"a": {"b": {"c": [3]}}}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 1}}}),
        ({"a": 0, "b": False}, {"a": False, "b": 0}),
    ],
)
def test_the_patch_makes_one_of_the_other(before: Object, after: Object) -> None:
    assert after == merged(before, merge_patch(before, after))


def test_alike_is_no_patch() -> None:
    assert {} == merge_patch({"a": {"b": [1]}}, {"a": {"b": [1]}})


def test_an_undo_keeps_the_numbers_and_the_restart() -> None:
    live = {
        "restart": {"id": "now"},
        "backendFramework": "sglang",
        "services": {"A": {"replicas": 5, "gpu": 1}, "B": {"gpu": 2}, "New": {}},
    }
    old = {
        "replicas": 2,
        "backendFramework": "vllm",
        "services": {"A": {"replicas": 1}, "B": {"replicas": 3}, "Gone": {"replicas": 4}},
    }
    assert {
        "restart": {"id": "now"},
        "backendFramework": "vllm",
        "services": {"A": {"replicas": 5}, "B": {}, "Gone": {"replicas": 4}},
    } == undone(live, old)


def revision(number: int, *owners: Any) -> Object:
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": list(owners)}
    return {"revision": number, "metadata": metadata, "data": {"spec": {}}}


def test_revisions_of_other_owners_are_left_out() -> None:
    other, no_controller = {"uid": "other", "controller": True}, {"uid": "uid"}
    found = [revision(10, OWNER), revision(9, OWNER), revision(11, other), revision(12, no_controller)]
    assert [9, 10] == [each.number for each in revisions_of("uid", [*found, revision(13)])]
