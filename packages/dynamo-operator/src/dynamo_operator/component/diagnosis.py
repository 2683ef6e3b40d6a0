"""What the pods of a component report: why each is not ready, and the worst failures of all."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from dynamo_operator.component.api import BlockedPod
from dynamo_operator.shared.cluster import POD_TEMPLATE_HASH, REPLICA_INDEX, SET_NAME
from dynamo_operator.shared.conditions import POD_REASONS, GraphReason, PodReason
from kube_runtime.times import seconds_between
from kube_runtime.types.kinds import ContainerStatus, Pod, Terminated
from kube_runtime.types.meta import condition

UNSCHEDULABLE_SECONDS = 30.0
"""How long a pod may be unschedulable before it is reported: another pod may be terminating."""

UNSTARTED_SECONDS = 60.0
"""How long a pod may wait for its volumes and its network before it is reported."""

SCHEDULED, STARTABLE, READY = "PodScheduled", "PodReadyToStartContainers", "Ready"
READ_CONDITIONS = frozenset((SCHEDULED, STARTABLE, READY))
"""The types of conditions that are read here; the cache keeps no others of a pod."""

TEMPLATE_HASHES = ("pod-template-hash", POD_TEMPLATE_HASH)
"""Labels of pods with a hash of their template, written by the Deployment controller and by Grove."""

TEXT_LIMIT = 200
"""Most characters that are quoted of a message of the kubelet, the scheduler or a container."""

_PULL_FAILED = "ImagePullBackOff"
_IMAGE = frozenset(("ErrImagePull", _PULL_FAILED, "InvalidImageName", "ErrImageNeverPull"))
_CONFIG = frozenset(("CreateContainerConfigError", "CreateContainerError", "RunContainerError"))
_CRASH_LOOP, _OUT_OF_MEMORY = "CrashLoopBackOff", "OOMKilled"
_CREATING = frozenset(("ContainerCreating", "PodInitializing"))
UNSCHEDULABLE, _WAITING = "Unschedulable", "Waiting"
UNSTARTED = _CREATING | {_WAITING}
"""Words of containers that have not started, and have no log."""


class Blockage(msgspec.Struct, frozen=True):
    """Why a pod is not ready. `word` is the reason that the kubelet or the scheduler gives.

    `container` is None if the cause lies outside the containers, `since` if the time is unknown, and
    `restarts` if no container was started.
    """

    reason: PodReason
    word: str
    message: str
    container: str | None = None
    since: str | None = None
    restarts: int | None = None

    def of_pod(self, name: str) -> BlockedPod:
        """The same as an entry of a status."""
        message = self.message or None
        return BlockedPod(name, self.word, self.container, message, self.since, self.restarts)

    def describe(self, pod: str) -> str:
        """The message about the pod of that name."""
        container = f" container {self.container}" if self.container else ""
        detail = f": {self.message}" if self.message else ""
        return f"pod {pod}{container} {self.word}{detail}"


class PodReport(msgspec.Struct, frozen=True):
    """Why a pod is not ready, None if unknown or ready; and when that may change, None if not by time."""

    blockage: Blockage | None = None
    requeue_after_seconds: float | None = None


def is_ready(pod: Pod) -> bool:
    """Whether the pod is ready for requests."""
    ready = condition(pod.status.conditions, READY)
    return ready is not None and ready.status == "True"


def is_over(pod: Pod) -> bool:
    """Whether the pod has terminated or is being deleted, so that another replaces it."""
    is_finished = pod.status.phase in ("Succeeded", "Failed")
    return is_finished or pod.metadata.deletion_timestamp is not None


def lacks_image(pods: Iterable[Pod]) -> bool:
    """Whether all pods of some template wait, and one of them because its image cannot be pulled."""
    by_template = defaultdict[str, list[Pod]](list)
    for pod in pods:
        if not is_over(pod):
            # Pods of a group have no hash: they are all replaced together.
            hashes = (pod.metadata.labels[name] for name in TEMPLATE_HASHES if name in pod.metadata.labels)
            by_template[next(hashes, "")].append(pod)
    return any(
        not any(map(is_ready, same))
        and any(_waiting(it) in ("ErrImagePull", _PULL_FAILED) for pod in same for it in _containers(pod))
        for same in by_template.values()
    )


# The result must not change while the failure is the same, or each change would be a write. A
# kubelet alternates between two reasons for one failure, so both give the same word, and a
# container that waits for its restart is described by its last exit. Messages have points in time,
# not durations.
def pod_report(pod: Pod, now: datetime) -> PodReport:
    """Why the pod is not ready: the first cause that applies."""
    if is_over(pod) or is_ready(pod):
        return PodReport()
    if not pod.spec.node_name:
        return _unscheduled(pod, now)
    if (blockage := next(_unstartable(pod), None)) is not None:
        return PodReport(blockage)
    unstarted = _not_set_up(pod, now)
    if unstarted.blockage is not None:
        return unstarted
    return PodReport(next(_crashes(pod), None) or _not_ready(pod), unstarted.requeue_after_seconds)


def _unscheduled(pod: Pod, now: datetime) -> PodReport:
    scheduled = condition(pod.status.conditions, SCHEDULED)
    if scheduled is None or scheduled.reason != UNSCHEDULABLE:
        return PodReport()
    since = scheduled.last_transition_time
    left = _seconds_left(since, UNSCHEDULABLE_SECONDS, now)
    # The pod is reported at once; a lack of capacity only after a while.
    reason: PodReason = GraphReason.PODS_NOT_READY if left else GraphReason.INSUFFICIENT_CAPACITY
    return PodReport(Blockage(reason, scheduled.reason, _head(scheduled.message), since=since), left or None)


def _unstartable(pod: Pod) -> Iterator[Blockage]:
    causes: dict[PodReason, frozenset[str]] = {
        GraphReason.IMAGE_PULL_FAILED: _IMAGE,
        GraphReason.CONFIG_ERROR: _CONFIG,
    }
    for reason, words in causes.items():
        for container in _containers(pod):
            waiting = container.state.waiting
            if waiting is None or waiting.reason not in words:
                continue
            # The kubelet alternates between pulling and backing off, with a reason and a message for each.
            word = _PULL_FAILED if waiting.reason == "ErrImagePull" else waiting.reason
            cause = waiting.message.partition(": ErrImagePull: ")[2] or waiting.message
            yield _blockage(container, reason, word, _head(cause))


def _not_set_up(pod: Pod, now: datetime) -> PodReport:
    # Nodes before Kubernetes 1.29 have no condition for it.
    startable = condition(pod.status.conditions, STARTABLE)
    if startable is not None:
        is_unstarted = startable.status == "False"
        text = "the node has failed to mount its volumes or set up its network"
    else:
        words = [_waiting(container) for container in _containers(pod)]
        is_unstarted = bool(words) and _CREATING.issuperset(words)
        text = "the node has been mounting its volumes, setting up its network or pulling images"
    if not is_unstarted:
        return PodReport()
    scheduled = condition(pod.status.conditions, SCHEDULED)
    since = scheduled.last_transition_time if scheduled else None
    if left := _seconds_left(since, UNSTARTED_SECONDS, now):
        return PodReport(requeue_after_seconds=left)
    detail = _head(startable.message) if startable and startable.message else ""
    text = f"{text}{_since(since)}{f': {detail}' if detail else ''}"
    return PodReport(Blockage(GraphReason.CONFIG_ERROR, "ContainerCreating", text, since=since))


def _crashes(pod: Pod) -> Iterator[Blockage]:
    for container in pod.status.init_container_statuses:
        ended = _ended(container)
        if not container.ready and ended is not None and ended.exit_code:
            yield _crash(container, ended)
    for container in pod.status.container_statuses:
        ended, is_looping = _ended(container), _waiting(container) == _CRASH_LOOP
        if container.ready or (ended is None and not is_looping):
            continue
        if ended is None:
            yield _blockage(container, GraphReason.PODS_CRASHING, _CRASH_LOOP, "")
            continue
        is_down = container.state.waiting is not None or container.state.terminated is not None
        if is_looping or ended.reason == _OUT_OF_MEMORY or (is_down and ended.exit_code):
            yield _crash(container, ended)


def _crash(container: ContainerStatus, ended: Terminated) -> Blockage:
    word = ended.reason or "Error"
    if _waiting(container) == _CRASH_LOOP and word != _OUT_OF_MEMORY:
        word = _CRASH_LOOP
    detail = " ".join(ended.message.split())
    if len(detail) > TEXT_LIMIT:  # a program reports its fatal error last
        detail = f"…{detail[1 - TEXT_LIMIT :]}"
    text = f"exit code {ended.exit_code}{f': {detail}' if detail else ''}"
    return _blockage(container, GraphReason.PODS_CRASHING, word, text, ended.finished_at)


def _not_ready(pod: Pod) -> Blockage:
    ready = condition(pod.status.conditions, READY)
    since = ready.last_transition_time if ready else None
    word = (ready.reason if ready else "") or "NotReady"
    for container in pod.status.init_container_statuses:
        # An init container is ready once it has succeeded, a sidecar once it has started.
        if not container.ready and not container.started:
            return _blockage(container, *_pending(container, "it has not completed", since), since)
    for container in pod.status.container_statuses:
        if not container.ready:
            return _blockage(container, *_pending(container, _probe(container), since), since)
    if not pod.status.container_statuses:
        node = pod.spec.node_name
        text = f"the node has not started it yet; check the kubelet on {node}"
        return Blockage(GraphReason.PODS_NOT_READY, word, text, since=since)
    # A readiness gate, or a node that has stopped reporting.
    text = _head(ready.message) if ready else ""
    text = f"{text or 'its containers are ready, but the pod has not been ready'}{_since(since)}"
    return Blockage(GraphReason.PODS_NOT_READY, word, text, since=since)


# Reason, word and message of a container that is not ready and has not failed.
def _pending(container: ContainerStatus, running: str, since: str | None) -> tuple[PodReason, str, str]:
    waiting, before = container.state.waiting, container.last_state.terminated
    if waiting is not None:
        detail = _head(waiting.message)
        text = f"it has been waiting{_since(since)}{f': {detail}' if detail else ''}"
        return GraphReason.PODS_NOT_READY, waiting.reason or _WAITING, text
    earlier = f"; it previously exited with code {before.exit_code}" if before else ""
    return GraphReason.PODS_NOT_READY, "NotReady", f"{running}{_since(since)}{earlier}"


def _probe(container: ContainerStatus) -> str:
    if container.started is None:
        return "it has not been ready"
    return (
        "its readiness probe has been failing" if container.started else "its startup probe has not succeeded"
    )


def _blockage(
    container: ContainerStatus, reason: PodReason, word: str, text: str, since: str | None = None
) -> Blockage:
    return Blockage(reason, word, text, container.name, since, container.restart_count)


def _containers(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.init_container_statuses
    yield from pod.status.container_statuses


def _waiting(container: ContainerStatus) -> str | None:
    return container.state.waiting.reason if container.state.waiting else None


def _ended(container: ContainerStatus) -> Terminated | None:
    return container.state.terminated or container.last_state.terminated


def _seconds_left(since: str | None, seconds: float, now: datetime) -> float:
    # 0 if they have passed, or if the time is unknown.
    passed = seconds_between(since, now)
    return 0.0 if passed is None else max(0.0, seconds - passed)


def _since(time: str | None) -> str:
    return f" since {time}" if time else ""


def _head(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT_LIMIT else f"{line[: TEXT_LIMIT - 1]}…"


BLOCKED_LIMIT = 5
"""Most blocked pods in the status of a service."""


class Diagnosis(msgspec.Struct, frozen=True):
    """Why a service is not ready, as far as its pods show. None means unknown.

    `requeue_after_seconds` is when the diagnosis may differ without a change of a pod; None means never.
    """

    reason: PodReason | None = None
    message: str | None = None
    blocked_pods: tuple[BlockedPod, ...] = ()
    scheduled_replicas: int | None = None
    requeue_after_seconds: float | None = None


UNKNOWN = Diagnosis()
"""The diagnosis of a service whose pods are not watched."""


# A service may have a thousand pods. The status names the worst five, in a fixed order, so that it
# changes only when they do.
def diagnose(pods: Iterable[Pod], *, nodes: int, now: datetime) -> Diagnosis:
    """Diagnose a service by its pods. `nodes` is the number of pods of one replica."""
    live = [pod for pod in pods if not is_over(pod)]
    reports = [(pod.metadata.name, pod_report(pod, now)) for pod in live]
    blocked = sorted(
        ((name, report.blockage) for name, report in reports if report.blockage),
        key=lambda blocked_pod: (POD_REASONS.index(blocked_pod[1].reason), blocked_pod[0]),
    )
    times = [it.requeue_after_seconds for _, it in reports if it.requeue_after_seconds is not None]
    placed = [pod.metadata.labels for pod in live if pod.spec.node_name]
    groups = Counter(of_pod.get(SET_NAME) or of_pod.get(REPLICA_INDEX, "") for of_pod in placed)
    reason = message = None
    if blocked:
        name, worst = blocked[0]
        more = f" (and {len(blocked) - 1} more)" if len(blocked) > 1 else ""
        reason, message = worst.reason, f"{worst.describe(name)}{more}"
    return Diagnosis(
        reason=reason,
        message=message,
        blocked_pods=tuple(blockage.of_pod(name) for name, blockage in blocked[:BLOCKED_LIMIT]),
        scheduled_replicas=len(placed) if nodes == 1 else sum(count >= nodes for count in groups.values()),
        requeue_after_seconds=min(times, default=None),
    )


def restarts(pod: Pod) -> int:
    """The number of restarts of the pod's containers."""
    return sum(container.restart_count for container in pod.status.container_statuses)
