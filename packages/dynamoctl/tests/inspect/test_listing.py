"""`dynamoctl get`: the columns of the CRD, and the report when there is nothing to list."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
from cyclopts import CycloptsError

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import Stated
from dynamoctl.inspect.listing import overview, overview_json, print_list, rows, value_at
from dynamoctl.options import LISTING, ListOptions, Where
from dynamoctl.screen import plain, table
from kube_runtime.types.meta import Object
from scripted.connections import connect_to
from simulated.server import Server
from stated import NOW as NOW_OVERVIEW
from stated import READY, THEN, a_component, a_condition, counts, metadata
from stated import a_graph as a_graph_of_overview

GRAPHS = "/apis/nvidia.com/v1alpha1/dynamographdeployments"
NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)


def a_graph(name: str, namespace: str = "prod", ready: str = "True") -> Object:
    metadata = {"namespace": namespace, "name": name, "creationTimestamp": "2026-11-23T02:55:00Z"}
    said = {"type": "Ready", "status": ready, "reason": "ok", "message": "\x1b[2J"}
    status = {"state": "successful", "gpus": 8, "conditions": [said]}
    return DynamoGraphDeployment.KIND.manifest(metadata, spec={"services": {}}, status=status)


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
    head, *found = drawn(a_graph("b", "two"), a_graph("z", "one"), everywhere=True)
    assert head.startswith("NAMESPACE")
    assert [["one", "z"], ["two", "b"]] == [row.split()[:2] for row in found]


def test_text_from_the_cluster_cannot_control_the_terminal() -> None:
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
    where, choices = Where(namespace="prod"), ListOptions(everywhere=options.get("everywhere", False))
    return asyncio.run(print_list([kind], where, output, choices))


def test_names_for_scripts(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.storage.create(GRAPHS, a_graph("chat"))
    assert 0 == listed(output="name")
    assert "dynamographdeployment.nvidia.com/chat\n" == capsys.readouterr().out


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("kind", "everywhere", "code", "said"),
    [
        ("dynamomodels", True, 0, "no models found in any namespace\n"),
        ("dgd", True, 0, "no graphs found in any namespace\n"),
        ("dgd", False, 1, "no graphs found in namespace prod: namespace prod does not exist\n"),
    ],
)
def test_a_list_without_objects(
    kind: str, everywhere: bool, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code == listed(kind, everywhere=everywhere)
    assert ("", said) == capsys.readouterr()


@pytest.mark.parametrize("namespace", ["a/../b", "-x", "A", "\x1b[2J"])
def test_a_namespace_that_would_be_another_path(server: Server, namespace: str) -> None:
    where = Where(namespace=namespace)
    with pytest.raises(CycloptsError, match="invalid namespace"):
        asyncio.run(print_list(["dgd"], where, "table", LISTING))
    assert [] == server.requests


def lines(stated: Stated) -> list[str]:
    return plain(*overview(stated, now=NOW_OVERVIEW)).splitlines()


def test_a_service_of_which_nothing_is_known_has_no_numbers() -> None:
    body = {"metadata": metadata(), "spec": {"services": {"w": {"replicas": 3}}}}
    found = lines(msgspec.convert(body, DynamoGraphDeployment))
    assert "w        3       -      -        -" == found[3]
    assert found[-1].endswith("Status is behind generation 1: there is no status.")


def test_a_spec_that_is_not_reconciled_yet_is_reported() -> None:
    edited = a_graph_of_overview(READY, generation=2)
    assert lines(edited)[0].endswith("not ready, generation 2 has not been reconciled")
    assert "Status is behind generation 2: the status describes generation 1." in (lines(edited)[-1])
    assert overview_json(edited)["observed"] is False


def test_status_shows_pause_and_deletion() -> None:
    paused = a_graph_of_overview(READY, annotations={"nvidia.com/paused": "true"})
    assert "Reconciliation is paused: the operator writes nothing for this object." in lines(paused)
    going = a_graph_of_overview(READY, deletionTimestamp=THEN, finalizers=["example.com/hold"])
    assert lines(going)[-1].endswith("(12 minutes ago); blocked by: example.com/hold.")


def test_a_component_is_one_service() -> None:
    available = a_condition("Available", "True", "DeploymentReady")
    ready = a_component(available, service=counts())
    assert "DynamoComponentDeployment prod/chat-w: ready" == lines(ready)[0]
    assert "w        1       1      1        -" == lines(ready)[3]
