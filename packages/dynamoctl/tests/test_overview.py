"""What `dynamoctl status` prints of an object: its services, its conditions, and whether that is news."""

from io import StringIO

import msgspec
from rich.console import Console

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import Stated
from dynamoctl.inspect.listing import overview, overview_json
from dynamoctl.screen import plain, table
from stated import (
    NOW,
    READY,
    THEN,
    a_component,
    a_condition,
    a_graph,
    counts,
    late,
    metadata,
)


def lines(stated: Stated) -> list[str]:
    return plain(*overview(stated, now=NOW)).splitlines()


def test_each_service_has_a_row() -> None:
    services = {"Frontend": counts(), "w": late("image_pull_failed", message="pod x")}
    said = a_condition("Ready", "False", "image_pull_failed", "w: 0/1 ready")
    found = lines(a_graph(said, services=services))
    assert "DynamoGraphDeployment prod/chat: not ready" == found[0]
    assert [
        "SERVICE   WANTED  READY  UPDATED  REASON             MESSAGE",
        "Frontend  1       1      1        -",
        "w         1       0      1        image_pull_failed  pod x",
    ] == found[2:5]
    since = f"since {THEN} (12 minutes)"
    assert f"Ready  False  image_pull_failed {since}: w: 0/1 ready" == found[6]
    assert "Status is up to date (generation 1)." == found[-1]


def test_a_service_of_which_nothing_is_known_has_no_numbers() -> None:
    body = {"metadata": metadata(), "spec": {"services": {"w": {"replicas": 3}}}}
    found = lines(msgspec.convert(body, DynamoGraphDeployment))
    assert "w        3       -      -        -" == found[3]
    assert found[-1].endswith("Status is behind generation 1: there is no status.")


def test_a_count_of_another_kind_of_workload() -> None:
    services = {"w": counts(readyReplicas=None, availableReplicas=1)}
    assert "w        1       1      1        -" == lines(a_graph(READY, services=services))[3]


def test_a_suspended_graph_wants_nothing() -> None:
    at_zero = a_condition("Suspended", "True", "suspended")
    found = overview_json(a_graph(at_zero, services={"w": counts(0)}))
    assert [0] == [each["wanted"] for each in found["services"]]


def test_a_spec_that_nobody_has_looked_at() -> None:
    edited = a_graph(READY, generation=2)
    assert lines(edited)[0].endswith("not ready")
    assert (
        "Status is behind generation 2: the status describes generation 1." in (lines(edited)[-1])
    )
    assert overview_json(edited)["observed"] is False


def test_pause_and_deletion_are_told() -> None:
    paused = a_graph(READY, annotations={"nvidia.com/paused": "true"})
    assert "Reconciliation is paused: the operator writes nothing for this object." in lines(paused)
    going = a_graph(READY, deletionTimestamp=THEN, finalizers=["example.com/hold"])
    assert lines(going)[-1].endswith("(12 minutes ago); blocked by: example.com/hold.")


def test_a_component_is_one_service() -> None:
    available = a_condition("Available", "True", "DeploymentReady")
    ready = a_component(available, service=counts())
    assert "DynamoComponentDeployment prod/chat-w: ready" == lines(ready)[0]
    assert "w        1       1      1        -" == lines(ready)[3]
    bare = msgspec.convert({"metadata": metadata()}, DynamoComponentDeployment)
    assert ["chat"] == [each["name"] for each in overview_json(bare)["services"]]


def test_a_terminal_without_room_for_messages_has_them_below_their_rows() -> None:
    message = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu, and no preemption helps"
    row = ("Decode", "1", "0", "insufficient_capacity", message)
    rows = [row, ("Frontend", "1", "1", "-", "")]
    stream = StringIO()
    printed = Console(file=stream, width=60)
    printed.print(table(("SERVICE", "WANTED", "READY", "REASON", "MESSAGE"), rows))
    assert [
        "SERVICE   WANTED  READY  REASON",
        "Decode    1       0      insufficient_capacity",
        "  0/4 nodes are available: 4 Insufficient nvidia.com/gpu,",
        "  and no preemption helps",
        "Frontend  1       1      -",
    ] == [line.rstrip() for line in stream.getvalue().splitlines()]
    wide = plain(table(("SERVICE", "WANTED", "READY", "REASON", "MESSAGE"), rows)).splitlines()
    assert f"Decode    1       0      insufficient_capacity  {message}" == wide[1]
