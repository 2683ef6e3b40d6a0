"""Why one pod is not ready, and when that may change by time alone.

The answer stays the same as long as nothing has changed: a kubelet alternates between two words for one
failure, and texts with a number of seconds in them would be written every second. So a failure has one
word, the end of a container also describes the wait after it, and times are points in time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.types.core import ContainerStatus, Pod, Terminated
from kube_runtime.types.meta import Condition, condition

UNSCHEDULABLE_SECONDS = 30.0
"""So long a pod may wait for a node: another may just be going."""

UNSTARTED_SECONDS = 60.0
"""So long a pod may wait for its volumes and its network."""

SCHEDULED, STARTABLE, READY = "PodScheduled", "PodReadyToStartContainers", "Ready"
READ_CONDITIONS = frozenset((SCHEDULED, STARTABLE, READY))
"""The types of a pod's conditions that are read here; nothing else needs to be cached."""

TEXT_LIMIT = 200
"""Characters of other components' messages that are kept."""

_PULL_FAILED = "ImagePullBackOff"
_IMAGE = frozenset(("ErrImagePull", _PULL_FAILED, "InvalidImageName", "ErrImageNeverPull"))
_CONFIG = frozenset(("CreateContainerConfigError", "CreateContainerError", "RunContainerError"))
_CRASH_LOOP, _OUT_OF_MEMORY = "CrashLoopBackOff", "OOMKilled"
_CREATING = frozenset(("ContainerCreating", "PodInitializing"))


@dataclass(frozen=True, slots=True)
class Blockage:
    """Why a pod is not ready. `word` is the kubelet's, or the scheduler's.

    None means: it is not one container, it is not known since when, nothing was started.
    """

    reason: GraphReason
    word: str
    message: str
    container: str | None = None
    since: str | None = None
    restarts: int | None = None


@dataclass(frozen=True, slots=True)
class PodReport:
    """What can be said of a pod now.

    None means: no known cause; nothing will change by time alone.
    """

    blockage: Blockage | None = None
    requeue_after_seconds: float | None = None


def is_ready(pod: Pod) -> bool:
    """Whether the pod gets requests."""
    found = condition(pod.status.conditions, READY)
    return found is not None and found.status == "True"


def is_over(pod: Pod) -> bool:
    """Whether the pod has ended, or is about to. Another replaces it, so it blocks nothing."""
    is_finished = pod.status.phase in ("Succeeded", "Failed")
    return is_finished or pod.metadata.deletion_timestamp is not None


def pod_report(pod: Pod, now: datetime) -> PodReport:
    """Why the pod is not ready: the first cause that fits."""
    if is_over(pod) or is_ready(pod):
        return PodReport()
    if not pod.spec.node_name:
        return _unplaced(pod, now)
    found = next(_image(pod), None) or next(_config(pod), None)
    if found is not None:
        return PodReport(found)
    unstarted = _unstarted(pod, now)
    if unstarted.blockage is not None:
        return unstarted
    return PodReport(next(_crashes(pod), None) or _not_ready(pod), unstarted.requeue_after_seconds)


def _unplaced(pod: Pod, now: datetime) -> PodReport:
    found = condition(pod.status.conditions, SCHEDULED)
    if found is None or found.reason != "Unschedulable":
        return PodReport()
    since = found.last_transition_time
    left = _left(since, UNSCHEDULABLE_SECONDS, now)
    # The pod is named at once; that no node fits is reported when it has waited.
    reason = GraphReason.PODS_NOT_READY if left else GraphReason.INSUFFICIENT_CAPACITY
    return PodReport(
        Blockage(reason, found.reason, _head(found.message), since=since), left or None
    )


def _image(pod: Pod) -> Iterator[Blockage]:
    for each in _containers(pod):
        waiting = each.state.waiting
        if waiting is None or waiting.reason not in _IMAGE:
            continue
        # The pull fails, waits and is retried: two words and two texts for one failure.
        word = _PULL_FAILED if waiting.reason == "ErrImagePull" else waiting.reason
        cause = waiting.message.partition(": ErrImagePull: ")[2] or waiting.message
        yield _of(each, GraphReason.IMAGE_PULL_FAILED, word, _head(cause))


def _config(pod: Pod) -> Iterator[Blockage]:
    for each in _containers(pod):
        waiting = each.state.waiting
        if waiting is not None and waiting.reason in _CONFIG:
            text = _head(waiting.message)
            yield _of(each, GraphReason.CONFIG_ERROR, waiting.reason, text)


def _unstarted(pod: Pod, now: datetime) -> PodReport:
    """That a node cannot set the pod up. A node of before Kubernetes 1.29 does not report it itself."""
    startable = condition(pod.status.conditions, STARTABLE)
    if startable is not None:
        is_unstarted = startable.status == "False"
        text = "the node has failed to mount its volumes or set up its network"
    else:
        is_unstarted = _is_creating(pod)
        text = "the node has been mounting its volumes, setting up its network or pulling images"
    if not is_unstarted:
        return PodReport()
    scheduled = condition(pod.status.conditions, SCHEDULED)
    since = scheduled.last_transition_time if scheduled else None
    if left := _left(since, UNSTARTED_SECONDS, now):
        return PodReport(requeue_after_seconds=left)
    said = _head(startable.message) if startable and startable.message else ""
    text = f"{text}{_since(since)}{f': {said}' if said else ''}"
    return PodReport(Blockage(GraphReason.CONFIG_ERROR, "ContainerCreating", text, since=since))


def _is_creating(pod: Pod) -> bool:
    every = list(_containers(pod))
    return bool(every) and all(
        each.state.waiting is not None and each.state.waiting.reason in _CREATING for each in every
    )


def _crashes(pod: Pod) -> Iterator[Blockage]:
    for each in pod.status.init_container_statuses:
        ended = _ended(each)
        if not each.ready and ended is not None and ended.exit_code:
            yield _crash(each, ended)
    for each in pod.status.container_statuses:
        ended, waiting = _ended(each), each.state.waiting
        is_looping = waiting is not None and waiting.reason == _CRASH_LOOP
        if each.ready or (ended is None and not is_looping):
            continue
        if ended is None:
            yield _of(each, GraphReason.PODS_CRASHING, _CRASH_LOOP, "")
            continue
        is_down = waiting is not None or each.state.terminated is not None
        if is_looping or ended.reason == _OUT_OF_MEMORY or (is_down and ended.exit_code):
            yield _crash(each, ended)


def _crash(status: ContainerStatus, ended: Terminated) -> Blockage:
    is_looping = status.state.waiting is not None and status.state.waiting.reason == _CRASH_LOOP
    word = _CRASH_LOOP if is_looping else ended.reason or "Error"
    if ended.reason == _OUT_OF_MEMORY:
        word = _OUT_OF_MEMORY
    said = _tail(ended.message)
    text = f"exit code {ended.exit_code}{f': {said}' if said else ''}"
    found = _of(status, GraphReason.PODS_CRASHING, word, text)
    return Blockage(
        *(found.reason, found.word, found.message, found.container),
        since=ended.finished_at,
        restarts=status.restart_count,
    )


def _not_ready(pod: Pod) -> Blockage:
    found = condition(pod.status.conditions, READY)
    since = found.last_transition_time if found else None
    word = (found.reason if found else "") or "NotReady"
    for each in pod.status.init_container_statuses:
        # One that ends is ready when it has succeeded; one that runs on, when it has started.
        if not each.ready and not each.started:
            return _of(each, *_pending(each, "it has not completed", since), since)
    for each in pod.status.container_statuses:
        if not each.ready:
            return _of(each, *_pending(each, _probe(each), since), since)
    if not pod.status.container_statuses:
        node = pod.spec.node_name
        text = f"the node has not started it yet; check the kubelet on {node}"
        return Blockage(GraphReason.PODS_NOT_READY, word, text, since=since)
    text = f"{_gate(found)}{_since(since)}"
    return Blockage(GraphReason.PODS_NOT_READY, word, text, since=since)


def _pending(
    status: ContainerStatus, running: str, since: str | None
) -> tuple[GraphReason, str, str]:
    """Reason, word and text of a container that is not ready, and has not failed."""
    waiting, before = status.state.waiting, status.last_state.terminated
    if waiting is not None:
        said = _head(waiting.message)
        text = f"it has been waiting{_since(since)}{f': {said}' if said else ''}"
        return GraphReason.PODS_NOT_READY, waiting.reason or "Waiting", text
    earlier = f"; it previously exited with code {before.exit_code}" if before else ""
    return GraphReason.PODS_NOT_READY, "NotReady", f"{running}{_since(since)}{earlier}"


def _probe(status: ContainerStatus) -> str:
    match status.started:
        case False:
            return "its startup probe has not succeeded"
        case True:
            return "its readiness probe has been failing"
        case _:
            return "it has not been ready"


def _gate(ready: Condition | None) -> str:
    """Why a pod is not ready whose containers are: a readiness gate, or a node that does not report."""
    said = _head(ready.message) if ready else ""
    return said or "its containers are ready, but the pod has not been ready"


def _of(
    status: ContainerStatus, reason: GraphReason, word: str, text: str, since: str | None = None
) -> Blockage:
    return Blockage(reason, word, text, status.name, since, status.restart_count)


def _containers(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.init_container_statuses
    yield from pod.status.container_statuses


def _ended(status: ContainerStatus) -> Terminated | None:
    return status.state.terminated or status.last_state.terminated


def _left(since: str | None, seconds: float, now: datetime) -> float:
    """Seconds until so much time has passed; 0 if it has, or if the start is unknown."""
    if since is None:
        return 0.0
    return max(0.0, seconds - (now - datetime.fromisoformat(since)).total_seconds())


def _since(time: str | None) -> str:
    return f" since {time}" if time else ""


def _head(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT_LIMIT else f"{line[: TEXT_LIMIT - 1]}…"


def _tail(text: str) -> str:
    """The end of a text, on one line: a program says last what it died of."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT_LIMIT else f"…{line[1 - TEXT_LIMIT :]}"
