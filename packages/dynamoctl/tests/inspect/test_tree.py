"""The tree of a graph's objects: what belongs to what, what is ready, and why a pod is not."""

import asyncio
import io
import json
from collections import defaultdict
from typing import Any

import msgspec
import pytest
from rich.console import Console

from dynamo_graphs.members import Members, members, tree_of
from dynamo_graphs.reader import Missing
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodClique, PodCliqueScalingGroup
from dynamoctl.inspect.top import print_top
from dynamoctl.inspect.tree import drawn
from dynamoctl.inspect.why import print_reasons
from dynamoctl.options import Where
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.types.kinds import Pod, Role
from kube_runtime.types.meta import Key, Object, R, Resource
from scripted.odd_server import odd_server
from scripted.transport import answer
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


def test_a_pod_without_a_node_has_the_words_of_the_scheduler() -> None:
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


def test_what_is_going_says_so() -> None:
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


def test_the_same_for_machines() -> None:
    found = a_tree(a_pod("p", owner="u-chat"))
    pod = {"kind": "Pod", "name": "p", "ready": True, "note": "Running", "children": []}
    assert [pod] == found["children"]


class Cluster:
    """An API server with some lists; what is asked of it is kept."""

    def __init__(self, lists: dict[str, list[Object]], refused: tuple[str, ...] = ()) -> None:
        self.lists = lists
        self.refused = refused
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Answer:
        self.asked.append(request)
        plural = request.path.rpartition("/")[2]
        code = 200
        body: Object = {"metadata": {"resourceVersion": "1"}, "items": self.lists.get(plural)}
        if request.path == "/apis":
            body = {"groups": [{"name": each} for each in ("apps", "nvidia.com")]}
        elif plural in self.refused:
            code, body = 403, {"kind": "Status", "message": f"no {plural} for you", "code": 403}
        elif plural not in self.lists:
            code, body = 404, {"kind": "Status", "message": "no such kind", "code": 404}

        return answer(code, body)


async def found_in(cluster: Cluster) -> Members:
    return await members(Client(cluster), Key("prod", "chat"))


async def test_kinds_that_are_served_are_asked_for_and_pods_by_their_graph() -> None:
    cluster = Cluster({"pods": []})
    assert () == (await found_in(cluster)).unread
    assert not [each for each in cluster.asked if "grove.io" in each.path or "leaderworkerset" in each.path]
    (query,) = (each.query for each in cluster.asked if each.path.endswith("/pods"))
    assert "nvidia.com/dynamo-graph-deployment-name=chat" == query["labelSelector"]
    assert "500" == query["limit"]


async def test_a_kind_that_may_not_be_listed_is_named_once() -> None:
    owners = [{"kind": "x", "name": "x", "uid": "u-chat"}]
    deployment = {"metadata": {"name": "d", "ownerReferences": owners}}
    cluster = Cluster({"deployments": [deployment]}, refused=("pods", "services"))
    found = await found_in(cluster)
    assert ["d"] == [each.metadata.name for each in found.by_owner["u-chat"]]
    assert {f"cannot list {it}: no {it} for you" for it in cluster.refused} == set(found.unread)


HERE = Where(namespace="prod")


ODD = "warning: left out: dynamographdeployments.nvidia.com prod/odd: "


def test_top_and_why_name_it_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd_server(monkeypatch)
    options = {"everywhere": False, "watch": False}
    asyncio.run(print_top("", HERE, "text", **options, interval_seconds=0))
    printed = capsys.readouterr()
    assert "prod/chat" in printed.out
    assert 1 == printed.err.count(ODD)
    assert 1 == asyncio.run(print_reasons("", HERE, "text", every=True))
    printed = capsys.readouterr()
    assert 1 == printed.err.count(ODD)
    assert "1 not ready, 2 unreadable\n" in printed.err


def test_a_name_like_its_own_is_suggested(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd_server(monkeypatch)
    with pytest.raises(Missing, match='did you mean "odd"'):
        asyncio.run(print_reasons("od", HERE, "text"))
    assert "" == capsys.readouterr().err
