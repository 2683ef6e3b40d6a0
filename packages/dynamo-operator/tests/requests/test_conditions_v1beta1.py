"""Conditions of a request in the words of v1beta1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynamo_operator.requests import status
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.api import RequestConditionType as Type
from dynamo_operator.requests.api import RequestReason as Reason
from dynamo_operator.requests.api import RequestState as State
from dynamo_operator.requests.conditions_v1beta1 import to_v1alpha1, to_v1beta1
from dynamo_operator.requests.results import ProfilingProgress
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Condition, Metadata

REQUEST = Request(Metadata(name="r", namespace="n", uid="u", generation=1))


def words(written: RequestStatus) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition in v1beta1; and that the operator reads them as it wrote them."""
    later = convert(
        {
            "apiVersion": "nvidia.com/v1alpha1",
            "kind": "DynamoGraphDeploymentRequest",
            "status": {"state": written.state or "", "deployment": {"created": bool(written.deployment)}},
        },
        "nvidia.com/v1beta1",
    )
    conditions = to_v1beta1(written.conditions, later["status"]["phase"], written.profiling_phase or "")
    assert written.conditions == to_v1alpha1(conditions)
    return {each.type: (each.status, each.reason) for each in conditions}


def test_profiling_says_its_phase() -> None:
    progress = ProfilingProgress(phase="SweepingDecode", message="3 of 6")
    written = status.watched(REQUEST, progress, "").status
    expected = {"Profiling": ("False", "SweepingDecode"), "Succeeded": ("False", "Profiling")}
    assert expected == words(written)
    written = status.watched(REQUEST, ProfilingProgress(phase="Done"), "").status
    assert ("False", "Completed") == words(written)["Profiling"]
    written = status.watched(REQUEST, ProfilingProgress(), "").status
    assert ("False", "ProfilingRunning") == words(written)["Profiling"]


def test_a_failure_says_in_which_phase() -> None:
    progress = ProfilingProgress(phase="SweepingPrefill")
    written = status.profiling_failed(REQUEST, "profiling job failed: x", progress, "now").status
    failed = ("False", "SweepingPrefillFailed")
    assert {"Profiling": failed, "Succeeded": failed} == words(written)
    (*_, summary) = to_v1beta1(written.conditions, "Failed", "SweepingPrefill")
    assert "Profiling failed: profiling job failed: x" == summary.message


@pytest.mark.parametrize(
    ("type_", "reason", "later", "prefix"),
    [
        (Type.VALIDATION, Reason.VALIDATION_FAILED, "ValidationFailed", "Validation failed: "),
        (Type.PROFILING, Reason.JOB_CREATION_FAILED, "JobCreationFailed", "Profiling failed: "),
        (Type.GENERATED, Reason.GENERATION_FAILED, "GenerationFailed", "Spec generation failed: "),
        (Type.DEPLOYED, Reason.DEPLOYMENT_CREATION_FAILED, "DeploymentRejected", "Deployment failed: "),
    ],
)
def test_the_summary_of_a_failure_names_its_step(
    type_: Type, reason: Reason, later: str, prefix: str
) -> None:
    step = status.request_condition(REQUEST, type_, "False", reason, "no")
    written = status.request_status(REQUEST, State.FAILED, step, message="no")
    assert {str(type_): ("False", later), "Succeeded": ("False", later)} == words(written)
    (*_, summary) = to_v1beta1(written.conditions, "Failed", "")
    assert f"{prefix}no" == summary.message


@pytest.mark.parametrize(("phase", "reason"), [("Ready", "SpecGenerated"), ("Deployed", "Deployed")])
def test_a_request_that_is_ready_says_whether_its_graph_is_deployed(phase: str, reason: str) -> None:
    written = status.request_status(REQUEST, State.READY, message="done")
    (summary,) = to_v1beta1(written.conditions, phase, "")
    assert ("True", reason) == (summary.status, summary.reason)
    assert written.conditions == to_v1alpha1((summary,))


def test_what_holds_a_request_is_not_translated() -> None:
    for reason in (Reason.PAUSED, Reason.TOO_LARGE):
        written = status.stopped(REQUEST, reason, "Profiling failed: as text").status
        assert written.conditions == to_v1beta1(written.conditions, "Pending", "")
        assert written.conditions == to_v1alpha1(written.conditions)
    waiting = status.waiting(REQUEST, status.left_over(Job(Metadata(name="j")), ())).status
    assert ("Unknown", "WaitingForEarlierJob") == words(waiting)["Succeeded"]


PHASES = ("", "Initializing", "SweepingPrefill", "SelectingConfig", "Done", "of a later release")
STEPS = st.builds(
    lambda type_, value, reason: Condition(type_, value, str(reason), "why"),
    st.sampled_from([type_ for type_ in Type if type_ != Type.SUCCEEDED]),
    st.sampled_from(["True", "False", "Unknown"]),
    st.sampled_from(Reason),
)


@given(
    st.lists(STEPS, unique_by=lambda step: step.type),
    st.sampled_from(State),
    st.sampled_from(["Ready", "Deployed", "Failed"]),
    st.sampled_from(PHASES),
)
def test_whatever_the_operator_writes_it_reads_again(
    steps: list[Condition], state: State, phase: str, profiling_phase: str
) -> None:
    written = replace(REQUEST.status, conditions=tuple(steps))
    summary = status.summary(replace(REQUEST, status=written), state, tuple(steps), "why")
    conditions = (*steps, summary)
    assert conditions == to_v1alpha1(to_v1beta1(conditions, phase, profiling_phase))
