"""A suspended graph goes to zero in order, and comes back in the other order."""

import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.features.suspension import suspension
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
from dynamo_operator.graph.decision import Suspension
from dynamo_operator.graph.service import ServiceObserved
from kube_runtime.types.meta import Condition, Metadata

SERVICES = {
    "Frontend": ComponentSpec(component_type="frontend"),
    "decode": ComponentSpec(component_type="worker", replicas=4),
    "router": ComponentSpec(),
}
RUNS = ServiceObserved(exists=True, is_ready=True, desired=1, replicas=1, ready=1)
GONE = ServiceObserved(exists=True, is_ready=True)
GOING = ServiceObserved(exists=True, replicas=1)
ALL = dict.fromkeys(SERVICES, RUNS)


def a_graph(*, suspend: str | None = None, stored: str | None = None) -> DynamoGraphDeployment:
    conditions = (Condition("Suspended", stored, "any"),) if stored else ()
    return DynamoGraphDeployment(
        Metadata("g", annotations={labels.SUSPEND: suspend} if suspend else {}),
        spec=DynamoGraphDeploymentSpec(services=SERVICES),
        status=DynamoGraphDeploymentStatus(conditions=conditions),
    )


def said(found: Suspension) -> tuple[str, str]:
    assert found.condition is not None
    return found.condition.status, found.condition.reason


def test_a_graph_that_was_never_suspended_has_no_such_condition() -> None:
    assert Suspension() == suspension(a_graph(), ALL)
    assert Suspension() == suspension(a_graph(suspend="yes"), ALL)


def test_workers_go_first() -> None:
    found = suspension(a_graph(suspend="true"), ALL)
    assert (frozenset(["decode"]), ("Unknown", "suspending")) == (found.zero, said(found))


def test_the_rest_goes_when_the_pods_of_the_workers_are_gone() -> None:
    still = suspension(a_graph(suspend="true"), ALL | {"decode": GOING})
    assert frozenset(["decode"]) == still.zero
    found = suspension(a_graph(suspend="true"), ALL | {"decode": GONE})
    assert (frozenset(SERVICES), ("Unknown", "suspending")) == (found.zero, said(found))


def test_a_paused_component_that_does_not_go_is_named() -> None:
    paused = ServiceObserved(exists=True, replicas=1, is_paused=True)
    found = suspension(a_graph(suspend="true"), ALL | {"decode": paused})
    assert found.condition is not None
    assert "decode (its component is paused)" in found.condition.message
    waits = suspension(a_graph(stored="True"), {"Frontend": ServiceObserved(is_paused=True)})
    assert waits.condition is not None
    assert "Frontend (its component is paused)" in waits.condition.message


def test_a_graph_without_pods_is_suspended() -> None:
    found = suspension(a_graph(suspend="true"), dict.fromkeys(SERVICES, GONE))
    assert (frozenset(SERVICES), ("True", "suspended")) == (found.zero, said(found))


def test_what_has_not_been_reported_yet_may_have_replicas() -> None:
    unknown = ServiceObserved(exists=True, is_current=False)
    found = suspension(a_graph(suspend="true"), dict.fromkeys(SERVICES, GONE) | {"router": unknown})
    assert (frozenset(SERVICES), ("Unknown", "suspending")) == (found.zero, said(found))
    assert found.condition is not None
    assert "router (not reported yet)" in found.condition.message


def test_a_service_that_is_added_while_workers_go_begins_with_no_replicas() -> None:
    found = suspension(a_graph(suspend="true"), {"decode": RUNS, "Frontend": RUNS})
    assert frozenset(["decode", "router"]) == found.zero


@pytest.mark.parametrize("worker", [GOING, ServiceObserved(exists=True, is_current=False), RUNS])
def test_a_service_at_zero_stays_there_whatever_the_workers_report(worker: ServiceObserved) -> None:
    """So neither a graph that is created suspended nor an edit of a suspended one starts a frontend."""
    seen = dict.fromkeys(SERVICES, GONE) | {"decode": worker}
    assert frozenset(SERVICES) == suspension(a_graph(suspend="true"), seen).zero


def test_workers_come_back_when_the_frontend_serves() -> None:
    waits = suspension(a_graph(stored="True"), dict.fromkeys(SERVICES, GONE))
    assert (frozenset(["decode"]), ("Unknown", "resuming")) == (waits.zero, said(waits))
    found = suspension(a_graph(stored="Unknown"), dict.fromkeys(SERVICES, GONE) | {"Frontend": RUNS})
    assert (frozenset(), ("False", "resumed")) == (found.zero, said(found))


def test_a_forged_condition_ends_no_worker() -> None:
    """A graph that no user suspended, whose frontend is not ready, beside workers that run."""
    forged = suspension(a_graph(stored="True"), ALL | {"Frontend": GONE})
    assert frozenset() == forged.zero


def test_what_has_come_back_does_not_wait_again() -> None:
    found = suspension(a_graph(stored="False"), dict.fromkeys(SERVICES, GONE))
    assert (frozenset(), ("False", "resumed")) == (found.zero, said(found))


def test_a_service_that_does_not_exist_yet_is_not_suspended() -> None:
    """Otherwise a graph that is created suspended is reported so before its components, and again after."""
    found = suspension(a_graph(suspend="true"), {})
    assert (frozenset(SERVICES), ("Unknown", "suspending")) == (found.zero, said(found))
    assert found.condition is not None
    assert "decode (not created yet)" in found.condition.message
