"""Why profiling has failed, or does not progress, in words that a user can act on.

A pod that was evicted, a profiler that crashed and a copier that could not write all end in the same
condition of the Job; the message distinguishes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from dynamo_graphs.plan.request_output import ProfilingProgress
from dynamo_graphs.status.pods import pod_report
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.types.profiling import JobPod
from kube_runtime.text import fitted
from kube_runtime.types.batch import Job
from kube_runtime.types.core import ContainerStatus
from kube_runtime.types.meta import Condition

LAST_LINES = 10
"""How many lines of what a container said last are kept."""

_LAST_CHARACTERS = 2000
_NAMES_CHARACTERS = 300
_BLOCKED = frozenset(
    (
        GraphReason.INSUFFICIENT_CAPACITY,
        GraphReason.IMAGE_PULL_FAILED,
        GraphReason.CONFIG_ERROR,
        GraphReason.PODS_CRASHING,
    )
)


def failure(end: Condition, pods: Iterable[JobPod], progress: ProfilingProgress) -> str:
    """Why the Job has failed: its own words, then those of the pod that failed last."""
    text = f"profiling job failed: {end.message or end.reason}"
    newest = sorted(pods, key=_age, reverse=True)
    details = next((detail for pod in newest for detail in _details(pod)), "")
    if details:
        text += f". Details: {details}"
    if progress.message and progress.has_failed and progress.message.rstrip("…") not in text:
        text += f". The profiler reports: {progress.message}"
    return text


def unread(reason: str, progress: ProfilingProgress) -> str:
    """Why there is no result although the Job has ended well."""
    return f"{reason}. The profiler reports: {progress.message}" if progress.message else reason


def left_over(job: Job | None, pods: Sequence[str]) -> str:
    """What is left of an earlier Job: itself, on its way out, or pods of it that have not ended."""
    if job is not None:
        return f"Job {job.metadata.name} is being deleted"
    names = fitted(pods, _NAMES_CHARACTERS, between=", ")
    return f"{len(pods)} of its pods {'has' if len(pods) == 1 else 'have'} not terminated: {names}"


def obstacle(pods: Iterable[JobPod], now: datetime) -> tuple[str, float | None]:
    """Why the profiling pod is not ready, and in how many seconds that may be another thing.

    An empty text means: nothing that is known. None means: only a change of the pod can change it.
    """
    again: list[float] = []
    for pod in sorted(pods, key=_age, reverse=True):
        report = pod_report(pod, now)
        if report.requeue_after_seconds is not None:
            again.append(report.requeue_after_seconds)
        blockage = report.blockage
        if blockage is not None and blockage.reason in _BLOCKED:
            container = f" container {blockage.container}" if blockage.container else ""
            detail = f": {blockage.message}" if blockage.message else ""
            return f"pod {pod.metadata.name}{container} {blockage.word}{detail}", None
    return "", min(again, default=None)


def _age(pod: JobPod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.metadata.name


def _details(pod: JobPod) -> Iterator[str]:
    """What went wrong in a pod, the likeliest cause first."""
    if pod.status.phase != "Failed":
        return
    if pod.status.reason:
        # The node, not a container: the pod was evicted, or its node is gone.
        yield f"Pod: {pod.metadata.name}, Reason: {pod.status.reason}{_message(pod.status.message)}"
    for container in pod.status.container_statuses:
        ended = container.state.terminated
        if ended is not None and ended.exit_code:
            code, reason = f"ExitCode: {ended.exit_code}", f"Reason: {ended.reason}"
            yield f"{_subject(pod, container)}, {code}, {reason}{_message(ended.message)}"
    for container in pod.status.container_statuses:
        waiting = container.state.waiting
        if waiting is not None:
            detail = f"Reason: {waiting.reason}, Message: {waiting.message}"
            yield f"{_subject(pod, container)}, Waiting - {detail}"


def _subject(pod: JobPod, container: ContainerStatus) -> str:
    return f"Pod: {pod.metadata.name}, Container: {container.name}"


def _message(text: str) -> str:
    """The last lines of a text; a program says last what it died of."""
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    last = "\n".join(lines[-LAST_LINES:])
    if len(last) > _LAST_CHARACTERS:
        last = f"…{last[1 - _LAST_CHARACTERS :]}"
    return f", Message: {last}" if last else ""
