"""Plan the next step of a build, with the status that reports it. The controller reads and acts."""

import base64
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

import msgspec

from dynamo_legacy.api import DynamoNim, DynamoNimRequest, DynamoNimRequestStatus
from dynamo_legacy.build.job import BUILDER, FETCHER, FORCE, HASH, REBUILD, build_hash, job_name
from dynamo_legacy.names import BuildJob, BuildPod, object_of
from dynamo_legacy.status import NIM_AVAILABLE
from dynamo_operator.requests.api import JobInFull, JobPodInFull
from dynamo_operator.requests.decide import runs_template
from dynamo_operator.shared.conditions import pause_over
from kube_runtime.apply.result import Blocked, controls
from kube_runtime.types.kinds import ContainerStatus
from kube_runtime.types.meta import Condition, Object, condition, cut

RETRY_SECONDS = 60.0
"""Seconds until a registry that did not respond is probed again, unless it says when."""
COMPRESSED = "zlib:"
"""The prefix of a termination message that is compressed, in base64."""
_MOST_OF_CONFIG = 1024**2
_NOT_BUILT = "the image exists, nothing to build"
_CHECKED = "ImageExistsChecked"
_MOST_OF_LOG = 600
"""Characters of a container's log in a condition."""


class Reason(StrEnum):
    """Reasons of a request's conditions."""

    PROBING = "Probing"
    BUILDING = "Building"
    SUCCEEDED = "Succeeded"
    BUILD_FAILED = "BuildFailed"
    TIMEOUT = "Timeout"
    SOURCE_UNAVAILABLE = "SourceUnavailable"
    VALIDATION_FAILED = "ValidationFailed"
    REGISTRY_UNREACHABLE = "RegistryUnreachable"


class Next(Enum):
    """The next step."""

    PROBE = "ask the registry for the image"
    BUILD = "create the Job"
    WAIT = "wait for the Job"
    RECORD = "write the DynamoNim"
    NOTHING = "wait for a change of the request"


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether the registry has an image. `error`: why that is unknown, "" if it is not."""

    exists: bool = False
    error: str = ""
    retry_seconds: float = RETRY_SECONDS


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """The inputs of a plan. `jobs` and `pods` are the request's own. `probe` None: not probed yet."""

    image: str
    jobs: Sequence[BuildJob] = ()
    pods: Sequence[BuildPod] = ()
    nim: DynamoNim | None = None
    probe: Probe | None = None


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """The next step and its conditions. `stale` are Jobs of earlier states of the request."""

    step: Next
    conditions: tuple[Condition, ...]
    stale: tuple[BuildJob, ...] = ()
    requeue_after_seconds: float | None = None


def plan_build(request: DynamoNimRequest, facts: BuildFacts) -> BuildPlan:
    """Plan the next step of a request."""
    name = job_name(request)
    job = next((job for job in facts.jobs if job.metadata.name == name), None)
    plan = _of_job(job, facts) if job else _without_job(request, facts)
    return replace(plan, stale=tuple(job for job in facts.jobs if job.metadata.name != name))


def _without_job(request: DynamoNimRequest, facts: BuildFacts) -> BuildPlan:
    annotations, image, probe, nim = request.metadata.annotations, facts.image, facts.probe, facts.nim
    is_forced = annotations.get(FORCE) == "true" or bool(annotations.get(REBUILD))
    built = nim.metadata.annotations.get(HASH) if nim is not None else None
    build = _building(Next.BUILD, image, "Unknown", f"Image building job {job_name(request)} is waiting")
    if is_forced and built != build_hash(request):  # also if the image exists, once for each state
        return build
    # Who writes a DynamoNim decides the image of its tag anyway; who writes the status of a request does not.
    if nim is not None and (built == build_hash(request) or nim.spec.image == image):
        # A build says first that the image is missing. So without that the image was found, by a process that
        # was killed before it could report it.
        is_told = condition(request.status.conditions, _CHECKED) is not None
        return _recorded(image, _NOT_BUILT, existed=None if is_told else True)
    if probe is None:
        return _stopped("Unknown", Reason.PROBING, "Checking image exists", Next.PROBE)
    if probe.error:
        plan = _stopped("Unknown", Reason.REGISTRY_UNREACHABLE, probe.error)
        return replace(plan, requeue_after_seconds=probe.retry_seconds)
    return _recorded(image, _NOT_BUILT, existed=True) if probe.exists else build


def refused(reason: Reason, text: str) -> BuildPlan:
    """The plan for a request that cannot be built, with the cause."""
    return _stopped("False", reason, text)


def request_status(
    request: DynamoNimRequest, plan: BuildPlan, blocked: Sequence[Blocked]
) -> DynamoNimRequestStatus:
    """The status after the step. An object that could not be written makes the DynamoNim unavailable."""
    generation, conditions = request.metadata.generation, list[Condition]()
    text = "; ".join(obstruction.message for obstruction in blocked)
    for planned in plan.conditions:
        shown = planned
        if blocked and planned.type == NIM_AVAILABLE:
            shown = Condition(planned.type, "False", Reason.BUILD_FAILED, text)
        conditions.append(msgspec.structs.replace(shown, observed_generation=generation))
    conditions += pause_over(generation, request.status.conditions)
    return msgspec.structs.replace(
        request.status, observed_generation=generation, conditions=tuple(conditions)
    )


def dynamo_nim(request: DynamoNimRequest, image: str, secret: str) -> Object:
    """The DynamoNim of a request whose image exists."""
    spec = request.spec
    copied: Object = {
        "serviceName": spec.service_name,
        "context": {"bentomlVersion": spec.context.bentoml_version} if spec.context else None,
        "models": [{"tag": model.tag, **msgspec.to_builtins(model)} for model in spec.models],
        "imagePullSecrets": [{"name": secret}] if secret else None,
    }
    given = {name: value for name, value in copied.items() if value}
    metadata = {
        "name": request.metadata.name,
        "namespace": request.metadata.namespace,
        "annotations": {HASH: build_hash(request)},
    }
    return object_of(DynamoNim, metadata, spec={"tag": spec.bento_tag, "image": image, **given})


def fetched_config(pod: BuildPod | JobPodInFull) -> str | None:
    """The configuration that the fetching container found, "" if none; None if it has not ended."""
    for container in pod.status.init_container_statuses:
        ended = container.state.terminated
        if container.name == FETCHER and ended is not None and ended.exit_code == 0:
            return _expanded(ended.message)
    return None


def config_report(job: JobInFull, pod: JobPodInFull) -> tuple[str | None, bool]:
    """The configuration that a pod reports, None if none, and whether it runs the template of its Job."""
    if not controls(job, pod):
        return None, False
    return fetched_config(pod), runs_template(job.spec["template"]["spec"], pod.spec)


# A user who may create pods can name the Job as the owner of one, with any message. Where admission changes
# pods, none runs the template; then no pod of others can have been the only one when the Job has ended.
def believed_config(reports: Iterable[tuple[str | None, bool]], *, is_complete: bool) -> str:
    """The configuration of the first pod that runs the template, else, once the Job is complete, of all pods.

    "" if they disagree, or there is none.
    """
    own = [report for report in reports if report[0] is not None]
    confirmed = [report for report in own if report[1]]
    texts = {text or "" for text, _ in confirmed[:1] or (own if is_complete else ())}
    return texts.pop() if len(texts) == 1 else ""


def _expanded(message: str) -> str:
    if not message.startswith(COMPRESSED):
        return message
    try:
        packed = base64.b64decode(message.removeprefix(COMPRESSED), validate=True)
        return zlib.decompressobj().decompress(packed, _MOST_OF_CONFIG).decode()
    except (ValueError, zlib.error):
        return ""  # not written by our program


def _stopped(status: str, reason: Reason, text: str, step: Next = Next.NOTHING) -> BuildPlan:
    conditions = (Condition(type_, status, reason, text) for type_ in ("ImageBuilding", NIM_AVAILABLE))
    return BuildPlan(step, tuple(conditions))


def _building(step: Next, image: str, status: str, text: str) -> BuildPlan:
    conditions = (
        Condition("ImageBuilding", status, Reason.BUILDING, text),
        Condition(NIM_AVAILABLE, "Unknown", Reason.BUILDING, "DynamoNim image is building"),
    )
    return BuildPlan(step, (*conditions, *_missing(image, Reason.BUILDING)))


def _missing(image: str, reason: Reason) -> tuple[Condition, Condition]:
    """The image does not exist, and did not before any build of this state of the request."""
    return (
        Condition("ImageExists", "False", reason, f"Image {image} is not exists"),
        _checked(image, existed=False),
    )


def _checked(image: str, *, existed: bool) -> Condition:
    status, text = ("True", image) if existed else ("False", f"Image not exists: {image}")
    return Condition(_CHECKED, status, Reason.PROBING, text)


def _recorded(image: str, text: str, *, existed: bool | None = None) -> BuildPlan:
    """The plan for an image that exists; `existed` None leaves unchanged whether it did before."""
    conditions = (
        Condition("ImageBuilding", "False", Reason.SUCCEEDED, text),
        Condition(NIM_AVAILABLE, "True", Reason.SUCCEEDED, "DynamoNim is generated"),
        Condition("ImageExists", "True", Reason.SUCCEEDED, image),
    )
    checked = () if existed is None else (_checked(image, existed=existed),)
    return BuildPlan(Next.RECORD, (*conditions, *checked))


def _of_job(job: BuildJob, facts: BuildFacts) -> BuildPlan:
    name, image = job.metadata.name, facts.image
    pods = [pod for pod in facts.pods if pod.metadata.labels.get("job-name") == name]
    if _true(job.status.conditions, "Complete"):
        return _recorded(image, f"Image building job {name} is succeeded.", existed=False)
    if failed := _true(job.status.conditions, "Failed"):
        is_late = failed.reason == "DeadlineExceeded"
        words = "imageBuildTimeout is over" if is_late else _last_words(pods) or failed.message
        text = f"Image building job {name} is failed." + (f" {words}" if words else "")
        reason = Reason.TIMEOUT if is_late else Reason.BUILD_FAILED
        plan = _stopped("False", reason, text)
        return replace(plan, conditions=(*plan.conditions, *_missing(image, reason)))
    is_active = any(
        pod.status.phase == "Running"
        or any(container.state.terminated for container in pod.status.init_container_statuses)
        for pod in pods
    )
    text = f"Image building job {name} is {'running' if is_active else 'waiting'}"
    return _building(Next.WAIT, image, "True" if is_active else "Unknown", text)


def _last_words(pods: Sequence[BuildPod]) -> str:
    """The last log line of a failed container, with its name; "" if there is none."""
    for pod in pods:
        statuses: Sequence[ContainerStatus] = (
            *pod.status.container_statuses,
            *pod.status.init_container_statuses,
        )
        for container in statuses:
            ended = container.state.terminated
            if container.name in (BUILDER, FETCHER) and ended is not None and ended.exit_code:
                lines = [line for line in ended.message.splitlines() if line.strip()]
                text = lines[-1].strip() if lines else ended.reason
                text = cut(f"{text} (exit code {ended.exit_code})", _MOST_OF_LOG)
                return f"{container.name}: {text}"
    return ""


def _true(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    reported = condition(conditions, type_)
    return reported if reported is not None and reported.status == "True" else None
