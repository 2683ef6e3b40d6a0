"""Plan the next step of a build, with the status that reports it. The controller reads and acts."""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

import msgspec

from dynamo_legacy.api import DynamoNim, DynamoNimRequest, DynamoNimRequestStatus
from dynamo_legacy.build.job import BUILDER, FETCHER, FORCE, HASH, REBUILD, build_hash, job_name
from dynamo_legacy.names import BuildJob, BuildPod, object_of
from dynamo_legacy.status import NIM_AVAILABLE
from dynamo_operator.shared.conditions import pause_over
from kube_runtime.apply.result import Blocked
from kube_runtime.types.kinds import ContainerStatus
from kube_runtime.types.meta import Condition, Object, condition, cut

RETRY_SECONDS = 60.0
"""Seconds until a registry that did not respond is probed again, unless it says when."""
COMPRESSED = "zlib:"
"""The prefix of a termination message that is compressed, in base64."""
_MOST_OF_CONFIG = 1024**2
_NOT_BUILT = "the image exists, nothing to build"
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


@dataclass(frozen=True, slots=True)
class _Report:
    """Builds the plans of one request."""

    request: DynamoNimRequest
    facts: BuildFacts
    stale: tuple[BuildJob, ...] = ()

    def plan(
        self,
        step: Next,
        available: tuple[str, str, str],
        building: tuple[str, str, str],
        exists: bool | None,
        requeue: float | None = None,
        existed: bool | None = None,
    ) -> BuildPlan:
        """The plan, with conditions from triples of status, reason and message.

        `exists`: the image exists. `existed`: it did before any build of this state of the request. None
        leaves the condition unchanged.
        """
        image = self.facts.image
        conditions = [
            self._condition("ImageBuilding", *building),
            self._condition(NIM_AVAILABLE, *available),
        ]
        if exists is not None:
            text = image if exists else f"Image {image} is not exists"
            status, reason = ("True", Reason.SUCCEEDED) if exists else ("False", building[1])
            conditions.append(self._condition("ImageExists", status, reason, text))
        if existed is not None:
            text, status = (image, "True") if existed else (f"Image not exists: {image}", "False")
            conditions.append(self._condition("ImageExistsChecked", status, Reason.PROBING, text))
        return BuildPlan(step, tuple(conditions), self.stale, requeue)

    def _condition(self, type_: str, status: str, reason: str, message: str) -> Condition:
        generation = self.request.metadata.generation
        return Condition(type_, status, reason, message, observed_generation=generation)


def plan_build(request: DynamoNimRequest, facts: BuildFacts) -> BuildPlan:
    """Plan the next step of a request."""
    name = job_name(request)
    stale = tuple(job for job in facts.jobs if job.metadata.name != name)
    report = _Report(request, facts, stale)
    job = next((job for job in facts.jobs if job.metadata.name == name), None)
    if job is not None:
        return _of_job(report, job)
    annotations = request.metadata.annotations
    is_forced = annotations.get(FORCE) == "true" or bool(annotations.get(REBUILD))
    built = facts.nim.metadata.annotations.get(HASH) if facts.nim is not None else None
    waiting = f"Image building job {name} is waiting"
    if is_forced and built != build_hash(request):  # also if the image exists, once for each state
        return _building(report, Next.BUILD, "Unknown", waiting)
    exists = _true(request.status.conditions, "ImageExists")
    if exists is not None and exists.message == facts.image:
        return _recorded(report, _NOT_BUILT)
    if facts.probe is None:
        unknown = ("Unknown", Reason.PROBING, "Checking image exists")
        return report.plan(Next.PROBE, unknown, unknown, exists=None)
    if facts.probe.error:
        unknown = ("Unknown", Reason.REGISTRY_UNREACHABLE, facts.probe.error)
        retry_seconds = facts.probe.retry_seconds
        return report.plan(Next.NOTHING, unknown, unknown, exists=None, requeue=retry_seconds)
    if facts.probe.exists:
        return _recorded(report, _NOT_BUILT, existed=True)
    return _building(report, Next.BUILD, "Unknown", waiting)


def refused(request: DynamoNimRequest, image: str, reason: Reason, text: str) -> BuildPlan:
    """The plan for a request that cannot be built, with the cause."""
    report = _Report(request, BuildFacts(image))
    return report.plan(Next.NOTHING, ("False", reason, text), ("False", reason, text), exists=None)


def request_status(
    request: DynamoNimRequest, plan: BuildPlan, blocked: Sequence[Blocked]
) -> DynamoNimRequestStatus:
    """The status after the step. An object that could not be written makes the DynamoNim unavailable."""
    generation, conditions = request.metadata.generation, plan.conditions
    if blocked:
        text = "; ".join(obstruction.message for obstruction in blocked)
        failed = {"status": "False", "reason": Reason.BUILD_FAILED, "message": text}
        conditions = tuple(
            msgspec.structs.replace(reported, **failed) if reported.type == NIM_AVAILABLE else reported
            for reported in conditions
        )
    over = pause_over(generation, request.status.conditions)
    return msgspec.structs.replace(
        request.status, observed_generation=generation, conditions=(*conditions, *over)
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


def fetched_config(pods: Sequence[BuildPod]) -> str:
    """The configuration of the graph that the fetching container found; "" if there is none."""
    for pod in pods:
        for container in pod.status.init_container_statuses:
            ended = container.state.terminated
            if container.name == FETCHER and ended is not None and ended.exit_code == 0:
                return _expanded(ended.message)
    return ""


def _expanded(message: str) -> str:
    """Decompress a termination message, if the fetching program compressed it."""
    if not message.startswith(COMPRESSED):
        return message
    try:
        packed = base64.b64decode(message.removeprefix(COMPRESSED), validate=True)
        return zlib.decompressobj().decompress(packed, _MOST_OF_CONFIG).decode()
    except (ValueError, zlib.error):
        return ""  # not written by our program


def _building(report: _Report, step: Next, status: str, text: str) -> BuildPlan:
    available = ("Unknown", Reason.BUILDING, "DynamoNim image is building")
    building = (status, Reason.BUILDING, text)
    return report.plan(step, available, building, exists=False, existed=False)


def _recorded(report: _Report, text: str, *, existed: bool | None = None) -> BuildPlan:
    return report.plan(
        Next.RECORD,
        ("True", Reason.SUCCEEDED, "DynamoNim is generated"),
        ("False", Reason.SUCCEEDED, text),
        exists=True,
        existed=existed,
    )


def _of_job(report: _Report, job: BuildJob) -> BuildPlan:
    name = job.metadata.name
    pods = [pod for pod in report.facts.pods if pod.metadata.labels.get("job-name") == name]
    if _true(job.status.conditions, "Complete"):
        return _recorded(report, f"Image building job {name} is succeeded.", existed=False)
    if failed := _true(job.status.conditions, "Failed"):
        is_late = failed.reason == "DeadlineExceeded"
        words = "imageBuildTimeout is over" if is_late else _last_words(pods) or failed.message
        text = f"Image building job {name} is failed." + (f" {words}" if words else "")
        reason = Reason.TIMEOUT if is_late else Reason.BUILD_FAILED
        failure = ("False", reason, text)
        return report.plan(Next.NOTHING, failure, failure, exists=False, existed=False)
    is_active = any(
        pod.status.phase == "Running"
        or any(container.state.terminated for container in pod.status.init_container_statuses)
        for pod in pods
    )
    text = f"Image building job {name} is {'running' if is_active else 'waiting'}"
    return _building(report, Next.WAIT, "True" if is_active else "Unknown", text)


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
    """The condition of that type, if its status is True."""
    reported = condition(conditions, type_)
    return reported if reported is not None and reported.status == "True" else None
