"""The next step of a request: total, safe to repeat, and always at an end at last."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.api import RequestConditionType as Type
from dynamo_operator.requests.api import RequestReason as Reason
from dynamo_operator.requests.api import RequestState as State
from dynamo_operator.requests.decide import (
    RETRIED,
    ActionBlocked,
    Created,
    Destination,
    PodReports,
    RequestInputs,
    Stage,
    Work,
    after,
    decide,
    pod_reports,
    stage,
    unconfirmed,
)
from dynamo_operator.requests.results import BadOutput, ProfilingResult
from kube_runtime.errors import Invalid
from kube_runtime.types.kinds import ContainerState, ContainerStatus, Job, JobStatus, Terminated
from kube_runtime.types.meta import Condition, Metadata, Object, OwnerReference
from simulated.requests import a_spec

SPEC = a_spec(auto_apply=True)
OURS = OwnerReference(
    api_version="nvidia.com/v1alpha1", kind="DynamoGraphDeploymentRequest", name="r", uid="u", controller=True
)


GRAPH = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "g"},
    "spec": {"services": {}},
}
GRAPH_TEXT = api.as_text(GRAPH)


def request(state: str = "", *, generation: int = 1, **status: Any) -> Request:
    """A request in that state, whose first spec was accepted, with the record of what led there."""
    metadata = Metadata(name="r", namespace="n", uid="u", generation=generation)
    if not state:
        return Request(metadata, SPEC)
    observed: dict[str, Any] = {"observed_generation": 1, "accepted_spec": api.as_text(SPEC)}
    reported = RequestStatus(state=state, **(observed | status))
    return recorded_up_to(Request(metadata, SPEC, reported))


def recorded_up_to(request: Request) -> Request:
    """The request with the record that the operator has written until it reported such a status."""
    status = request.status
    writes: list[Callable[[Request], api.Record]] = [api.with_spec]
    if status.state in api.FIXED or status.generated_deployment:
        writes.append(partial(api.extended, job="job"))
    if status.generated_deployment:
        writes.append(api.with_results)
    if status.deployment and status.deployment.created:
        writes.append(partial(api.extended, created=True))
    for write in writes:
        record = write(request)
        if write is api.with_spec:
            record = replace(record, generation=status.observed_generation)
        metadata = replace(request.metadata, annotations=api.annotation(record))
        request = replace(request, metadata=metadata)
    return request


def unrecorded(request: Request) -> Request:
    """The request as an earlier operator left it, or a forger wrote it."""
    return replace(request, metadata=replace(request.metadata, annotations={}))


def job(*ends: str, owner: OwnerReference | None = OURS, **metadata: Any) -> Job:
    """A Job of the request with these conditions."""
    owners = (owner,) if owner else ()
    conditions = tuple(Condition(each, "True") for each in ends)
    metadata = {"uid": "job", **metadata}
    return Job(Metadata(name="profile-r", owner_references=owners, **metadata), JobStatus(conditions))


def graph(uid: str) -> DynamoGraphDeployment:
    """A graph that was made for the request of that uid."""
    return DynamoGraphDeployment(Metadata(name="r", annotations={labels.REQUEST_UID: uid}))


def failed(type_: Type, reason: str, *, said_of: int = 1, held: str = "") -> tuple[Condition, ...]:
    """The conditions of a failure that the status reports for a generation; `held` is why it waits since."""
    succeeded = Condition(Type.SUCCEEDED, "False", held or reason, observed_generation=said_of)
    return Condition(type_, "False", reason), succeeded


CREATED = api.DeploymentStatus(name="r", namespace="n", created=True)
NOT_CREATED = api.DeploymentStatus(name="r", namespace="n")

HERE = Destination("n")
OUTPUT = api.Output(Metadata(owner_references=(OURS,)), data={"config_with_planner.yaml": "kind: x"})
CONFIRMED = PodReports(is_due=False)
INPUTS = st.builds(
    RequestInputs,
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
    output=st.sampled_from((None, OUTPUT, api.Output())),
    graph=st.sampled_from((None, graph("u"), graph("other"))),
    destination=st.sampled_from((RequestInputs().destination, HERE)),
    reports=st.sampled_from((RequestInputs().reports, CONFIRMED)),
)
CONDITIONS = st.sampled_from(
    (
        (),
        *(failed(type_, reason) for type_, reason in RETRIED),
        failed(Type.PROFILING, Reason.PROFILING_FAILED),
        (Condition(Type.VALIDATION, "False", Reason.VALIDATION_FAILED),),
    )
)
REQUESTS = st.builds(
    request,
    st.sampled_from((*State, "Unheard")),
    generation=st.integers(1, 3),
    conditions=CONDITIONS,
    deployment=st.sampled_from((None, CREATED, NOT_CREATED)),
    graph_text=st.sampled_from((api.ABSENT, GRAPH_TEXT)),
)
REQUESTS = st.one_of(REQUESTS, REQUESTS.map(unrecorded))


NOW = datetime(2026, 1, 1, tzinfo=UTC)
DELETE, MIRROR = "delete the Job", "repeat the state of the graph"


def step(request: Request, inputs: RequestInputs) -> Work | str:
    """The work that is decided on, or the reason of the reported step, "" if no step is reported."""
    decision = decide(request, inputs, NOW)
    if decision.work or decision.report is None:
        return decision.work or (DELETE if decision.deletes else "")
    steps = [it for it in decision.report.status.conditions if it.type != Type.SUCCEEDED]
    if decision.may_wait and steps[-1].type == Type.DEPLOYED:
        return MIRROR
    return steps[-1].reason if steps else ""


def records(request: Request, inputs: RequestInputs) -> bool:
    """Whether the record is extended, so that the request goes on to its next stage."""
    return decide(request, inputs, NOW).record is not None


@given(REQUESTS, INPUTS)
def test_a_foreign_graph_is_never_shown_and_a_foreign_job_never_believed(
    request: Request, inputs: RequestInputs
) -> None:
    found = step(request, inputs)
    if found == MIRROR:
        assert inputs.graph == graph("u")
    if found in (Reason.PROFILING_RUNNING, DELETE):
        assert inputs.job is not None
        assert "u" == inputs.job.metadata.owner_references[0].uid


@given(REQUESTS, INPUTS)
def test_nothing_is_created_that_was_created_before(request: Request, inputs: RequestInputs) -> None:
    found = step(request, inputs)
    if found is Work.CREATE:
        assert not (request.status.deployment and request.status.deployment.created)
        assert inputs.graph in (None, graph("u"))
        assert inputs.destination == HERE
    if found is Work.START:
        assert inputs.job is None
        assert Stage.START is stage(request)


@given(st.sampled_from(sorted(api.FIXED)), st.integers(2, 5), INPUTS, st.sampled_from((None, CREATED)))
def test_a_late_change_of_the_spec_changes_no_step(
    state: State, generation: int, inputs: RequestInputs, deployment: api.DeploymentStatus | None
) -> None:
    before = request(state, deployment=deployment)
    other = replace(SPEC, model="other", auto_apply=False, use_mocker=True)
    after = replace(request(state, generation=generation, deployment=deployment), spec=other)
    assert step(before, inputs) == step(after, inputs)
    assert SPEC == api.accepted_spec(after)


CURVES: Object = {"kind": "ConfigMap", "metadata": {"name": "curves"}}
FORGED_SPEC = a_spec(profiler_image="forged:1", auto_apply=True, use_mocker=True)
FORGED: Object = {**GRAPH, "metadata": {"name": "forged"}}


@given(REQUESTS, REQUESTS, INPUTS)
def test_a_forged_status_creates_nothing_that_the_record_does_not_allow(
    real: Request, other: Request, inputs: RequestInputs
) -> None:
    status = replace(
        other.status,
        accepted_spec=api.as_text(FORGED_SPEC),
        graph_text=api.as_text(FORGED),
        config_maps_text=api.as_text([{"kind": "ConfigMap", "metadata": {"name": "planted"}}]),
    )
    forged = replace(real, status=status)
    assert SPEC == api.accepted_spec(forged)
    assert inputs.graph or step(forged, inputs) is not Work.CREATE
    assert stage(forged) is not Stage.DEPLOYMENT or not records(forged, inputs)
    record = api.recorded(real)
    if record is not None and record.job and real.metadata.generation == record.generation:
        assert stage(forged) not in {Stage.VALIDATION, Stage.START}
    if record is not None and record.created:
        assert stage(forged) in {Stage.DEPLOYMENT, Stage.NOTHING}


def test_a_graph_that_was_deleted_is_not_created_again_whatever_the_status_says() -> None:
    created = request(State.READY, deployment=CREATED, graph_text=GRAPH_TEXT)
    for state in State:
        status = replace(created.status, state=state, deployment=None, observed_generation=0)
        assert step(replace(created, status=status), RequestInputs()) in {Reason.DEPLOYMENT_DELETED, ""}


def left(state: State, **status: Any) -> Request:
    """A request of an earlier operator, which kept no accepted spec."""
    return unrecorded(request(state, accepted_spec=api.ABSENT, **status))


def forged(**change: Any) -> Request:
    """A request whose graph is due, with a change of its status by another."""
    return replace(DEPLOYING, status=replace(DEPLOYING.status, **change))


def elsewhere() -> Request:
    """A pending request for another namespace."""
    spec = replace(SPEC, deployment_overrides=api.DeploymentOverrides(namespace="elsewhere"))
    return replace(request(State.PENDING, accepted_spec=api.as_text(spec)), spec=spec)


PENDING = request(State.PENDING)
EDITED = request(State.PENDING, generation=2)
ANEW = request(State.PENDING, generation=2, observed_generation=2)
DEPLOYING = request(State.DEPLOYING, deployment=NOT_CREATED, graph_text=GRAPH_TEXT)
MANUAL = request(State.READY, accepted_spec=api.as_text(a_spec()), graph_text=GRAPH_TEXT)
EARLIER: Object = {"annotations": {labels.REQUEST_GENERATION: "1"}}
READ_ONLY = request(State.PROFILING, accepted_spec=api.as_text(a_spec()))
DONE = RequestInputs(job=job("Complete"), output=OUTPUT, reports=CONFIRMED)
FAILING = api.Output(OUTPUT.metadata, {**OUTPUT.data, "profiler_status.yaml": "status: failed"})
LABELLED = RequestInputs(
    graph=DynamoGraphDeployment(
        Metadata(name="r", labels={labels.REQUEST: "r", labels.REQUEST_NAMESPACE: "n"})
    )
)
OF_EARLIER, OF_ANOTHER = (
    RequestInputs(output=api.Output(Metadata(labels={labels.REQUEST: name}))) for name in ("r", "other")
)


@pytest.mark.parametrize(
    ("request_", "inputs", "expected"),
    [
        # An edit before the Job counts, and one after it does not.
        (EDITED, RequestInputs(), Reason.ACCEPTED),
        (EDITED, RequestInputs(job=job()), Reason.PROFILING_RUNNING),
        # The Job of an earlier spec goes first.
        (ANEW, RequestInputs(job=job(**EARLIER)), DELETE),
        (ANEW, RequestInputs(pods_left=("profile-r-x",)), Reason.WAITING),
        (ANEW, RequestInputs(job=job(deletion_timestamp="2026", **EARLIER)), Reason.WAITING),
        (ANEW, RequestInputs(), Work.START),
        # Results of an earlier Job make way, those of others keep their name.
        (PENDING, OF_EARLIER, Work.START),
        (PENDING, OF_ANOTHER, Reason.NAME_CONFLICT),
        (PENDING, RequestInputs(output=api.Output()), Reason.NAME_CONFLICT),
        (EDITED, OF_ANOTHER, Reason.ACCEPTED),
        # Of two Jobs only the recorded one counts, for another namespace none that is not recorded.
        (PENDING, RequestInputs(job=job()), Reason.PROFILING_RUNNING),
        (elsewhere(), RequestInputs(job=job()), DELETE),
        (request(State.PROFILING), RequestInputs(job=job("Complete", uid="other")), Reason.PROFILING_FAILED),
        # Results count although their Job was deleted.
        (READ_ONLY, RequestInputs(output=OUTPUT), Work.COLLECT),
        # ... unless a graph is to be created from them, which no pod confirms.
        (request(State.PROFILING), RequestInputs(output=OUTPUT), Reason.GENERATION_FAILED),
        (request(State.PROFILING), RequestInputs(job=job("Complete")), Reason.GENERATION_FAILED),
        (request(State.PROFILING), RequestInputs(), Reason.PROFILING_FAILED),
        # ... or the profiler reports that it failed.
        (request(State.PROFILING), RequestInputs(output=FAILING), Reason.PROFILING_FAILED),
        (request(State.PROFILING), RequestInputs(job=DONE.job, output=FAILING), Reason.PROFILING_FAILED),
        # Results that another put into the status are read again.
        (DEPLOYING, RequestInputs(destination=HERE), Work.CREATE),
        (DEPLOYING, RequestInputs(graph=graph("u"), destination=HERE), Work.CREATE),
        # Nothing is created in a namespace that was not read, and without settings that a Job needs.
        (DEPLOYING, RequestInputs(), Reason.DEPLOYMENT_CREATION_FAILED),
        (ANEW, RequestInputs(missing_setting="no image"), Reason.JOB_CREATION_FAILED),
        (MANUAL, RequestInputs(), ""),
        (forged(graph_text=api.as_text(FORGED)), DONE, Work.COLLECT),
        (forged(graph_text=api.ABSENT), DONE, Work.COLLECT),
        (forged(config_maps_text=api.as_text([{"kind": "ConfigMap"}])), DONE, Work.COLLECT),
        # A graph of an earlier operator is recognized by its labels once it was created.
        (unrecorded(request(State.READY, deployment=CREATED)), LABELLED, MIRROR),
        (DEPLOYING, LABELLED, Reason.NAME_CONFLICT),
        # A request of an earlier operator goes on where it was.
        (left(State.PENDING), RequestInputs(), Reason.ACCEPTED),
        (left(State.PROFILING), RequestInputs(job=job()), Reason.PROFILING_RUNNING),
        (left(State.PROFILING), DONE, Work.COLLECT),
        (left(State.DEPLOYING, graph_text=GRAPH_TEXT), DONE, Work.COLLECT),
        (
            left(State.READY, graph_text=GRAPH_TEXT, deployment=CREATED),
            RequestInputs(graph=graph("u")),
            MIRROR,
        ),
        (left(State.DELETED, deployment=CREATED), RequestInputs(), ""),
    ],
)
def test_the_next_step(request_: Request, inputs: RequestInputs, expected: Work | str) -> None:
    assert expected == step(request_, inputs)


@pytest.mark.parametrize(
    ("request_", "outcome", "expected", "is_recorded"),
    [
        (ANEW, job(), Reason.PROFILING_RUNNING, True),
        (ANEW, ActionBlocked("no"), Reason.JOB_CREATION_FAILED, False),
        (ANEW, ActionBlocked("no", is_taken=True), Reason.NAME_CONFLICT, False),
        (READ_ONLY, ProfilingResult(GRAPH), Reason.GENERATED, True),
        (READ_ONLY, BadOutput("no"), Reason.GENERATION_FAILED, False),
        (READ_ONLY, Invalid(422, "Invalid", "no"), Reason.GENERATION_FAILED, False),
        (DEPLOYING, Created(graph("u"), {}), Reason.DEPLOYMENT_CREATED, True),
        (DEPLOYING, Created(graph("u"), {"no": False}), Reason.DEPLOYMENT_CREATED, True),
        (DEPLOYING, Created(graph("u"), {"no": True}), Reason.DEPLOYMENT_CREATION_FAILED, False),
        (DEPLOYING, ActionBlocked("no"), Reason.DEPLOYMENT_CREATION_FAILED, False),
    ],
)
def test_what_is_reported_after_the_work(
    request_: Request, outcome: Any, expected: Reason, *, is_recorded: bool
) -> None:
    decision = after(request_, RequestInputs(output=OUTPUT), outcome, NOW)
    assert decision.report is not None
    steps = [it for it in decision.report.status.conditions if it.type != Type.SUCCEEDED]
    assert (expected, is_recorded) == (steps[-1].reason, decision.record is not None)


def test_a_request_without_a_spec_is_refused() -> None:
    refused = decide(replace(PENDING, spec=None), RequestInputs(), NOW)
    assert refused.report is not None
    assert "spec is required" == refused.report.status.message


def test_config_maps_for_a_namespace_that_is_refused_are_reported_and_retried() -> None:
    request_ = replace(
        MANUAL, status=replace(MANUAL.status, config_maps_text=api.as_text([CURVES]), state="Deploying")
    )
    with_results = replace(request_.metadata, annotations=api.annotation(api.with_results(request_)))
    decision = decide(replace(request_, metadata=with_results), RequestInputs(), NOW)
    assert decision.report is not None
    text = "Failed to create ConfigMaps from profiling output: its namespace was not read"
    assert ([text], None) == ([it.message for it in decision.report.events], decision.record)
    assert decision.requeue_after_seconds


PROFILING_FAILED = (Type.PROFILING, Reason.PROFILING_FAILED)
REFUSED = (Condition(Type.VALIDATION, "False", Reason.VALIDATION_FAILED),)


@pytest.mark.parametrize(
    ("generation", "conditions", "status", "expected"),
    [
        # Only what others can clear away is tried again.
        *(
            (1, failed(*cause), {"graph_text": GRAPH_TEXT} if where is Stage.DEPLOYMENT else {}, where)
            for cause, where in RETRIED.items()
        ),
        (1, failed(*PROFILING_FAILED), {}, Stage.NOTHING),
        (1, failed(Type.GENERATED, Reason.GENERATION_FAILED), {}, Stage.NOTHING),
        # It starts anew only if it was changed after its failure was reported.
        (2, failed(*PROFILING_FAILED, said_of=2), {}, Stage.NOTHING),
        (3, failed(*PROFILING_FAILED, said_of=2), {}, Stage.VALIDATION),
        (2, failed(*PROFILING_FAILED, held=Reason.PAUSED), {}, Stage.VALIDATION),
        *((2, failed(*PROFILING_FAILED, said_of=2, held=it), {}, Stage.NOTHING) for it in api.HELD),
        (
            *(2, failed(Type.VALIDATION, Reason.VALIDATION_FAILED)),
            *({"observed_generation": 0}, Stage.VALIDATION),
        ),
        # A failure under an earlier operator, which had no summary, stays.
        (2, REFUSED, {"observed_generation": 0}, Stage.NOTHING),
    ],
)
def test_the_stage_after_a_failure(
    generation: int, conditions: tuple[Condition, ...], status: Object, expected: Stage
) -> None:
    over = request(State.FAILED, generation=generation, conditions=conditions, **status)
    assert expected is stage(over)


TOKEN = {
    "name": "kube-api-access-x",
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}
MOUNT = {"name": "results", "mountPath": "/data"}
TEMPLATE: Object = {
    "serviceAccountName": "profiling",
    "containers": [
        {"name": "profiler", "image": "p:1", "args": ["a"], "volumeMounts": [MOUNT]},
        {"name": "output-copier", "image": "o:1", "volumeMounts": [MOUNT]},
    ],
    "volumes": [{"name": "results", "emptyDir": {}}],
}
JOB_IN_FULL = api.JobInFull(
    Metadata(name="profile-r", namespace="n", uid="job"), spec={"template": {"spec": TEMPLATE}}
)
DATA = {"config_with_planner.yaml": "graph", "profiler_status.yaml": "phase: Done"}


def report(**files: str) -> str:
    """The lines of sha256sum."""
    return "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}.yaml\n" for name, text in files.items()
    )


SIGNATURE = report(config_with_planner="graph")


def running(change: Object, *, of: str = "") -> Object:
    """The template's pod spec with a change, of the container `of` or of the whole spec."""
    if not of:
        return {**TEMPLATE, **change}
    containers = [
        {**container, **change} if container["name"] == of else container
        for container in TEMPLATE["containers"]
    ]
    return {**TEMPLATE, "containers": containers}


def pod(
    message: str,
    *,
    owner: str = "job",
    container: str = "output-copier",
    code: int = 0,
    spec: Object = TEMPLATE,
) -> api.JobPodInFull:
    """A pod whose container has ended with that message."""
    reference = OwnerReference(
        api_version="batch/v1", kind="Job", name="profile-r", uid=owner, controller=True
    )
    ended = ContainerState(terminated=Terminated(code, message=message))
    status = api.JobPodStatus(container_statuses=(ContainerStatus(container, state=ended),))
    metadata = Metadata(name="p", namespace="n", owner_references=(reference,))
    return api.JobPodInFull(metadata, spec=spec, status=status)


ELSEWHERE = a_spec(deployment_overrides=api.DeploymentOverrides(namespace="other"))


def doubt(job: api.JobInFull | None, pods: list[api.JobPodInFull], spec: RequestSpec) -> str:
    """Why these pods do not confirm the results as far as the spec uses them."""
    request = Request(Metadata(name="r", namespace="n"), spec)
    return unconfirmed(request, spec, pod_reports(job, pods), DATA)


def is_signed(pods: list[api.JobPodInFull], job: api.JobInFull | None = JOB_IN_FULL) -> bool:
    """Whether the pods confirm the results so well that they may be used in another namespace."""
    text = doubt(job, pods, ELSEWHERE)
    assert not text or "objects in namespace other" in text
    return not text


@pytest.mark.parametrize(
    "messages",
    [
        (report(config_with_planner="other"),),
        (report(config_with_planner="graph", mocker_config_with_planner="other"),),
        (report(mocker_config_with_planner="graph"),),
        (SIGNATURE, report(config_with_planner="other")),
    ],
)
def test_other_results_than_those_reported_are_refused(messages: tuple[str, ...]) -> None:
    assert "something else changed it" in doubt(JOB_IN_FULL, [*map(pod, messages)], ELSEWHERE)


@pytest.mark.parametrize(
    "found",
    [
        pod(SIGNATURE, owner="another"),
        pod(SIGNATURE, container="profiler"),
        pod(SIGNATURE, code=1),
        pod("all is well"),
        pod(""),
    ],
)
def test_only_a_copier_pod_of_the_job_confirms_results(found: api.JobPodInFull) -> None:
    assert not is_signed([found])
    assert not is_signed([pod(SIGNATURE)], None)
    assert is_signed([pod(SIGNATURE)])


@pytest.mark.parametrize(
    "spec",
    [
        {},
        running({"serviceAccountName": "another"}),
        running({"shareProcessNamespace": True}),
        running({"hostPID": True}),
        running({"volumes": [{"name": "results", "configMap": {"name": "forged"}}]}),
        running({"image": "forged:1"}, of="output-copier"),
        running({"command": ["sh"]}, of="output-copier"),
        running({"args": ["b"]}, of="profiler"),
        running({"env": [{"name": "PYTHONPATH", "value": "/forged"}]}, of="profiler"),
        running({"envFrom": [{"secretRef": {"name": "forged"}}]}, of="profiler"),
        running({"lifecycle": {"postStart": {"exec": {"command": ["sh"]}}}}, of="profiler"),
        running({"volumeMounts": []}, of="profiler"),
        running(
            {"volumeMounts": [MOUNT, {"name": "forged", "mountPath": "/data/graph.yaml"}]}, of="output-copier"
        ),
        running({"initContainers": [{"name": "i", "volumeMounts": [MOUNT]}]}),
        running({"ephemeralContainers": [{"name": "e", "volumeMounts": [MOUNT]}]}),
        running({"containers": [*TEMPLATE["containers"], {"name": "s", "volumeMounts": [MOUNT]}]}),
        running({"containers": TEMPLATE["containers"][1:]}),
    ],
)
def test_a_pod_that_runs_something_else_confirms_nothing(spec: Object) -> None:
    assert not is_signed([pod(SIGNATURE, spec=spec)])


def test_changes_by_admission_do_not_invalidate_a_confirmation() -> None:
    sidecar = {"name": "s", "image": "s:1", "volumeMounts": [TOKEN]}
    spec = running({"volumeMounts": [MOUNT, TOKEN]}, of="profiler")
    spec = {**spec, "containers": [*spec["containers"], sidecar], "nodeName": "a"}
    assert is_signed([pod(SIGNATURE, spec=spec)])


COPYING = running({"args": ["copy-output", "n"]}, of="output-copier")


def test_a_graph_is_created_only_from_results_that_a_pod_of_the_job_reports() -> None:
    job, mutated = replace(JOB_IN_FULL, spec={"template": {"spec": COPYING}}), pod(SIGNATURE, spec={})
    assert "" == doubt(job, [], a_spec())
    assert "" == doubt(job, [mutated], SPEC)  # admission may change the pods of a namespace
    assert "" == doubt(JOB_IN_FULL, [], SPEC)  # the copier of an earlier operator reports nothing
    missing: list[list[api.JobPodInFull]] = [[], [pod("")], [pod(SIGNATURE, owner="another")]]
    for owner, pods in (*((job, pods) for pods in missing), (None, [mutated])):
        assert "review ConfigMap dgdr-output-r" in doubt(owner, pods, SPEC)
