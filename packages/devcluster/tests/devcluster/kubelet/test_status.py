"""The status of a pod, as a kubelet reports it."""

from collections.abc import Sequence

import pytest

from devcluster.kubelet.status import ContainerState, backoff_seconds, phase_of, pod_status
from kube_runtime.types.meta import Object

CREATED = ContainerState("main", "image")
RUNNING = CREATED.running("2026-01-01T00:00:00Z", restarts=0)
READY = ContainerState("main", "image", RUNNING.state, is_started=True, is_ready=True)


def ended(returncode: int) -> ContainerState:
    return RUNNING.terminated(returncode, started="2026-01-01T00:00:00Z", at="2026-01-01T00:00:09Z")


def status_of(
    containers: Sequence[ContainerState], before: Sequence[Object] = (), *, gates: Sequence[str] = ()
) -> Object:
    return pod_status(
        before,
        containers,
        policy="Always",
        address="10.140.0.1",
        host="127.0.0.1",
        gates=gates,
        started="2026-01-01T00:00:00Z",
        now="2026-01-01T00:01:00Z",
    )


def condition(status: Object, kind: str) -> Object:
    by_type: dict[str, Object] = {it["type"]: it for it in status["conditions"]}
    return by_type[kind]


@pytest.mark.parametrize(
    ("container", "policy", "phase"),
    [
        (CREATED, "Always", "Pending"),
        (RUNNING, "Always", "Running"),
        (ended(1), "Always", "Running"),
        (ended(1).waiting("CrashLoopBackOff", ""), "Always", "Running"),
        (ended(1), "Never", "Failed"),
        (ended(0), "Never", "Succeeded"),
        (ended(0), "OnFailure", "Succeeded"),
        (ended(1), "OnFailure", "Running"),
    ],
)
def test_the_phase_follows_the_containers(container: ContainerState, policy: str, phase: str) -> None:
    assert phase_of([container], policy) == phase


def test_a_signal_has_the_exit_code_of_a_shell() -> None:
    assert (ended(-9).exit_code, ended(3).exit_code) == (137, 3)


def test_the_back_off_doubles_up_to_five_minutes() -> None:
    assert [backoff_seconds(n) for n in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_pod_is_ready_when_all_containers_and_gates_are() -> None:
    gate = {"type": "example.com/gate", "status": "True"}
    assert condition(status_of([READY]), "Ready")["status"] == "True"
    assert condition(status_of([READY, RUNNING]), "Ready")["status"] == "False"
    assert condition(status_of([READY], gates=[gate["type"]]), "Ready")["status"] == "False"
    with_gate = status_of([READY], [gate], gates=[gate["type"]])
    assert condition(with_gate, "Ready")["status"] == "True"


def test_a_condition_that_stays_keeps_its_time_and_conditions_of_others_stay() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"}
    status = status_of([READY], [scheduled, ready])
    assert condition(status, "PodScheduled") == scheduled
    assert condition(status, "Ready") == ready
    assert (
        condition(status_of([RUNNING], status["conditions"]), "Ready")["lastTransitionTime"]
        == "2026-01-01T00:01:00Z"
    )
