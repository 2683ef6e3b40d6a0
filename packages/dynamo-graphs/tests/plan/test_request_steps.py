"""The next step of a request: total, safe to repeat, and always at an end at last."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import (
    DeploymentStatus,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    DynamoGraphDeploymentRequestStatus,
    ProfilingConfig,
)
from dynamo_graphs.plan.request import (
    FIXED,
    RETRIED,
    Action,
    RequestConditionType,
    RequestFacts,
    RequestReason,
    RequestState,
    Stage,
    accepted_spec,
    as_accepted,
    next_step,
    stage,
)
from dynamo_graphs.types.profiling import Output
from kube_runtime.types.batch import Job, JobStatus
from kube_runtime.types.meta import Condition, Metadata, OwnerReference

SPEC = DynamoGraphDeploymentRequestSpec(
    model="m", backend="vllm", profiling_config=ProfilingConfig("p:1"), auto_apply=True
)
OURS = OwnerReference(
    api_version="nvidia.com/v1alpha1",
    kind="DynamoGraphDeploymentRequest",
    name="r",
    uid="u",
    controller=True,
)


def request(state: str = "", *, generation: int = 1, **status: Any) -> DynamoGraphDeploymentRequest:
    """A request in that state, whose first spec was accepted."""
    observed: dict[str, Any] = {}
    if state:
        observed = {"observed_generation": 1, "accepted_spec": as_accepted(SPEC)}
    return DynamoGraphDeploymentRequest(
        Metadata(name="r", namespace="n", uid="u", generation=generation),
        SPEC,
        DynamoGraphDeploymentRequestStatus(state=state or None, **(observed | status)),
    )


def job(*ends: str, owner: OwnerReference | None = OURS, **metadata: Any) -> Job:
    """A Job of the request with these conditions."""
    owners = (owner,) if owner else ()
    conditions = tuple(Condition(each, "True") for each in ends)
    return Job(
        Metadata(name="profile-r", owner_references=owners, **metadata), JobStatus(conditions)
    )


def graph(uid: str) -> DynamoGraphDeployment:
    """A graph that was made for the request of that uid."""
    return DynamoGraphDeployment(Metadata(name="r", annotations={labels.REQUEST_UID: uid}))


def failed(type_: RequestConditionType, reason: str, *, said_of: int = 1) -> tuple[Condition, ...]:
    """The conditions of a failure that the status reports for a generation."""
    return (
        Condition(type_, "False", reason),
        Condition(RequestConditionType.SUCCEEDED, "False", reason, observed_generation=said_of),
    )


CREATED = DeploymentStatus(name="r", namespace="n", created=True)
NOT_CREATED = DeploymentStatus(name="r", namespace="n")

OUTPUT = Output(Metadata(owner_references=(OURS,)), data={"config_with_planner.yaml": "kind: x"})
FACTS = st.builds(
    RequestFacts,
    problems=st.sampled_from(((), ("wrong",))),
    job=st.sampled_from(
        (
            None,
            job(),
            job("Complete"),
            job("Failed"),
            job(owner=None),
            job(owner=replace(OURS, uid="other")),
            job(annotations={labels.REQUEST_GENERATION: "7"}),
            job(deletion_timestamp="2026-01-01T00:00:00Z"),
        )
    ),
    pods_left=st.sampled_from(((), ("pod",))),
    output=st.sampled_from((None, OUTPUT, Output())),
    graph=st.sampled_from((None, graph("u"), graph("other"))),
)
CONDITIONS = st.sampled_from(
    (
        (),
        *(failed(type_, reason) for type_, reason in RETRIED),
        failed(RequestConditionType.PROFILING, RequestReason.PROFILING_FAILED),
        (Condition(RequestConditionType.VALIDATION, "False", RequestReason.VALIDATION_FAILED),),
    )
)
REQUESTS = st.builds(
    request,
    st.sampled_from((*RequestState, "Unheard")),
    generation=st.integers(1, 3),
    conditions=CONDITIONS,
    deployment=st.sampled_from((None, CREATED, NOT_CREATED)),
)


@given(REQUESTS, FACTS)
def test_there_is_a_step_for_everything_that_can_be_found(
    request: DynamoGraphDeploymentRequest, facts: RequestFacts
) -> None:
    assert next_step(request, facts) in Action


@given(REQUESTS, FACTS)
def test_a_foreign_graph_is_never_shown_and_a_foreign_job_never_believed(
    request: DynamoGraphDeploymentRequest, facts: RequestFacts
) -> None:
    act = next_step(request, facts)
    if act is Action.SYNC_STATUS:
        assert facts.graph == graph("u")
    if act in (Action.RECORD_START, Action.DELETE_OLD_JOB, Action.REPORT_PROGRESS, Action.FAIL):
        assert facts.job is not None
        assert "u" == facts.job.metadata.owner_references[0].uid


@given(REQUESTS, FACTS)
def test_nothing_is_created_that_was_created_before(
    request: DynamoGraphDeploymentRequest, facts: RequestFacts
) -> None:
    act = next_step(request, facts)
    if act is Action.CREATE:
        assert not (request.status.deployment and request.status.deployment.created)
        assert facts.graph is None
    if act is Action.START:
        assert facts.job is None
        assert request.status.state in (RequestState.PENDING, RequestState.FAILED)


@given(
    st.sampled_from(sorted(FIXED)),
    st.integers(2, 5),
    FACTS,
    st.sampled_from((None, CREATED)),
)
def test_a_late_change_of_the_spec_changes_no_step(
    state: RequestState, generation: int, facts: RequestFacts, deployment: DeploymentStatus | None
) -> None:
    before = request(state, deployment=deployment)
    other = replace(SPEC, model="other", auto_apply=False, use_mocker=True)
    after = replace(request(state, generation=generation, deployment=deployment), spec=other)
    assert next_step(before, facts) is next_step(after, facts)
    assert SPEC == accepted_spec(after)


def test_an_edit_before_the_job_counts_and_one_after_it_does_not() -> None:
    edited = request(RequestState.PENDING, generation=2)
    assert Action.ACCEPT is next_step(edited, RequestFacts())
    assert Action.RECORD_START is next_step(edited, RequestFacts(job=job()))


def test_the_job_of_an_earlier_spec_goes_first() -> None:
    old = job(annotations={labels.REQUEST_GENERATION: "1"})
    anew = request(RequestState.PENDING, generation=2, observed_generation=2)
    assert Action.DELETE_OLD_JOB is next_step(anew, RequestFacts(job=old))
    assert Action.WAIT is next_step(anew, RequestFacts(pods_left=("profile-r-x",)))
    going = replace(old, metadata=replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    assert Action.WAIT is next_step(anew, RequestFacts(job=going))
    assert Action.START is next_step(anew, RequestFacts())


def test_results_of_an_earlier_job_make_way_and_those_of_others_keep_their_name() -> None:
    pending = request(RequestState.PENDING)
    earlier = Output(Metadata(labels={labels.REQUEST: "r"}))
    assert Action.START is next_step(pending, RequestFacts(output=earlier))
    for stranger in (Output(), Output(Metadata(labels={labels.REQUEST: "other"}))):
        assert Action.OUTPUT_TAKEN is next_step(pending, RequestFacts(output=stranger))
        assert Action.ACCEPT is next_step(
            request(RequestState.PENDING, generation=2), RequestFacts(output=stranger)
        )


def test_what_was_not_read_is_no_place_to_create_something() -> None:
    assert RequestFacts().destination.refusal


def test_only_what_others_can_clear_away_is_tried_again() -> None:
    for (type_, reason), where in RETRIED.items():
        assert where is stage(request(RequestState.FAILED, conditions=failed(type_, reason)))
    for type_, reason in (
        (RequestConditionType.PROFILING, RequestReason.PROFILING_FAILED),
        (RequestConditionType.GENERATED, RequestReason.GENERATION_FAILED),
    ):
        over = request(RequestState.FAILED, conditions=failed(type_, reason))
        assert Stage.NOTHING is stage(over)


def test_a_failure_that_an_earlier_operator_told_of_stays() -> None:
    old = (Condition(RequestConditionType.VALIDATION, "False", RequestReason.VALIDATION_FAILED),)
    left = request(RequestState.FAILED, generation=2, observed_generation=0, conditions=old)
    assert Stage.NOTHING is stage(left)


def test_a_failed_request_starts_anew_only_if_it_was_changed_after_its_failure() -> None:
    conditions = failed(RequestConditionType.PROFILING, RequestReason.PROFILING_FAILED, said_of=2)
    assert Stage.NOTHING is stage(request(RequestState.FAILED, generation=2, conditions=conditions))
    assert Stage.VALIDATION is stage(
        request(RequestState.FAILED, generation=3, conditions=conditions)
    )


def test_a_graph_of_an_earlier_operator_is_known_by_its_labels() -> None:
    marks = {labels.REQUEST: "r", labels.REQUEST_NAMESPACE: "n"}
    theirs = RequestFacts(graph=DynamoGraphDeployment(Metadata(name="r", labels=marks)))
    assert Action.SYNC_STATUS is next_step(request(RequestState.READY, deployment=CREATED), theirs)
    assert Action.GRAPH_NAME_TAKEN is next_step(
        request(RequestState.DEPLOYING, deployment=NOT_CREATED), theirs
    )


def test_an_accepted_spec_that_somebody_broke_is_not_used() -> None:
    broken = request(RequestState.PROFILING, accepted_spec={"model": 1})
    assert SPEC == accepted_spec(broken)
