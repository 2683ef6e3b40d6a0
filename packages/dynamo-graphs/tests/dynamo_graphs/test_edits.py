"""A number is written into the graph that it was decided for."""

import asyncio
import json
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dynamo_graphs import edits
from dynamo_graphs.edits import Edit, Unwritable
from dynamo_graphs.graph import Cluster, Graph
from dynamo_graphs.reader import Missing, service_of
from dynamo_operator import labels
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment, RollingUpdateStatus
from dynamoctl.commands import change
from dynamoctl.options import Where
from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import Conflict
from kube_runtime.types.meta import Key, Object, R
from scripted.connections import connect_to
from simulated.server import Server

GRAPHS = "/apis/nvidia.com/v1alpha1/dynamographdeployments"
CHAT = Key("prod", "chat")
HERE = Where(namespace="prod")


class Busy(Server):
    """An API server with one graph, which another client changes before each of the next writes."""

    def __init__(self, *changes: Object) -> None:
        super().__init__()
        self.changes = list(changes)
        spec = {"services": {"Decode": {"replicas": 1}, "Frontend": {"replicas": 1}}}
        graph = DynamoGraphDeployment.KIND.manifest(CHAT._asdict(), spec=spec)
        self.storage.create(GRAPHS, graph)

    async def send(self, request: Request) -> Answer:
        if request.method == "PATCH" and self.changes:
            self.storage.merge(GRAPHS, CHAT, self.changes.pop(0))
        return await super().send(request)


@pytest.mark.parametrize(
    ("changes", "error", "left"),
    [
        (
            [{"metadata": {"labels": {"a": "b"}}}, {"spec": {"services": {"X": {}}}}],
            *(None, {"Decode": {"replicas": 3}, "Frontend": {"replicas": 1}, "X": {}}),
        ),
        ([{"spec": {"services": {"Decode": None}}}], Missing, {"Frontend": {"replicas": 1}}),
        (
            [{"metadata": {"labels": {"a": str(each)}}} for each in range(99)],
            *(Conflict, {"Decode": {"replicas": 1}, "Frontend": {"replicas": 1}}),
        ),
    ],
    ids=["read again", "a removed service is not made again", "given up"],
)
def test_a_graph_that_changes_meanwhile(
    changes: list[Object], error: type[Exception] | None, left: Object, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Busy(*changes)
    connect_to(cluster, monkeypatch)
    with pytest.raises(error) if error else nullcontext():
        asyncio.run(change.scale("chat/Decode", replicas=3, where=HERE))
    assert left == cluster.storage.read(GRAPHS, CHAT)["spec"]["services"]


def test_an_undo_of_a_graph_that_changes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Busy({"metadata": {"labels": {"a": "b"}}}, {"spec": {"services": {"X": {}}}})
    connect_to(cluster, monkeypatch)
    graph = cluster.storage.read(GRAPHS, CHAT)["metadata"]
    owner = {"apiVersion": "v1", "kind": "Graph", "name": "chat", "uid": graph["uid"], "controller": True}
    for number, image in enumerate(("old", "new"), 1):
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"chat-{number}",
                "namespace": "prod",
                "ownerReferences": [owner],
                "labels": {labels.GRAPH_REVISION: str(number)},
            },
            "revision": number,
            "data": {"spec": {"services": {"Decode": {"image": image}}}},
        }
        cluster.storage.create("/apis/apps/v1/controllerrevisions", revision)

    Graph("chat").undo(cluster=Cluster(namespace="prod"))
    services = cluster.storage.read(GRAPHS, CHAT)["spec"]["services"]
    assert {"Decode": {"image": "old", "replicas": 1}} == services
    assert len(cluster.requests) < 20


def test_an_edit_without_a_change_sends_no_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Busy()
    connect_to(cluster, monkeypatch)
    asyncio.run(change.suspend("chat", where=HERE))
    asyncio.run(change.suspend("chat", where=HERE))
    asyncio.run(change.scale("chat/Decode", replicas=1, where=HERE))
    assert ["PATCH"] == [each.method for each in cluster.requests if each.method != "GET"]


SIZED = {"name": "DYN_DEPLOYMENT_CONFIG", "value": json.dumps({"Decode": {"ServiceArgs": {"workers": 3}}})}


DECODE = "prod/chat/Decode"
TWICE = "(4 \N{MULTIPLICATION SIGN} spec.replicas 2)"


def a_graph(factor: int | None = None, **worker: Any) -> DynamoGraphDeployment:
    services = {"Decode": {"componentType": "worker", **worker}, "Frontend": {}}
    spec = {"services": services} | ({} if factor is None else {"replicas": factor})
    metadata = {"namespace": "prod", "name": "chat", "uid": "u-chat", "resourceVersion": "7"}
    body = {"metadata": metadata, "spec": spec}
    return msgspec.convert(body, DynamoGraphDeployment)


def an_adapter(owner: str, service: str, replicas: int = 1) -> DynamoGraphDeploymentScalingAdapter:
    reference = {"name": "chat", "serviceName": service}
    owners = [{"kind": "X", "name": "x", "uid": owner, "controller": True}] if owner else []
    body = {
        "metadata": {"name": "scaler", "ownerReferences": owners},
        "spec": {"replicas": replicas, "dgdRef": reference},
    }
    return msgspec.convert(body, DynamoGraphDeploymentScalingAdapter)


def of_service(replicas: int) -> Any:
    services = {"Decode": {"replicas": replicas}}
    return {"metadata": {"resourceVersion": "7"}, "spec": {"services": services}}


@pytest.mark.parametrize(
    ("graph", "asked", "edit"),
    [
        (a_graph(), 2, Edit(of_service(2), f"Scaling {DECODE} to 2 replicas")),
        (a_graph(), 1, Edit(of_service(1), f"Scaling {DECODE} to 1 replica")),
        (a_graph(None, replicas=3), 0, Edit(of_service(0), f"Scaling {DECODE} from 3 to 0 replicas")),
        (a_graph(None, replicas=3), 3, Edit(None, f"{DECODE} is already set to 3 replicas")),
        (a_graph(1, replicas=3), 4, Edit(of_service(4), f"Scaling {DECODE} from 3 to 4 replicas")),
        (a_graph(2, replicas=3), 8, Edit(of_service(4), f"Scaling {DECODE} from 6 to 8 replicas {TWICE}")),
        (a_graph(2, replicas=3), 6, Edit(None, f"{DECODE} is already set to 6 replicas")),
        (a_graph(2), 2, Edit(None, f"{DECODE} is already set to 2 replicas")),
        (a_graph(0, replicas=3), 0, Edit(None, f"{DECODE} is already set to 0 replicas")),
        (a_graph(None, envs=[SIZED]), 3, Edit(None, f"{DECODE} is already set to 3 replicas")),
        (a_graph(None, envs=[SIZED]), 4, Edit(of_service(4), f"Scaling {DECODE} from 3 to 4 replicas")),
    ],
)
def test_replicas_of_a_service(graph: DynamoGraphDeployment, asked: int, edit: Edit) -> None:
    assert edit == edits.replicas_by_graph(graph, "Decode", asked)


@pytest.mark.parametrize(("factor", "asked"), [(2, 3), (3, 2), (0, 1)])
def test_a_number_that_the_factor_does_not_make(factor: int, asked: int) -> None:
    with pytest.raises(Unwritable, match=f"spec.replicas of graph prod/chat is {factor}"):
        edits.replicas_by_graph(a_graph(factor, replicas=1), "Decode", asked)


def test_the_factor_is_not_for_a_frontend() -> None:
    patch = edits.replicas_by_graph(a_graph(2), "Frontend", 3).patch
    assert patch is not None
    assert {"services": {"Frontend": {"replicas": 3}}} == patch["spec"]


def test_the_adapter_of_a_service_is_the_one_that_the_operator_made() -> None:
    adapters = [an_adapter("u-chat", "Frontend"), an_adapter("", "Decode"), an_adapter("o", "Decode")]
    going = an_adapter("u-chat", "Decode")
    metadata = msgspec.structs.replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    adapters.append(msgspec.structs.replace(going, metadata=metadata))
    with pytest.raises(Unwritable, match="does not exist yet"):
        edits.adapter_of(a_graph(), "Decode", adapters)
    right = an_adapter("u-chat", "Decode", 4)
    assert right is edits.adapter_of(a_graph(), "Decode", [*adapters, right])
    patches = [edits.replicas_by_adapter(right, number).patch for number in (4, 5)]
    assert [None, {"spec": {"replicas": 5}}] == patches


def test_an_unknown_service_is_reported_with_a_suggestion() -> None:
    with pytest.raises(Missing, match='service "decode" not found; did you mean "Decode"'):
        service_of(a_graph(), "decode")
    with pytest.raises(Missing, match=r'service "X" not found \(services: Decode, Frontend\)'):
        service_of(a_graph(), "X")


def annotated(plain: R, annotations: dict[str, str]) -> R:
    metadata = msgspec.structs.replace(plain.metadata, annotations=annotations)
    return msgspec.structs.replace(plain, metadata=metadata)


@pytest.mark.parametrize("key", [labels.PAUSED, labels.SUSPEND])
def test_a_mark_is_set_and_taken_away(key: str) -> None:
    plain = a_graph()
    odd, on = (annotated(plain, {key: value}) for value in ("True", "true"))
    wanted = {"metadata": {"annotations": {key: "true"}}}
    gone = {"metadata": {"annotations": {key: None}}}
    assert [wanted, wanted, None] == [edits.marked(it, key, is_on=True).patch for it in (plain, odd, on)]
    assert [None, gone, gone] == [edits.marked(it, key, is_on=False).patch for it in (plain, odd, on)]
    assert [] == [*edits.obstacles(plain), *edits.obstacles(on, [key])]
    assert 1 == len(list(edits.obstacles(on)))


def test_an_obstacle_names_the_command_that_removes_it() -> None:
    paused = annotated(an_adapter("u-chat", "Decode"), {labels.PAUSED: "true"})
    text = "the scaling adapter scaler is paused; `dynamoctl rollout resume dgdsa/scaler` ends that"
    assert [text] == list(edits.obstacles(paused))


def test_two_restarts_have_two_ids() -> None:
    first = edits.restarted(a_graph(), datetime(2026, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)).patch
    second = edits.restarted(a_graph(), datetime(2026, 1, 1, 0, 0, 0, 2000, tzinfo=UTC)).patch
    assert {"spec": {"restart": {"id": "2026-01-01T00:00:00.001Z"}}} == first
    assert first != second


@pytest.mark.parametrize(
    ("phase", "is_refused"), [("Pending", True), ("InProgress", True), ("Completed", False)]
)
def test_no_restart_while_workers_are_replaced_anyway(phase: str, is_refused: bool) -> None:
    graph = a_graph()
    rolling = msgspec.convert({"phase": phase}, RollingUpdateStatus)
    status = msgspec.structs.replace(graph.status, rolling_update=rolling)
    graph = msgspec.structs.replace(graph, status=status)
    with pytest.raises(Unwritable, match="already being replaced") if is_refused else nullcontext():
        assert edits.restarted(graph, datetime(2026, 1, 1, tzinfo=UTC)).patch is not None
