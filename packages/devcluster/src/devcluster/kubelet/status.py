"""The status of a pod from the states of its containers, as a kubelet reports it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kube_runtime.types.meta import Object

FIRST_BACKOFF_SECONDS = 10.0
MOST_BACKOFF_SECONDS = 300.0
BACKOFF_RESET_SECONDS = 600.0
"""A container that ran for so long is restarted after the first back-off again."""
CONDITIONS = ("Initialized", "ContainersReady", "Ready")
"""The conditions that a kubelet sets."""
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class ContainerState:
    """What is known of a container: `state` and `last` as in the API."""

    name: str
    image: str
    state: Object = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last: Object = field(default_factory=dict[str, Object])
    is_started: bool = False
    is_ready: bool = False
    restarts: int = 0

    def waiting(self, reason: str, message: str) -> "ContainerState":
        """It does not run."""
        state = {"waiting": {"reason": reason, "message": message}}
        return replace(self, state=state, is_started=False, is_ready=False)

    def running(self, at: str, *, restarts: int) -> "ContainerState":
        """It was started."""
        state = {"running": {"startedAt": at}}
        return replace(self, state=state, is_started=False, is_ready=False, restarts=restarts)

    def terminated(self, returncode: int, *, started: str, at: str) -> "ContainerState":
        """It ended; of a signal, `returncode` is negative, as Python has it."""
        code = _SIGNALLED - returncode if returncode < 0 else returncode
        state = {"exitCode": code, "startedAt": started, "finishedAt": at}
        state["reason"] = "Error" if code else "Completed"
        ended: Object = {"terminated": state}
        return replace(self, state=ended, last=ended, is_started=False, is_ready=False)

    @property
    def exit_code(self) -> int | None:
        """None while it does not count as ended."""
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])


def backoff_seconds(restarts: int) -> float:
    """The pause before a restart, after so many of them: none before the first."""
    return min(FIRST_BACKOFF_SECONDS * 2.0 ** (restarts - 1), MOST_BACKOFF_SECONDS) if restarts else 0.0


def is_restarted(policy: str, exit_code: int) -> bool:
    """Whether a container that ended is started again, by the pod's `restartPolicy`."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def phase_of(containers: Sequence[ContainerState], policy: str) -> str:
    """The phase of a pod with these containers."""
    codes = [container.exit_code for container in containers]
    ended = [code for code in codes if code is not None and not is_restarted(policy, code)]
    if len(ended) == len(codes):
        return "Failed" if any(ended) else "Succeeded"
    begun = any("running" in it.state or "terminated" in it.state or it.last for it in containers)
    return "Running" if begun else "Pending"


def pod_status(
    before: Iterable[Object],
    containers: Sequence[ContainerState],
    *,
    policy: str,
    address: str,
    host: str,
    gates: Iterable[str],
    started: str,
    now: str,
) -> Object:
    """The status to report. `before` are the conditions up to now, also those of others, which stay."""
    is_ready = all(container.is_ready for container in containers)
    unready = [container.name for container in containers if not container.is_ready]
    cause = {"reason": "ContainersNotReady", "message": f"containers with unready status: {unready}"}
    phase = phase_of(containers, policy)
    if phase == "Succeeded":
        cause = {"reason": "PodCompleted"}
    conditions = {it["type"]: it for it in before}
    passed = all(conditions.get(gate, {}).get("status") == "True" for gate in gates)
    for kind, holds in (("Initialized", True), ("ContainersReady", is_ready), ("Ready", is_ready and passed)):
        status = "True" if holds else "False"
        old = conditions.get(kind, {})
        since = old["lastTransitionTime"] if old.get("status") == status else now
        condition = {"type": kind, "status": status, "lastTransitionTime": since}
        conditions[kind] = condition if holds else condition | cause
    return {
        "phase": phase,
        "startTime": started,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": list(conditions.values()),
        "containerStatuses": [_container_status(container) for container in containers],
    }


def _container_status(container: ContainerState) -> Mapping[str, object]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": container.is_ready,
        "started": container.is_started,
        "restartCount": container.restarts,
        "state": container.state,
        "lastState": container.last,
    }
