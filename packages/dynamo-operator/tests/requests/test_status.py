"""Every reason that a request can give is on the page, with advice, under the condition that gives it."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from dynamo_graphs.catalog import MEANINGS
from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.requests import status
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.api import RequestConditionType as Type
from dynamo_operator.requests.api import RequestReason as Reason
from dynamo_operator.requests.api import RequestState as State
from dynamo_operator.requests.decide import RETRIED
from dynamo_operator.requests.results import ProfilingProgress, ProfilingResult
from dynamo_operator.requests.status import RequestReport
from dynamo_operator.shared.conditions import GraphReason, StatusEvent
from kube_runtime.types.meta import Condition, Key, Metadata
from simulated.requests import a_spec

KIND = Request.KIND.name
MEANT = [row for row in MEANINGS if row.kind == KIND]
ROWS = {(row.condition, row.status, row.reason) for row in MEANT}
SPEC = a_spec(auto_apply=True)
AT = Key("n", "r")
GRAPH = ProfilingResult({"apiVersion": "v", "kind": "k", "metadata": {"name": "g"}, "spec": {}})


def a_request(state: str = "", *conditions: Condition) -> Request:
    """A request in that state."""
    reported = RequestStatus(state=state or None, conditions=conditions)
    return Request(Metadata(name="r", namespace="n", uid="u"), SPEC, reported)


def a_graph(state: str) -> DynamoGraphDeployment:
    """A graph in that state."""
    reported = DynamoGraphDeploymentStatus(state=state)
    return DynamoGraphDeployment(Metadata(name="r", namespace="n"), status=reported)


def everything_told() -> Iterator[RequestReport]:
    """The message after each action, from each state."""
    went_before = [Condition(type_, "False", "x") for type_ in Type if type_ is not Type.SUCCEEDED]
    for state in State:
        for conditions in ((), tuple(went_before)):
            request = a_request(state, *conditions)
            yield status.refused(request, ("wrong",))
            yield status.accepted(request, SPEC)
            yield status.waiting(request, "pods")
            yield status.begun(request, "now", is_offline=False)
            yield status.watched(request, ProfilingProgress(), "no node")
            yield status.profiling_failed(request, "crash", ProfilingProgress(), "now")
            yield status.not_generated(request, "no graph", ProfilingProgress(), "now")
            for target in (None, AT):
                yield status.generated(request, GRAPH, ProfilingProgress(), target=target, now="now")
                for is_complete in (False, True):
                    made = a_graph("") if target else None
                    yield status.created(request, made, (), is_complete=is_complete)
            for type_, reason in RETRIED:
                yield status.blocked(request, type_, reason, "refused")
            for graph in ("", "pending", "failed", "successful"):
                yield status.mirrored(request, a_graph(graph))
            yield status.lost(request)
            for reason in (Reason.PAUSED, Reason.TOO_LARGE):
                yield status.stopped(request, reason, "text")
        paused = Condition(Type.SUCCEEDED, "Unknown", Reason.PAUSED)
        if report := status.restated(a_request(state, paused)):
            yield report


def test_every_reason_is_explained_with_advice() -> None:
    own = {State.PENDING, State.PROFILING, State.DEPLOYING, State.READY, State.FAILED}
    assert {*map(str, Reason), *map(str, own)} == {reason for _, _, reason in ROWS}
    assert all(row.text and row.advice for row in MEANT)
    assert len(ROWS) == len(MEANT)


def test_every_reported_condition_has_its_row() -> None:
    steps = {(type_, value, reason) for type_, value, reason in ROWS if type_ != Type.SUCCEEDED}
    # `Succeeded` repeats the reason of a step that failed, or that waits.
    repeated = {reason for _, value, reason in steps if value == "False"}
    seen = {
        (condition.type, condition.status, condition.reason)
        for report in everything_told()
        for condition in report.status.conditions
    }
    unexplained = {
        (type_, value, reason)
        for type_, value, reason in seen - ROWS
        if type_ != Type.SUCCEEDED or reason not in repeated
    }
    again = {(type_, "Unknown", Reason.STARTED_ANEW) for type_ in (Type.GENERATED, Type.DEPLOYED)}
    assert again == unexplained
    unread = (Reason.UNREADABLE, Reason.REJECTED)  # of what cannot be read or written, or is not read
    untold = {(Type.SUCCEEDED, "False", reason) for reason in unread}
    assert untold == ROWS - seen


def test_an_image_of_the_graph_that_cannot_be_pulled_is_one_event() -> None:
    def counts(reason: GraphReason, text: str) -> ServiceReplicaStatus:
        return ServiceReplicaStatus("Deployment", "w", 1, 1, reason=reason, message=text)

    pulled, started = "pod w container main ImagePullBackOff: no such tag", "pod f is not ready"
    services = {
        "Decode": counts(GraphReason.IMAGE_PULL_FAILED, pulled),
        "Frontend": counts(GraphReason.PODS_NOT_READY, started),
    }
    text = f"Decode: 0/1 ready; {pulled} | Frontend: 0/1 ready; {started}"
    cause = Condition("Ready", "False", GraphReason.MIXED, text)
    of_graph = DynamoGraphDeploymentStatus(state="pending", conditions=(cause,), services=services)
    graph, request = replace(a_graph(""), status=of_graph), a_request(State.DEPLOYING)
    first = status.mirrored(request, graph)
    assert (StatusEvent("ImagePullFailed", pulled, is_warning=True),) == first.events
    assert () == status.mirrored(replace(request, status=first.status), graph).events


@pytest.mark.parametrize("held", [Reason.PAUSED, Reason.UNREADABLE])
@pytest.mark.parametrize(
    ("state", "step", "verdict"),
    [
        (State.READY, ("True", Reason.PROFILING_COMPLETED), ("True", State.READY)),
        (State.FAILED, ("False", Reason.PROFILING_FAILED), ("False", Reason.PROFILING_FAILED)),
        (State.PENDING, ("Unknown", Reason.STARTED_ANEW), ("Unknown", State.PENDING)),
    ],
)
def test_a_resumed_request_reports_its_former_condition_again(
    held: Reason, state: State, step: tuple[str, str], verdict: tuple[str, str]
) -> None:
    value = "Unknown" if held is Reason.PAUSED else "False"
    profiling, succeeded = Condition(Type.PROFILING, *step), Condition(Type.SUCCEEDED, value, held)
    request = a_request(state, profiling, succeeded)
    report = status.restated(request)
    assert report is not None
    (last,) = report.status.conditions
    assert (Type.SUCCEEDED, *verdict) == (last.type, last.status, last.reason)
