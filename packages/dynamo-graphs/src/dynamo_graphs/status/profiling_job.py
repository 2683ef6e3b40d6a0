"""Why a profiling Job failed or does not progress, in words that a user can act on.

An evicted pod, a crashed profiler and a copier that could not write all end in the same condition of the Job;
the message distinguishes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from dynamo_graphs.plan.request_output import ProfilingProgress
from dynamo_graphs.status.pods import pod_report
from dynamo_graphs.status.reasons import POD_REASONS, GraphReason
from dynamo_graphs.types.profiling import JobPod
from kube_runtime.text import fitted
from kube_runtime.types.batch import Job
from kube_runtime.types.core import ContainerStatus
from kube_runtime.types.meta import Condition

LAST_LINES = 10
"""Lines of a container's last output that a message quotes."""

_LAST_CHARACTERS = 2000
_NAMES_CHARACTERS = 300
_BLOCKED = frozenset(POD_REASONS) - {GraphReason.PODS_NOT_READY}


def failure(end: Condition, pods: Iterable[JobPod], progress: ProfilingProgress) -> str:
    """Why the Job failed: its own message, then that of the pod that failed last."""
    text = f"profiling job failed: {end.message or end.reason}"
    newest = sorted(pods, key=_age, reverse=True)
    details = next((detail for pod in newest for detail in _details(pod)), "")
    if details:
        text += f". Details: {details}"
    if progress.message and progress.has_failed and progress.message.rstrip("…") not in text:
        text += f". The profiler reports: {progress.message}"
    return text


def unread(reason: str, progress: ProfilingProgress) -> str:
    """Why there is no result although the Job succeeded."""
    return f"{reason}. The profiler reports: {progress.message}" if progress.message else reason


def left_over(job: Job | None, pods: Sequence[str]) -> str:
    """What is left of an earlier Job: the Job itself, being deleted, or pods that have not terminated."""
    if job is not None:
        return f"Job {job.metadata.name} is being deleted"
    names = fitted(pods, _NAMES_CHARACTERS, between=", ")
    return f"{len(pods)} of its pods {'has' if len(pods) == 1 else 'have'} not terminated: {names}"


def obstacle(pods: Iterable[JobPod], now: datetime) -> tuple[str, float | None]:
    """Why the profiling pod is not ready ("" if unknown), and the seconds after which that may change.

    None means that it changes only with the pod.
    """
    times: list[float] = []
    for pod in sorted(pods, key=_age, reverse=True):
        report = pod_report(pod, now)
        if report.requeue_after_seconds is not None:
            times.append(report.requeue_after_seconds)
        blockage = report.blockage
        if blockage is not None and blockage.reason in _BLOCKED:
            return blockage.describe(pod.metadata.name), None
    return "", min(times, default=None)


def _age(pod: JobPod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.metadata.name


def _details(pod: JobPod) -> Iterator[str]:
    """What went wrong in a pod, the likeliest cause first."""
    if pod.status.phase != "Failed":
        return
    if pod.status.reason:
        # Not a container's failure: the pod was evicted, or its node is gone.
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
    """The last lines of a text: a program reports its fatal error last."""
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    last = "\n".join(lines[-LAST_LINES:])
    if len(last) > _LAST_CHARACTERS:
        last = f"…{last[1 - _LAST_CHARACTERS :]}"
    return f", Message: {last}" if last else ""
