"""A suspended graph goes to zero in order, and comes back in the other order."""

from collections.abc import Collection

import pytest
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.component.service import ServiceObserved
from dynamo_operator.features.decision import Suspension
from dynamo_operator.features.suspension import suspension
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
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


SUSPENDED, RESUMING = a_graph(suspend="true"), a_graph(stored="True")
CONFIG = {"name": "DYN_DEPLOYMENT_CONFIG", "value": '{"Frontend": {"ServiceArgs": {"workers": 0}}}'}
NO_FRONTEND = replace(RESUMING, spec=replace(RESUMING.spec, envs=(CONFIG,)))
EDITED = a_graph(suspend="true", stored="True")
AT_ZERO = dict.fromkeys(SERVICES, GONE)
UNREPORTED = ServiceObserved(exists=True, is_current=False)
PAUSED = ServiceObserved(exists=True, replicas=1, is_paused=True)
EVERY = frozenset(SERVICES)


@pytest.mark.parametrize(
    ("graph", "observed", "zero", "reason", "text"),
    [
        (SUSPENDED, ALL, {"decode"}, "suspending", "workers first"),
        (SUSPENDED, ALL | {"decode": GOING}, {"decode"}, "suspending", "workers first"),
        (SUSPENDED, ALL | {"decode": PAUSED}, {"decode"}, "suspending", "decode (its component is paused)"),
        (SUSPENDED, ALL | {"decode": GONE}, EVERY, "suspending", "Scaling to zero: Frontend, router"),
        # A service that is added while workers go begins with no replicas.
        (SUSPENDED, {"decode": RUNS, "Frontend": RUNS}, {"decode", "router"}, "suspending", "decode"),
        # One at zero stays there, so neither a graph that is created suspended nor an edit starts a frontend.
        *(
            (SUSPENDED, AT_ZERO | {"decode": worker}, EVERY, "suspending", "decode")
            for worker in (GOING, UNREPORTED, RUNS)
        ),
        (SUSPENDED, AT_ZERO | {"router": UNREPORTED}, EVERY, "suspending", "router (not reported yet)"),
        # Otherwise a graph that is created suspended is reported so before its components, and again after.
        (SUSPENDED, {}, EVERY, "suspending", "decode (not created yet)"),
        (SUSPENDED, AT_ZERO, EVERY, "suspended", "All services have zero replicas"),
        # An edit of a suspended graph, which also adds a service; then one whose pods exist again.
        (EDITED, {"decode": UNREPORTED, "Frontend": GONE}, EVERY, "suspended", "All services have zero"),
        (EDITED, AT_ZERO | {"router": GOING}, EVERY, "suspending", "router"),
        (RESUMING, AT_ZERO, {"decode"}, "resuming", "Workers wait for: Frontend"),
        (RESUMING, {"Frontend": PAUSED}, {"decode"}, "resuming", "Frontend (its component is paused)"),
        (a_graph(stored="Unknown"), AT_ZERO | {"Frontend": RUNS}, set(), "resumed", "All services"),
        (NO_FRONTEND, AT_ZERO, set(), "resumed", "All services"),
        # What has come back does not wait again.
        (a_graph(stored="False"), AT_ZERO, set(), "resumed", "All services"),
    ],
)
def test_a_step_of_a_suspension(
    graph: DynamoGraphDeployment,
    observed: dict[str, ServiceObserved],
    zero: Collection[str],
    reason: str,
    text: str,
) -> None:
    plan = suspension(graph, observed)
    assert plan.condition is not None
    assert (frozenset(zero), reason) == (plan.zero, plan.condition.reason)
    assert text in plan.condition.message
    status = {"suspended": "True", "resumed": "False"}.get(reason, "Unknown")
    assert ("Suspended", status) == (plan.condition.type, plan.condition.status)


def test_a_graph_that_was_never_suspended_has_no_such_condition() -> None:
    assert Suspension() == suspension(a_graph(), ALL)
    assert Suspension() == suspension(a_graph(suspend="yes"), ALL)


def test_a_forged_condition_ends_no_worker() -> None:
    """No user suspended the graph, its frontend is not ready, and workers run."""
    assert frozenset() == suspension(RESUMING, ALL | {"Frontend": GONE}).zero
