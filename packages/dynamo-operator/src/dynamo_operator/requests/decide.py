"""Decide what to do next for a request, from what was read: one function for each stage.

A process may be killed after a write and before it records it. So every step is idempotent, and the next one
follows from the actual state. The status may be forged: it can end a request or send it back to an earlier
stage, but only the record takes it forward to the creation of an object (`api.Record`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import partial

from dynamo_operator import labels, names
from dynamo_operator.requests import status
from dynamo_operator.requests.api import (
    MOCKED_RESULTS_FILE,
    RESULTS_FILE,
    DynamoGraphDeploymentRequest,
    Output,
    Record,
    accepted_generation,
    accepted_spec,
    recorded,
    with_job,
    with_results,
    with_spec,
)
from dynamo_operator.requests.plan import (
    RequestFacts,
    RequestReason,
    RequestState,
    Stage,
    end_of,
    is_job_of,
    is_of_request,
    stage,
    target_of,
    was_created,
)
from dynamo_operator.requests.render import uses_ai_configurator
from dynamo_operator.requests.results import (
    ProfilingProgress,
    ProfilingResult,
    progress,
    target,
    with_free_names,
)
from dynamo_operator.requests.status import RequestReport
from dynamo_operator.shared.conditions import CONFLICT_RETRY_SECONDS, REJECTED_RETRY_SECONDS
from kube_runtime.apply.result import controls, name_conflict
from kube_runtime.times import rfc3339
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Condition, Resource


class Work(Enum):
    """What takes more than a report: its outcome decides on the report."""

    START = "create the Job"
    COLLECT = "read the results of profiling, and record them"
    CREATE = "create the graph"
    ATTACH = "create the ConfigMaps of the graph, and record that it was created"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do for a request now: first the deletions, then the work, or else the report.

    `record` returns the record to write after the report, for the request with the stored status. An
    `is_paced` report is progress, which may wait. None as a report leaves the status as it is.
    """

    report: RequestReport | None = None
    record: Callable[[DynamoGraphDeploymentRequest], Record] | None = None
    work: Work | None = None
    deletes: tuple[Resource, ...] = ()
    requeue_after_seconds: float | None = None
    is_paced: bool = False


def held(report: RequestReport, retry_seconds: float = REJECTED_RETRY_SECONDS) -> Decision:
    """Report a cause that others must remove, and retry later."""
    return Decision(report, requeue_after_seconds=retry_seconds)


def decide(request: DynamoGraphDeploymentRequest, facts: RequestFacts, now: datetime) -> Decision:
    """Decide what to do now; there is a decision for every combination of inputs."""
    match stage(request):
        case Stage.VALIDATION:
            return _validate(request, facts)
        case Stage.START:
            return _start(request, facts, now)
        case Stage.PROFILING:
            return _profile(request, facts, now)
        case Stage.DEPLOYMENT:
            return _deploy(request, facts)
        case Stage.NOTHING:
            return _rest(request)


def _validate(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Decision:
    if facts.problems or request.spec is None:
        return held(status.refused(request, facts.problems))
    return Decision(status.accepted(request, request.spec), with_spec)


def _start(request: DynamoGraphDeploymentRequest, facts: RequestFacts, now: datetime) -> Decision:
    if facts.job is not None:
        return _present_job(request, facts.job, now)
    if facts.pods_left:  # they could overwrite the results of the next Job
        return Decision(status.waiting(request, status.left_over(None, facts.pods_left)))
    if request.metadata.generation != accepted_generation(request):
        return _validate(request, facts)
    output, ours = facts.output, names.label_value(request.metadata.name)
    if output is not None and output.metadata.labels.get(labels.REQUEST) != ours:
        return held(status.output_taken(request))
    return Decision(work=Work.START)


def _present_job(request: DynamoGraphDeploymentRequest, job: Job, now: datetime) -> Decision:
    """A Job exists before its creation was recorded: that of this request, of an earlier spec, or another."""
    if not controls(request, job):
        blocked = name_conflict(job, request)
        if blocked.passes_by_itself:
            return held(status.waiting(request, blocked.message), CONFLICT_RETRY_SECONDS)
        return held(status.not_started(request, RequestReason.NAME_CONFLICT, blocked.message))
    if job.metadata.deletion_timestamp:  # its end requeues the request
        return Decision(status.waiting(request, status.left_over(job, ())))
    # Who may create Jobs may have created an unrecorded one, and so decides the results. That is worth no
    # more than a graph in the same namespace; for another one the Job is created again.
    made_for = job.metadata.annotations.get(labels.REQUEST_GENERATION)
    is_of_spec = made_for is None or made_for == str(accepted_generation(request))
    stays = target(request, accepted_spec(request)).namespace == request.metadata.namespace
    return begun(request, job, now) if is_of_spec and stays else Decision(deletes=(job,))


def begun(request: DynamoGraphDeploymentRequest, job: Job, now: datetime) -> Decision:
    """Report and record that the Job runs."""
    is_offline = uses_ai_configurator(accepted_spec(request))
    report = status.begun(request, rfc3339(now), is_offline=is_offline)
    return Decision(report, partial(with_job, uid=job.metadata.uid))


def _profile(request: DynamoGraphDeploymentRequest, facts: RequestFacts, now: datetime) -> Decision:
    job = facts.job
    if job is None or not is_job_of(request, job):
        is_done = _has_results(request, facts.output)
        return Decision(work=Work.COLLECT) if is_done else _failed(request, facts, now, None)
    end = end_of(job)
    if end is None:
        text, seconds = status.obstacle(facts.pods, now)
        report = status.watched(request, progress_of(facts), text)
        return Decision(report, requeue_after_seconds=seconds, is_paced=True)
    return Decision(work=Work.COLLECT) if end.type == "Complete" else _failed(request, facts, now, end)


def _failed(
    request: DynamoGraphDeploymentRequest, facts: RequestFacts, now: datetime, end: Condition | None
) -> Decision:
    """Profiling failed, or, without an `end`, its Job was deleted; the graphs that it measured hold GPUs."""
    going = tuple(graph for graph in facts.temporary if not graph.metadata.deletion_timestamp)
    if end is None:
        text = (
            f"profiling job {request.status.profiling_job_name or 'of the request'} was deleted before the "
            "operator read its results. Create a new DGDR to profile again"
        )
    else:
        text = status.failure(end, facts.pods, progress_of(facts))
    report = status.profiling_failed(request, text, progress_of(facts), rfc3339(now))
    return Decision(report, deletes=going)


def _has_results(request: DynamoGraphDeploymentRequest, output: Output | None) -> bool:
    """Whether the results of this request exist; its Job may have been deleted."""
    if output is None:
        return False
    is_own = any(owner.uid == request.metadata.uid for owner in output.metadata.owner_references)
    return is_own and bool({RESULTS_FILE, MOCKED_RESULTS_FILE} & output.data.keys())


def progress_of(facts: RequestFacts) -> ProfilingProgress:
    """What the profiler reports."""
    return progress(facts.output.data) if facts.output is not None else ProfilingProgress()


def _deploy(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Decision:
    graph, generated = facts.graph, request.status.generated_deployment
    if was_created(request) and (graph is None or not is_of_request(request, graph)):
        return Decision(status.lost(request))
    if graph is None:
        result = ProfilingResult(generated or {}, request.status.additional_resources)
        free = with_free_names(request, result, facts.destination.config_maps)
        if generated is None or free is result:
            return Decision(work=Work.CREATE)
        # Recorded before the graph that mounts them is created.
        return Decision(status.renamed(request, free), with_results)
    if not is_of_request(request, graph):
        text = status.taken_graph(target_of(request))
        return held(status.not_created(request, RequestReason.NAME_CONFLICT, text))
    record = recorded(request)
    if record is not None and not record.created:
        # A process created it and was killed before it could record that.
        return Decision(work=Work.ATTACH)
    return Decision(status.mirrored(request, graph), is_paced=True)


def _rest(request: DynamoGraphDeploymentRequest) -> Decision:
    if request.status.state == RequestState.DEPLOYING:
        return Decision(status.settled(request))
    # A change of the spec that comes too late, or the end of a pause.
    return Decision(status.restated(request) if status.has_to_be_restated(request) else None)
