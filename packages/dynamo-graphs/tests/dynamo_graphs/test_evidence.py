"""What the objects of a graph say: of its pods, PVCs, nodes, Events and logs."""

import asyncio
from typing import Any

import pytest

from dynamo_graphs.evidence import Facts, facts, messages
from dynamo_graphs.reader import Reading
from kube_runtime.client.client import Answer, Request
from kube_runtime.types.meta import Object
from scripted.transport import answer
from stated import NOW, THEN, a_condition, a_graph, late

GRAPH = a_graph(
    a_condition("Ready", "False", "pods_not_ready"), services={"Decode": late("pods_not_ready", message="x")}
)
UNSCHEDULABLE = a_condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 node(s) x.")


def pod(*conditions: Object, node: str = "", statuses: Any = (), gpus: str = "1", **spec: Any) -> Object:
    resources = {"limits": {"nvidia.com/gpu": gpus, "memory": "8Gi"}}
    container = {"name": "main", "image": "nvcr.io/x:1", "resources": resources}
    metadata = {"name": "chat-decode-0", "namespace": "prod", "uid": "u-pod", "creationTimestamp": THEN}
    return {
        "metadata": {**metadata, "labels": {"nvidia.com/dynamo-component": "Decode"}},
        "spec": {"containers": [container], **({"nodeName": node} if node else {}), **spec},
        "status": {"phase": "Pending", "conditions": conditions, "containerStatuses": statuses},
    }


def node(*conditions: Object, gpus: str = "8", **spec: Any) -> Object:
    allocatable = {"nvidia.com/gpu": gpus, "memory": "64Gi", "cpu": "8"}
    metadata = {"name": "gpu-0", "labels": {"gpu": "h100"}}
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": conditions},
    }


def event(reason: str, message: str, uid: str = "u-pod", name: str = "chat-decode-0") -> Object:
    return {"reason": reason, "message": message, "involvedObject": {"uid": uid, "name": name}}


def claim(class_: str = "fast", phase: str = "Pending") -> Object:
    return {"metadata": {"uid": "u-pvc"}, "spec": {"storageClassName": class_}, "status": {"phase": phase}}


def texts(**read: Any) -> list[str]:
    return [f"{it.word}: {it.message}" for it in messages(Facts(**read), GRAPH, NOW)]


def test_a_pod_that_fits_no_node_is_compared_with_the_largest() -> None:
    nodes = [node(gpus="8"), node(gpus="4")]
    assert "TooLarge: asks for 16 nvidia.com/gpu; the largest node has 8" in texts(
        pods=[pod(UNSCHEDULABLE, gpus="16")], nodes=nodes
    )
    assert not [it for it in texts(pods=[pod(UNSCHEDULABLE, gpus="8")], nodes=nodes) if "TooLarge" in it]


def test_a_selector_and_a_taint_are_named() -> None:
    tainted = a_condition("PodScheduled", "False", "Unschedulable", "1 node(s) had untolerated taint(s).")
    found = texts(
        pods=[pod(tainted, nodeSelector={"gpu": "a100"})],
        nodes=[node(taints=[{"key": "team", "value": "b", "effect": "NoSchedule"}])],
    )
    assert "NoNodeSelected: nodeSelector gpu=a100 matches no node" in found
    assert "FailedScheduling: untolerated taint {team: b}" in found


def test_a_pod_that_no_kubelet_or_scheduler_has_seen() -> None:
    scheduled = a_condition("PodScheduled", "True", "")
    assert ["NotStarted: no container for 720 seconds"] == texts(pods=[pod(scheduled, node="gpu-0")])
    (unseen,) = texts(pods=[pod(schedulerName="volcano")])
    assert unseen.endswith("its schedulerName is volcano")
    silent = a_condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    found = texts(pods=[pod(scheduled, node="gpu-0")], nodes=[node(silent)])
    assert "NodeNotReady: Kubelet stopped posting node status." in found


def test_a_container_has_its_reason_its_exit_and_the_end_of_its_log() -> None:
    last = {"terminated": {"reason": "Error", "exitCode": 1}}
    looping = {
        "name": "main",
        "ready": False,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": last,
    }
    (log, ended) = messages(
        Facts(
            pods=[pod(node="gpu-0", statuses=[looping])],
            logs={("chat-decode-0", "main"): "a\nValueError: b\n"},
        ),
        GRAPH,
        NOW,
    )
    assert ("Log", "ValueError: b") == (log.word, log.values["last"])
    assert ("Error", "exit code 1: ", "Decode") == (ended.word, ended.message, ended.service)
    waiting = {
        "name": "main",
        "ready": False,
        "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}},
    }
    assert ["ErrImagePull: no"] == texts(pods=[pod(node="gpu-0", statuses=[waiting])])
    creating = {"name": "main", "ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert [] == texts(pods=[pod(node="gpu-0", statuses=[creating])])


def test_events_count_while_what_they_report_is_not_over() -> None:
    creating = {"name": "main", "ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}}
    running = {"name": "main", "ready": False, "state": {"running": {}}}
    events = [event("FailedMount", "no"), event("FailedMount", "of another", uid="u-other")]
    assert ["FailedMount: no"] == texts(pods=[pod(node="gpu-0", statuses=[creating])], events=events)
    assert [] == texts(pods=[pod(node="gpu-0", statuses=[running])], events=events)


def test_a_claim_reports_what_it_waits_for_for_the_services_that_mount_it() -> None:
    mounting = pod(UNSCHEDULABLE, volumes=[{"name": "w", "persistentVolumeClaim": {"claimName": "weights"}}])
    read = Facts(
        pods=[mounting],
        claims={"weights": claim(), "other": None, "bound": claim(phase="Bound")},
        classes={"fast": None},
        events=[event("ProvisioningFailed", "no driver", uid="u-pvc", name="weights")],
    )
    found = {(it.service, it.values.get("pvc"), it.message) for it in messages(read, GRAPH, NOW)}
    assert ("Decode", "weights", 'storageclass.storage.k8s.io "fast" not found') in found
    assert ("Decode", "weights", "no driver") in found
    assert ("", "other", 'persistentvolumeclaim "other" not found') in found
    assert not [pvc for _, pvc, _ in found if pvc == "bound"]


def test_pods_that_were_not_created_are_reported_by_the_events_of_their_workload() -> None:
    quota = event("FailedCreate", "exceeded quota", name="x-1f2e")
    (found,) = messages(Facts(events=[quota, event("FailedCreate", "no", name="y-1")]), GRAPH, NOW)
    assert ("Decode", "exceeded quota") == (found.service, found.message)


class Forbidding:
    """An API server that lets the user read nothing."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def send(self, request: Request) -> Answer:
        self.paths.append(request.path)
        return answer(403, {"kind": "Status", "code": 403, "message": "no", "reason": "Forbidden"})


@pytest.mark.parametrize("spec", [{}, {"pvcs": [{"name": "weights"}]}])
def test_what_the_user_may_not_read_is_left_out(spec: Object) -> None:
    server = Forbidding()
    read = asyncio.run(facts(Reading(server), GRAPH))
    assert [] == list(messages(read, GRAPH, NOW))
    assert server.paths
