"""What the commands that write ask for, and what they say of it."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dynamo_operator.api import labels
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.cli.wishes import (
    Unwritable,
    Wish,
    adapter_of,
    marked,
    obstacles,
    replicas_by_adapter,
    replicas_by_graph,
    restarted,
    service_of,
)


def a_graph(factor: int | None = None, **worker: Any) -> DynamoGraphDeployment:
    services = {"Decode": {"componentType": "worker", **worker}, "Frontend": {}}
    spec = {"services": services} | ({} if factor is None else {"replicas": factor})
    body = {"metadata": {"namespace": "prod", "name": "chat", "uid": "u-chat"}, "spec": spec}
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
    return {"spec": {"services": {"Decode": {"replicas": replicas}}}}


@pytest.mark.parametrize(
    ("graph", "asked", "wish"),
    [
        (a_graph(), 2, Wish(of_service(2), "is to have 2 replicas, no number before")),
        (a_graph(), 1, Wish(of_service(1), "is to have 1 replica, no number before")),
        (a_graph(None, replicas=3), 0, Wish(of_service(0), "is to have 0 replicas, 3 before")),
        (a_graph(None, replicas=3), 3, Wish(None, "is already to have 3 replicas")),
        (a_graph(1, replicas=3), 4, Wish(of_service(4), "is to have 4 replicas, 3 before")),
        (
            a_graph(2, replicas=3),
            8,
            Wish(
                of_service(4),
                "is to have 8 replicas, 6 before: 4 times spec.replicas, which is 2",
            ),
        ),
        (a_graph(2, replicas=3), 6, Wish(None, "is already to have 6 replicas")),
    ],
)
def test_replicas_of_a_service(graph: DynamoGraphDeployment, asked: int, wish: Wish) -> None:
    assert wish == replicas_by_graph(graph, "Decode", asked)


@pytest.mark.parametrize(("factor", "asked"), [(2, 3), (3, 2), (0, 1)])
def test_a_number_that_the_factor_does_not_make(factor: int, asked: int) -> None:
    with pytest.raises(Unwritable, match=f"spec.replicas of the graph prod/chat is {factor}"):
        replicas_by_graph(a_graph(factor, replicas=1), "Decode", asked)


def test_the_factor_is_not_for_a_frontend() -> None:
    patch = {"spec": {"services": {"Frontend": {"replicas": 3}}}}
    assert patch == replicas_by_graph(a_graph(2), "Frontend", 3).patch


def test_the_adapter_of_a_service_is_the_one_that_the_operator_made() -> None:
    adapters = [
        an_adapter("u-chat", "Frontend"),
        an_adapter("", "Decode"),
        an_adapter("o", "Decode"),
    ]
    with pytest.raises(Unwritable, match="not there yet"):
        adapter_of(a_graph(), "Decode", adapters)
    right = an_adapter("u-chat", "Decode", 4)
    assert right is adapter_of(a_graph(), "Decode", [*adapters, right])
    assert (None, {"spec": {"replicas": 5}}) == (
        replicas_by_adapter(right, 4).patch,
        replicas_by_adapter(right, 5).patch,
    )


def test_a_service_that_is_not_there() -> None:
    with pytest.raises(Unwritable, match='no service decode; did you mean "Decode"'):
        service_of(a_graph(), "decode")
    with pytest.raises(Unwritable, match="no service X; it has Decode, Frontend"):
        service_of(a_graph(), "X")


@pytest.mark.parametrize("key", [labels.PAUSED, labels.SUSPEND])
def test_a_mark_is_set_and_taken_away(key: str) -> None:
    plain = a_graph()
    odd, on = (
        msgspec.structs.replace(
            plain, metadata=msgspec.structs.replace(plain.metadata, annotations={key: value})
        )
        for value in ("True", "true")
    )
    wanted = {"metadata": {"annotations": {key: "true"}}}
    gone = {"metadata": {"annotations": {key: None}}}
    assert [wanted, wanted, None] == [
        marked(each, key, is_on=True).patch for each in (plain, odd, on)
    ]
    assert [None, gone, gone] == [marked(each, key, is_on=False).patch for each in (plain, odd, on)]
    assert [[], [], 1] == [
        list(obstacles(plain)),
        list(obstacles(on, key)),
        len(list(obstacles(on))),
    ]


def test_two_restarts_have_two_ids() -> None:
    first = restarted(datetime(2026, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)).patch
    second = restarted(datetime(2026, 1, 1, 0, 0, 0, 2000, tzinfo=UTC)).patch
    assert {"spec": {"restart": {"id": "2026-01-01T00:00:00.001Z"}}} == first
    assert first != second
