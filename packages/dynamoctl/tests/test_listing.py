"""`dynamoctl get`: the columns of the CRD, and the report when there is nothing to list."""

import asyncio
from datetime import UTC, datetime

import pytest
from cyclopts import CycloptsError

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.inspect.listing import print_list, rows, value_at
from dynamoctl.options import Where
from dynamoctl.screen import plain, table
from kube_runtime.kind import Object
from scripted.connections import connect_to
from simulated.server import Server

GRAPHS = "/apis/nvidia.com/v1alpha1/dynamographdeployments"
NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)


def a_graph(name: str, namespace: str = "prod", ready: str = "True") -> Object:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "creationTimestamp": "2026-11-23T02:55:00Z",
        },
        "spec": {"services": {}},
        "status": {
            "state": "successful",
            "gpus": 8,
            "conditions": [
                {"type": "Ready", "status": ready, "reason": "ok", "message": "\x1b[2J"}
            ],
        },
    }


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    found = Server()
    connect_to(found, monkeypatch)
    return found


def drawn(*objects: Object, wide: bool = False, everywhere: bool = False) -> list[str]:
    columns = [it for it in DynamoGraphDeployment.DEFINITION.columns if wide or not it.priority]
    return plain(table(*rows(columns, objects, everywhere=everywhere, now=NOW))).splitlines()


def test_the_columns_are_those_of_the_crd() -> None:
    head, row = drawn(a_graph("chat"))
    assert ["NAME", "READY", "BACKEND", "AGE", "STATE", "SERVICES", "GPUS"] == head.split()
    assert ["chat", "True", "-", "5m", "successful", "-", "8"] == row.split()


def test_all_namespaces_have_a_column_and_an_order() -> None:
    head, *found = drawn(a_graph("b", "two"), a_graph("z", "one"), everywhere=True)
    assert head.startswith("NAMESPACE")
    assert [["one", "z"], ["two", "b"]] == [row.split()[:2] for row in found]


def test_what_a_cluster_says_does_not_rule_the_terminal() -> None:
    _, row = drawn(a_graph("chat"), wide=True)
    assert row.endswith("\ufffd[2J")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".status.state", "successful"),
        ('.status.conditions[?(@.type=="Ready")].status', "True"),
        (".status.conditions[?(@.type=='Ready')].reason", "ok"),
        ('.status.conditions[?(@.type=="Other")].status', None),
        (".spec.nothing.there", None),
    ],
)
def test_a_path_of_a_column(path: str, value: str | None) -> None:
    assert value == value_at(path, a_graph("chat"))


def listed(kind: str = "dgd", output: str = "table", **options: bool) -> int:
    everywhere = options.get("everywhere", False)
    where = Where(namespace="prod")
    return asyncio.run(
        print_list(kind, where, output, everywhere=everywhere, selector="", watch=False)
    )


def test_names_for_scripts(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.storage.create(GRAPHS, a_graph("chat"))
    assert 0 == listed(output="name")
    assert "dynamographdeployments.nvidia.com/chat\n" == capsys.readouterr().out


def test_a_kind_by_another_name(server: Server) -> None:
    assert 0 == listed("dynamomodels", everywhere=True)


def test_no_graphs_anywhere(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == listed(everywhere=True)
    assert ("", "no graphs found in any namespace\n") == capsys.readouterr()


def test_a_namespace_that_does_not_exist(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == listed()
    said = capsys.readouterr().err
    assert "no graphs found in namespace prod: namespace prod does not exist\n" == said


def test_another_kind_is_wrong_usage(server: Server) -> None:
    with pytest.raises(CycloptsError, match='unsupported kind "pods"'):
        listed("pods")


@pytest.mark.parametrize("namespace", ["a/../b", "-x", "A", "\x1b[2J"])
def test_a_namespace_that_would_be_another_path(server: Server, namespace: str) -> None:
    where = Where(namespace=namespace)
    with pytest.raises(CycloptsError, match="invalid namespace"):
        asyncio.run(print_list("dgd", where, "table", everywhere=False, selector="", watch=False))
    assert [] == server.requests
