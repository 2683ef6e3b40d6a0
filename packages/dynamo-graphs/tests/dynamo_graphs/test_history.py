"""The way back to a former spec: pure parts of `history` and `undo`."""

import copy
from typing import Any

import pytest

from dynamo_graphs.history import in_version, revisions_of, undone
from dynamo_graphs.ownership import merge_patch
from dynamo_graphs.reader import Reading
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.seen import seen
from kube_runtime.types.meta import Kind, Object
from simulated.server import Server
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


CHAT: Object = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "chat", "annotations": {"a": "b"}},
    "spec": {
        "components": [
            {
                "name": "Decode",
                "type": "decode",
                "replicas": 2,
                "podTemplate": {
                    "spec": {
                        "volumes": [{"name": "tmp", "emptyDir": {}}],
                        "containers": [
                            {
                                "name": "main",
                                "image": "new",
                                "volumeMounts": [{"name": "tmp", "mountPath": "/data", "readOnly": True}],
                            }
                        ],
                    }
                },
            },
            {"name": "Added", "type": "worker"},
        ]
    },
    "status": {"components": {"Decode": {"componentKind": "Deployment", "replicas": 2}}},
}


def test_an_undo_of_a_graph_in_v1beta1_changes_what_the_revision_says_and_nothing_else() -> None:
    kind = DynamoGraphDeployment.KIND
    later = Kind(kind.group, "v1beta1", kind.name)
    variables = [{"name": "A", "value": "1"}]
    decode = {"envs": variables, "extraPodSpec": {"mainContainer": {"image": "old"}}}
    patch = in_version(Reading(Server()), later, CHAT, {"services": {"Decode": decode, "Added": None}})
    after = merged(CHAT, patch)
    expected = copy.deepcopy(CHAT)
    del expected["spec"]["components"][1]
    expected["spec"]["components"][0]["podTemplate"]["spec"]["containers"][0] |= {
        "image": "old",
        "env": variables,
    }
    assert expected["spec"] == after["spec"]
    # An annotation may keep what conversion would lose; the pods are the same.
    assert seen(expected)["spec"] == seen(after)["spec"]
    assert {"spec": {"a": 1}} == in_version(Reading(Server()), kind, CHAT, {"a": 1})


def revision(number: int, *owners: Any) -> Object:
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": list(owners)}
    return {"revision": number, "metadata": metadata, "data": {"spec": {}}}


def test_revisions_of_other_owners_are_left_out() -> None:
    other, no_controller = {"uid": "other", "controller": True}, {"uid": "uid"}
    found = [revision(10, OWNER), revision(9, OWNER), revision(11, other), revision(12, no_controller)]
    assert [9, 10] == [each.number for each in revisions_of("uid", [*found, revision(13)])]
