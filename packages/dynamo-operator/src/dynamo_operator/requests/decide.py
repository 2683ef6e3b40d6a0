"""Decide what to do next for a request, from what was read: one function for each stage.

A process may be killed after a write and before it records it. So every step is idempotent, and the next one
follows from the actual state. The status may be forged: it can end a request or send it back to an earlier
stage, but only the record takes it forward to the creation of an object (`api.Record`). Results count only if
the pods of the request's own Job confirm them.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any

from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api, extras, results, status
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.requests.render import uses_ai_configurator
from dynamo_operator.requests.status import RequestReport
from dynamo_operator.shared.conditions import CONFLICT_RETRY_SECONDS, REJECTED_RETRY_SECONDS
from kube_runtime.apply.result import controls, name_conflict
from kube_runtime.errors import Invalid
from kube_runtime.times import rfc3339
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Condition, Key, Object, Resource, condition


class Stage(Enum):
    """What a request is waiting for, which decides what has to be read."""

    VALIDATION = "validation of its spec"
    START = "start of profiling"
    PROFILING = "profiling"
    DEPLOYMENT = "creation of its graph or only the graph's ConfigMaps, and the graph's state"
    NOTHING = "nothing"


RETRIED: dict[tuple[api.RequestConditionType, api.RequestReason], Stage] = {
    (api.RequestConditionType.PROFILING, api.RequestReason.JOB_CREATION_FAILED): Stage.START,
    (api.RequestConditionType.PROFILING, api.RequestReason.NAME_CONFLICT): Stage.START,
    (api.RequestConditionType.DEPLOYED, api.RequestReason.DEPLOYMENT_CREATION_FAILED): Stage.DEPLOYMENT,
    (api.RequestConditionType.DEPLOYED, api.RequestReason.NAME_CONFLICT): Stage.DEPLOYMENT,
}
"""Failures whose cause users can remove, with the stage at which the request continues."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The namespace where a request creates its graph.

    `refusal` is the reason why nothing may be created there, or "". `config_maps` are the existing ones among
    those that the graph needs, by name; empty if nothing may be created.
    """

    namespace: str
    refusal: str = ""
    config_maps: Mapping[str, api.Output] = field(default_factory=dict[str, api.Output])


@dataclass(frozen=True, slots=True)
class PodReports:
    """Digests of the results by file, each with whether the pod that reports them runs its Job's template.

    `is_due`: the Job's copier reports them, or the Job is gone.
    """

    digests: tuple[tuple[dict[str, str], bool], ...] = ()
    is_due: bool = True


UNREAD = Destination("", "its namespace was not read")
"""The default, so that nothing is created without a check."""


@dataclass(frozen=True, slots=True)
class RequestInputs:
    """The objects that the stage of a request depends on; None for an object that does not exist.

    `problems` are those of the spec and of the objects that it names, `pods_left` names of running pods of an
    earlier Job, `reports` those of the Job that wrote the results, `temporary` graphs that a failed
    profiler left. `config_maps` have the base graph, by name: the user's, and the operator's, completed.
    `missing_setting` is what the operator lacks to create the Job, `too_large` which object exceeds a limit.
    `is_later`: the spec was written in v1beta1; `discovered` are fields of its hardware to be added.
    """

    problems: tuple[str, ...] = ()
    job: Job | None = None
    pods_left: tuple[str, ...] = ()
    pods: tuple[api.JobPod, ...] = ()
    output: api.Output | None = None
    reports: PodReports = PodReports()
    graph: DynamoGraphDeployment | None = None
    temporary: tuple[DynamoGraphDeployment, ...] = ()
    config_maps: Mapping[str, api.Output] = field(default_factory=dict[str, api.Output])
    destination: Destination = UNREAD
    missing_setting: str = ""
    too_large: str = ""
    is_later: bool = False
    discovered: Object = field(default_factory=dict[str, Any])


def is_active(request: Request) -> bool:
    """Whether the operator works on the request: it has a spec, and is not paused."""
    return request.spec is not None and not request.metadata.is_true(labels.PAUSED)


def stage(request: Request) -> Stage:
    """Return what the request is waiting for."""
    state, record = request.status.state or api.RequestState.NEW, api.recorded(request)
    if state == api.RequestState.DELETED:
        return Stage.NOTHING
    if record is not None and record.created:
        return Stage.DEPLOYMENT
    if state == api.RequestState.FAILED:
        return _after_failure(request, record)
    return _unrecorded(request, state) if record is None else _due(request, record)


def is_of_request(request: Request, graph: Resource) -> bool:
    """Whether a graph was created for this request, by its uid, or without one by an earlier operator."""
    uid = graph.metadata.annotations.get(labels.REQUEST_UID)
    if uid is not None:
        return uid == request.metadata.uid
    has_labels = results.tracking(request).items() <= graph.metadata.labels.items()
    return has_labels and was_created(request)


def was_created(request: Request) -> bool:
    """Whether the graph was created once. A forged status can only prevent its creation."""
    record, deployment = api.recorded(request), request.status.deployment
    is_recorded = record is not None and record.created
    return is_recorded or (deployment is not None and deployment.created)


def end_of(job: Job) -> Condition | None:
    """The condition `Complete` or `Failed` of a Job that has ended, else None."""
    for type_ in ("Complete", "Failed"):
        end = condition(job.status.conditions, type_)
        if end is not None and end.status == "True":
            return end
    return None


def _due(request: Request, record: api.Record) -> Stage:
    generation, status = request.metadata.generation, request.status
    was_interrupted = (
        status.state == api.RequestState.PENDING
        and status.observed_generation == generation != record.generation
    )
    if was_interrupted:  # after the status of a newer spec, before its record
        return Stage.VALIDATION
    if api.has_results(request):
        is_due = status.state == api.RequestState.DEPLOYING or extras.applies(request)
        return Stage.DEPLOYMENT if is_due else Stage.NOTHING
    return Stage.PROFILING if record.job or record.results else Stage.START


# Without a record a request is new, or from an earlier operator. Its results are read again. Of a graph that
# was created only the state is read.
def _unrecorded(request: Request, state: str) -> Stage:
    match state:
        case api.RequestState.PROFILING:
            return Stage.PROFILING
        case api.RequestState.DEPLOYING | api.RequestState.READY:
            if not api.accepted_spec(request).auto_apply:
                return Stage.NOTHING
            return Stage.DEPLOYMENT if was_created(request) else Stage.PROFILING
        case _:
            return Stage.VALIDATION


def _after_failure(request: Request, record: api.Record | None) -> Stage:
    status, generation = request.status, request.metadata.generation
    succeeded = condition(status.conditions, api.RequestConditionType.SUCCEEDED)
    if succeeded is None:
        return Stage.NOTHING  # failed under an earlier operator
    is_edited = generation != api.accepted_generation(request)
    # Edited after the failure was reported: an edit that was rejected before stays so, also after a pause.
    is_new = succeeded.observed_generation != generation
    was_refused = status.observed_generation == 0
    if is_edited and (is_new or was_refused):
        return Stage.VALIDATION
    for (type_, reason), stage_ in RETRIED.items():
        failed = condition(status.conditions, type_)
        if failed is not None and (failed.status, failed.reason) == ("False", reason):
            if record is not None:
                return _due(request, record)
            return Stage.VALIDATION if stage_ is Stage.START else Stage.PROFILING
    return Stage.NOTHING


def target_of(request: Request) -> Key:
    """The key of the graph. One that an earlier operator created may have another name than the spec says."""
    deployment = request.status.deployment
    if api.recorded(request) is None and deployment and deployment.name and deployment.namespace:
        return Key(deployment.namespace, deployment.name)
    return results.target(request, api.accepted_spec(request))


def is_job_of(request: Request, job: Job) -> bool:
    """Whether the Job is that of the request, and the recorded one if one was recorded."""
    record = api.recorded(request)
    is_recorded = record is None or record.job in {"", job.metadata.uid}
    return is_recorded and controls(request, job)


class Work(Enum):
    """What takes more than a report: `after` decides on the report by its outcome."""

    START = "create the Job"
    COLLECT = "read the results of profiling, and record them"
    CREATE = "create the graph unless it exists or the user creates it, and its ConfigMaps"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do for a request now: first the deletions, then the work, or else the report.

    `record` returns the record to write after the report, for the request with the stored status. An
    `may_wait` report is progress, which may wait. None as a report leaves the status as it is. If
    hardware was `discovered`, only its fields are added to the spec, which is then validated again.
    """

    report: RequestReport | None = None
    record: Callable[[Request], api.Record] | None = None
    work: Work | None = None
    deletes: tuple[Resource, ...] = ()
    requeue_after_seconds: float | None = None
    may_wait: bool = False
    discovered: Object = field(default_factory=dict[str, Any])


def held(report: RequestReport, retry_seconds: float = REJECTED_RETRY_SECONDS) -> Decision:
    """Report a cause that others must remove, and retry later."""
    return Decision(report, requeue_after_seconds=retry_seconds)


class ActionBlocked(Exception):
    """The work cannot be done now; the message has the cause.

    `is_taken`: another object, which stays as it is, has the name. `is_invalid`: a retry will be refused too.
    """

    def __init__(self, text: str, *, is_taken: bool = False, is_invalid: bool = False) -> None:
        super().__init__(text)
        self.is_taken = is_taken
        self.is_invalid = is_invalid


@dataclass(frozen=True, slots=True)
class Created:
    """The created graph, None if the user creates it, and the problems of its ConfigMaps.

    They are true if a retry may succeed.
    """

    graph: DynamoGraphDeployment | None
    problems: Mapping[str, bool]


Outcome = Job | results.ProfilingResult | Created | ActionBlocked | results.BadOutput | Invalid
"""What work led to; the last three are failures. `Invalid`: the API server refuses to store the results."""


def decide(request: Request, inputs: RequestInputs, now: datetime) -> Decision:
    """Decide what to do now; there is a decision for every combination of inputs."""
    if request.metadata.is_true(labels.PAUSED):
        return Decision(status.stopped(request, api.RequestReason.PAUSED, "the request is paused"))
    if request.spec is None:
        return Decision(status.refused(request, ("spec is required",)))
    if inputs.too_large:  # anyone may change what the request names
        text = f"Cannot read what the request needs: {inputs.too_large}"
        return held(status.stopped(request, api.RequestReason.TOO_LARGE, text))
    match stage(request):
        case Stage.VALIDATION:
            return _validate(request, inputs)
        case Stage.START:
            return _start(request, inputs, now)
        case Stage.PROFILING:
            return _profile(request, inputs, now)
        case Stage.DEPLOYMENT:
            return _deploy(request, inputs, now)
        case Stage.NOTHING:
            if request.status.state == api.RequestState.DEPLOYING:
                return Decision(status.created(request, None, (), is_complete=True))
            # A change of the spec that comes too late, or the end of a pause.
            return Decision(status.restated(request))


def after(request: Request, inputs: RequestInputs, outcome: Outcome, now: datetime) -> Decision:
    """Decide what to report and to record after the work of a decision."""
    match outcome:
        case Job():
            return _begun(request, outcome, now)
        case results.ProfilingResult():
            spec = api.accepted_spec(request)
            target = results.target(request, spec) if spec.auto_apply else None
            progress = progress_of(inputs)
            report = status.generated(request, outcome, progress, target=target, now=rfc3339(now))
            return Decision(report, api.with_results)
        case Created(graph, problems):
            is_complete = not any(problems.values())
            report = status.created(request, graph, (*problems,), is_complete=is_complete)
            record = partial(api.extended, created=graph is not None)
            return Decision(report, record) if is_complete else held(report)
        case ActionBlocked():
            return _blocked(request, outcome)
        case results.BadOutput():
            return _not_generated(request, inputs, now, str(outcome))
        case Invalid():
            text = f"the API server does not store the profiling results: {outcome.message}"
            return _not_generated(request, inputs, now, text)


def _blocked(request: Request, blocked: ActionBlocked) -> Decision:
    """The Job or, in the later stage, the graph cannot be created."""
    step, reason = api.RequestConditionType.DEPLOYED, api.RequestReason.DEPLOYMENT_CREATION_FAILED
    if stage(request) is Stage.START:
        step, reason = api.RequestConditionType.PROFILING, api.RequestReason.JOB_CREATION_FAILED
    if blocked.is_taken:
        reason = api.RequestReason.NAME_CONFLICT
    return held(status.blocked(request, step, reason, str(blocked)))


def _validate(request: Request, inputs: RequestInputs) -> Decision:
    if inputs.problems or request.spec is None:
        return held(status.refused(request, inputs.problems))
    if inputs.discovered:
        return Decision(discovered=inputs.discovered)
    return Decision(status.accepted(request, request.spec, is_later=inputs.is_later), api.with_spec)


def _start(request: Request, inputs: RequestInputs, now: datetime) -> Decision:
    if inputs.job is not None:
        return _present_job(request, inputs.job, now)
    if inputs.pods_left:  # they could overwrite the results of the next Job
        return Decision(status.waiting(request, status.left_over(None, inputs.pods_left)))
    if request.metadata.generation != api.accepted_generation(request):
        return _validate(request, inputs)
    output, ours = inputs.output, names.label_value(request.metadata.name)
    if output is not None and output.metadata.labels.get(labels.REQUEST) != ours:
        text = (
            f"ConfigMap {names.profiling_output(request.metadata.name)} exists and is not from profiling; "
            "the operator leaves it alone: rename or delete it"
        )
        return _blocked(request, ActionBlocked(text, is_taken=True))
    if inputs.missing_setting:
        return _blocked(request, ActionBlocked(inputs.missing_setting))
    return Decision(work=Work.START)


def _present_job(request: Request, job: Job, now: datetime) -> Decision:
    """A Job exists before its creation was recorded: that of this request, of an earlier spec, or another."""
    if not controls(request, job):
        blocked = name_conflict(job, request)
        if blocked.passes_by_itself:
            return held(status.waiting(request, blocked.message), CONFLICT_RETRY_SECONDS)
        return _blocked(request, ActionBlocked(blocked.message, is_taken=True))
    if job.metadata.deletion_timestamp:  # its end requeues the request
        return Decision(status.waiting(request, status.left_over(job, ())))
    # Who may create Jobs may have created an unrecorded one, and so decides the results. That is worth no
    # more than a graph in the same namespace; for another one the Job is created again.
    made_for = job.metadata.annotations.get(labels.REQUEST_GENERATION)
    is_of_spec = made_for is None or made_for == str(api.accepted_generation(request))
    stays = results.target(request, api.accepted_spec(request)).namespace == request.metadata.namespace
    return _begun(request, job, now) if is_of_spec and stays else Decision(deletes=(job,))


def _begun(request: Request, job: Job, now: datetime) -> Decision:
    """Report and record that the Job runs."""
    is_offline = uses_ai_configurator(api.accepted_spec(request))
    report = status.begun(request, rfc3339(now), is_offline=is_offline)
    return Decision(report, partial(api.extended, job=job.metadata.uid))


def _profile(request: Request, inputs: RequestInputs, now: datetime) -> Decision:
    job, progress = inputs.job, progress_of(inputs)
    if job is None or not is_job_of(request, job):
        output = inputs.output or api.Output()
        owners = {owner.uid for owner in output.metadata.owner_references}
        if request.metadata.uid not in owners or output.data.keys().isdisjoint(_SIGNED):
            name = request.status.profiling_job_name or "of the request"
            text = f"profiling job {name} was deleted before the operator read its results"
            return _failed(request, inputs, now, f"{text}. Create a new DGDR to profile again")
    elif (end := end_of(job)) is None:
        text, seconds = status.obstacle(inputs.pods, now)
        report = status.watched(request, progress, text)
        return Decision(report, requeue_after_seconds=seconds, may_wait=True)
    elif end.type == "Failed":
        return _failed(request, inputs, now, status.failure(end, inputs.pods, progress))
    if progress.has_failed:
        text = f"the profiler reports a failure: {progress.message or 'it gives no cause'}"
        return _failed(request, inputs, now, text)
    if inputs.output is None:
        name = names.profiling_output(request.metadata.name)
        text = f"output ConfigMap {name} not found - profiling may not have completed yet"
        return _not_generated(request, inputs, now, text)
    if doubt := unconfirmed(request, api.accepted_spec(request), inputs.reports, inputs.output.data):
        return _not_generated(request, inputs, now, doubt)
    return Decision(work=Work.COLLECT)


def _failed(request: Request, inputs: RequestInputs, now: datetime, text: str) -> Decision:
    """Profiling failed, or its Job was deleted; the graphs that it measured hold GPUs."""
    going = tuple(graph for graph in inputs.temporary if not graph.metadata.deletion_timestamp)
    report = status.profiling_failed(request, text, progress_of(inputs), rfc3339(now))
    return Decision(report, deletes=going)


def _not_generated(request: Request, inputs: RequestInputs, now: datetime, text: str) -> Decision:
    """Profiling succeeded, and its results cannot be used."""
    progress = progress_of(inputs)
    if progress.message:
        text = f"{text}. The profiler reports: {progress.message}"
    return Decision(status.not_generated(request, text, progress, rfc3339(now)))


def progress_of(inputs: RequestInputs) -> results.ProfilingProgress:
    """What the profiler reports."""
    return results.progress(inputs.output.data) if inputs.output is not None else results.ProfilingProgress()


def _deploy(request: Request, inputs: RequestInputs, now: datetime) -> Decision:
    graph, generated = inputs.graph, request.status.generated_deployment
    if was_created(request) and (graph is None or not is_of_request(request, graph)):
        return Decision(status.lost(request))
    if graph is None:
        result = results.ProfilingResult(generated or {}, request.status.additional_resources)
        free = results.with_free_names(request, result, inputs.destination.config_maps)
        if generated is None or free is result:
            return _create(request, inputs, now)
        # Recorded before the graph that mounts them is created.
        texts = {"graph_text": free.graph, "config_maps_text": free.config_maps}
        stored = replace(request.status, **{name: api.as_text(it) for name, it in texts.items()})
        return Decision(RequestReport(stored), api.with_results)
    if not is_of_request(request, graph):
        return _blocked(request, ActionBlocked(status.taken_graph(target_of(request)), is_taken=True))
    record = api.recorded(request)
    if record is not None and not record.created:
        # A process created it and was killed before it could record that.
        return _create(request, inputs, now)
    return Decision(status.mirrored(request, graph), may_wait=True)


def _create(request: Request, inputs: RequestInputs, now: datetime) -> Decision:
    refusal, graph = inputs.destination.refusal, inputs.graph
    if not refusal:
        return Decision(work=Work.CREATE)
    if graph is None and extras.applies(request):
        return _blocked(request, ActionBlocked(refusal))
    config_maps = [*results.named_config_maps(request.status.additional_resources)]
    return after(request, inputs, Created(graph, {refusal: True} if config_maps else {}), now)


_DIGEST_LENGTH = 64
_SIGNED = (api.RESULTS_FILE, api.MOCKED_RESULTS_FILE, api.FINAL_FILE)
_PROGRAM = ("image", "command", "args", "env", "envFrom", "workingDir", "lifecycle")
"""Fields of a container that decide what it runs."""
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def pod_reports(job: api.JobInFull | None, pods: Iterable[api.JobPodInFull]) -> PodReports:
    """What those of these pods report that the Job controls."""
    if job is None:
        return PodReports()
    template: Object = job.spec["template"]["spec"]
    copier = _named(template, "containers").get(api.COPIER) or {}
    own = (pod for pod in pods if controls(job, pod))
    return PodReports(
        tuple((digests, runs_template(template, pod.spec)) for pod in own for digests in _reports(pod)),
        # That of an earlier operator reports nothing.
        not {"copy-output", api.COPIER}.isdisjoint(copier.get("args") or ()),
    )


# Every pod with the profiling ServiceAccount and every user who may write ConfigMaps can write the results.
# The copier therefore reports a digest of each file as its termination message, in the format of sha256sum,
# and only kubelets write the status of pods. A user who may create pods can create one with the Job as its
# owner. So a report counts only if its pod runs the Job's template, and all reports of a Job must agree.
def unconfirmed(request: Request, spec: RequestSpec, told: PodReports, data: Mapping[str, str]) -> str:
    """Why the Job's pods do not confirm the results as far as the spec uses them; "" if they do."""
    metadata, namespace = request.metadata, results.target(request, spec).namespace
    actual = {name: hashlib.sha256(data[name].encode()).hexdigest() for name in _SIGNED if name in data}
    if any(digests != actual for digests, _ in told.digests):
        return (
            "the output ConfigMap differs from what the profiling Job wrote (the digests that "
            "its pod reported do not match): something else changed it"
        )
    is_signed = any(runs_template for _, runs_template in told.digests)
    if namespace != metadata.namespace and not is_signed:
        return (
            "no pod of the profiling Job that runs the Job's template reports the digests of the results, "
            f"which are required to create objects in namespace {namespace}"
        )
    # For a graph in the same namespace any report is enough: a user who may create pods or Jobs there needs
    # no graph for it.
    if spec.auto_apply and told.is_due and not told.digests:
        return (
            "no pod of the profiling Job reports the digests of the results, so that anything may have "
            f"written them: review ConfigMap {names.profiling_output(metadata.name)}, and create the graph "
            "yourself"
        )
    return ""


def runs_template(template: Object, pod: Object) -> bool:
    """Whether a pod runs the programs of a template, with the same ServiceAccount and the same volumes.

    Admission may add containers, such as sidecars, but they must not mount volumes of the template.
    """
    same = ("serviceAccountName", "shareProcessNamespace", "hostPID")
    if any(template.get(field) != pod.get(field) for field in same):
        return False
    volumes, theirs = _named(template, "volumes"), _named(pod, "volumes")
    if any(theirs.get(name) != volume for name, volume in volumes.items()):
        return False
    containers, running = (
        {(kind, name): container for kind in _CONTAINERS for name, container in _named(spec, kind).items()}
        for spec in (template, pod)
    )
    added = (container for key, container in running.items() if key not in containers)
    if any(mount["name"] in volumes for container in added for mount in _mounts(container)):
        return False
    return all(_runs(container, running.get(key)) for key, container in containers.items())


def _runs(container: Object, running: Object | None) -> bool:
    if running is None or any(container.get(name) != running.get(name) for name in _PROGRAM):
        return False
    declared, mounts = _mounts(container), _mounts(running)
    added = [mount for mount in mounts if mount not in declared]
    return all(mount in mounts for mount in declared) and all(
        mount["mountPath"] == api.TOKEN_FOLDER for mount in added
    )


def _named(spec: Object, field: str) -> Object:
    return {item["name"]: item for item in spec.get(field) or ()}


def _mounts(container: Object) -> list[Any]:
    return container.get("volumeMounts") or []


def _reports(pod: api.JobPodInFull) -> Iterator[dict[str, str]]:
    """Yield the digests by file that the copier reported, if it succeeded."""
    for container in pod.status.container_statuses:
        ended = container.state.terminated
        if container.name != api.COPIER or ended is None or ended.exit_code:
            continue
        lines = (line.partition("  ") for line in ended.message.splitlines())
        digests = {name: digest for digest, _, name in lines if len(digest) == _DIGEST_LENGTH}
        if report := {name: digests[name] for name in _SIGNED if name in digests}:
            yield report
