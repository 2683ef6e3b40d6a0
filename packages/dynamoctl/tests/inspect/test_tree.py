"""The tree of a graph's objects: what belongs to what, what is ready, and why a pod is not."""

import io
import json
from collections import defaultdict
from typing import Any

import msgspec
from rich.console import Console

from dynamo_graphs.members import tree_of
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodClique, PodCliqueScalingGroup
from dynamoctl.inspect.tree import drawn
from kube_runtime.types.kinds import Pod, Role
from kube_runtime.types.meta import Object, R, Resource
from stated import NOW, READY, THEN, a_condition, a_graph

GRAPH = a_graph(READY)


def an_object(type_: type[R], name: str, owner: str = "u-chat", **fields: Any) -> R:
    owners = [{"kind": "x", "name": "x", "uid": owner}]
    metadata = {"name": name, "uid": f"u-{name}", "ownerReferences": owners}
    body = {"metadata": {**metadata, **fields.pop("metadata", {})}, **fields}
    return msgspec.json.decode(json.dumps(body), type=type_)


def a_pod(name: str, *, ready: bool = True, owner: str = "u-rs", **status: Any) -> Pod:
    said = a_condition("Ready", "True" if ready else "False", "")
    known = {"phase": "Running", "conditions": [said], **status}
    return an_object(Pod, name, owner, spec={"nodeName": "n"}, status=known)


def a_tree(*objects: Resource) -> Object:
    by_owner = defaultdict(list)
    for each in objects:
        by_owner[each.metadata.owner_references[0].uid].append(each)
    return tree_of(GRAPH, by_owner, now=NOW)


def printed(node: Object) -> str:
    output = io.StringIO()
    Console(file=output, width=1000).print(drawn(node))
    return output.getvalue()


def lines(*objects: Resource) -> list[str]:
    return [each.strip("│├└─ \n") for each in printed(a_tree(*objects)).splitlines()]


def test_a_tree_names_the_versions_in_which_users_read() -> None:
    by_owner = {GRAPH.metadata.uid: [an_object(Pod, "p")]}
    node = tree_of(
        GRAPH, by_owner, now=NOW, version_of=lambda kind: "v1beta1" if kind == GRAPH.KIND else kind.version
    )
    assert ("nvidia.com/v1beta1", "v1") == (node["apiVersion"], node["children"][0]["apiVersion"])


def test_an_unscheduled_pod_shows_the_message_of_the_scheduler() -> None:
    said = a_condition("PodScheduled", "False", "Unschedulable", "0/3 nodes: no nvidia.com/gpu")
    body = {"phase": "Pending", "conditions": [said]}
    found = lines(an_object(Pod, "p", status=body))[1]
    assert "✘ Pod p  Pending; Unschedulable: 0/3 nodes: no nvidia.com/gpu" == found


def test_workloads_of_other_projects_have_their_counts() -> None:
    sets = an_object(LeaderWorkerSet, "l", spec={"replicas": 2}, status={"readyReplicas": 1})
    clique = an_object(PodClique, "c", spec={"replicas": 2}, status={"readyReplicas": 2})
    group = an_object(PodCliqueScalingGroup, "g", spec={"replicas": 1})
    _, *found = lines(sets, clique, group)
    assert ["✘ PodCliqueScalingGroup g  0/1", "✔ PodClique c  2/2", "✘ LeaderWorkerSet l  1/2"] == found


def test_an_object_with_a_deletion_timestamp_is_being_deleted() -> None:
    role = an_object(Role, "role", metadata={"deletionTimestamp": THEN})
    assert "Role role  is being deleted" == lines(role)[1]


def test_a_hostile_name_or_message_reaches_no_terminal() -> None:
    last = {"exitCode": 1, "message": "\x1b]0;owned\x07\x9b31m\u202eevil\nline"}
    status = {"name": "main", "ready": False, "state": {"terminated": last}}
    text = printed(a_tree(a_pod("p\x1b[2J", ready=False, owner="u-chat", containerStatuses=[status])))
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert "owned" in text


def test_objects_that_own_each_other_end() -> None:
    one, two = an_object(Role, "a", "u-b"), an_object(Role, "b", "u-a")
    start = an_object(Role, "a", "u-chat")
    assert 4 == len(lines(start, one, two))


def test_the_tree_as_json() -> None:
    found = a_tree(a_pod("p", owner="u-chat"))
    pod = {"apiVersion": "v1", "kind": "Pod", "name": "p", "ready": True, "note": "Running", "children": []}
    assert [pod] == found["children"]
