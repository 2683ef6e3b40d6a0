"""A request as a test writes it, and a simulated kubelet of its profiling pod.

The local control plane completes every pod of a Job at once. So the pods here request more than a node has,
stay Pending forever, and get the status that the test wants.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster.world import CONFIG_MAP, EVENTS, GRAPH, PATIENCE_SECONDS, PODS, World
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Object

REQUEST = DynamoGraphDeploymentRequest.KIND
JOB = Job.KIND
CLUSTER_ROLE = "view"
FLAGS = (
    f"--dgdr-profiling-cluster-role-name={CLUSTER_ROLE}",
    "--planner-cluster-role-name=view",
    "--graphs-elsewhere",
    "--operator-image=dynamo-operator:test",
)
BY_HAND = {"requests": {"cpu": "100k"}}

FRONTEND = {
    "componentType": "frontend",
    "replicas": 1,
    "extraPodSpec": {"mainContainer": {"image": "runtime:1"}},
}
WORKER = {
    "componentType": "worker",
    "replicas": 1,
    "extraPodSpec": {"mainContainer": {"image": "runtime:1", "command": ["python3", "-m", "dynamo.vllm"]}},
}


def a_request(name: str = "chat", *, profiling: Object | None = None, **spec: Any) -> Object:
    """A small request whose pod only the test runs."""
    config = {"profilerImage": "profiler:1", "resources": BY_HAND, **(profiling or {})}
    body = {"model": "Qwen/Qwen3-0.6B", "backend": "vllm", "profilingConfig": config, **spec}
    return {"metadata": {"name": name}, "spec": body}


def a_graph(name: str = "generated", **services: Object) -> Object:
    """What a profiler finds."""
    return {
        "apiVersion": GRAPH.api_version,
        "kind": GRAPH.name,
        "metadata": {"name": name},
        "spec": {"services": {"Frontend": FRONTEND, "W": WORKER, **services}},
    }


def documents(*bodies: Object) -> str:
    """They as a file of a profiler; JSON is YAML."""
    return "\n---\n".join(json.dumps(each) for each in bodies)


def digest(text: str, file: str = "config_with_planner") -> str:
    """What the copier reports of these results."""
    return f"{hashlib.sha256(text.encode()).hexdigest()}  {file}.yaml\n"


def state(request: Object) -> str:
    return str(request.get("status", {}).get("state", ""))


def terminated(code: int, message: str = "", reason: str = "") -> Object:
    word = reason or ("Error" if code else "Completed")
    return {"terminated": {"exitCode": code, "reason": word, "message": message}}


def tell(world: World, pod: str, phase: str, states: Mapping[str, Object], **more: Any) -> None:
    """Say what a kubelet says of a pod: its phase, and the state of each container."""
    statuses = [
        {
            "name": name,
            "state": state,
            "ready": "running" in state,
            "restartCount": 0,
            "image": name,
            "imageID": "",
        }
        for name, state in states.items()
    ]
    status = {"phase": phase, "containerStatuses": statuses, **more}
    world.patch(PODS, pod, {"status": status}, "status")


@dataclass(frozen=True, slots=True)
class Player:
    """Plays profiling pods and their output in one namespace."""

    world: World

    def is_in(self, wanted: str, name: str = "chat", within_seconds: float = PATIENCE_SECONDS) -> Object:
        """The request, as soon as it is in that state."""
        return self.world.eventually(
            REQUEST, name, lambda each: state(each) == wanted, within_seconds=within_seconds
        )

    def pod(self, name: str = "chat") -> Object:
        """The profiling pod that has not ended, as soon as there is one."""
        found: Object = self.world.until(
            lambda: next(iter(self.pods(name)), None), what=lambda: f"no pod of {name}"
        )
        return found

    def ends(self, phase: str, profiler: Object, copier: Object, *, name: str = "chat", **more: Any) -> None:
        pod = self.pod(name)["metadata"]["name"]
        states = {"profiler": profiler, "output-copier": copier}
        tell(self.world, pod, phase, states, **more)

    def succeeds(self, name: str = "chat", reported: str = "") -> None:
        """Have the pod end well; `reported` is the copier's termination message."""
        self.ends("Succeeded", terminated(0), terminated(0, reported), name=name)

    def writes(self, name: str = "chat", **files: str) -> None:
        """Have the copier write these files; `_` in a name stands for its only dot."""
        data = {f"{key.removesuffix('_yaml')}.yaml": text for key, text in files.items()}
        labels = {"dgdr.nvidia.com/name": name, "nvidia.com/managed-by": "dynamo-operator"}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"dgdr-output-{name}", "labels": labels},
            "data": data,
        }
        self.world.apply(CONFIG_MAP, body)

    def finds(self, *bodies: Object, name: str = "chat", file: str = "config_with_planner") -> None:
        """Have profiling end well; `file` is `final_config` for a request in v1beta1."""
        self.is_in("Profiling", name)
        text = documents(*bodies)
        self.writes(name, **{f"{file}_yaml": text})
        self.succeeds(name, digest(text, file))

    def is_served(self, **spec: Any) -> Object:
        """A new request, once profiling has found a graph for it."""
        self.world.create(REQUEST, a_request(**spec))
        self.finds(a_graph())
        return self.is_in("Ready")

    def events(self) -> list[str]:
        """Reasons of the events about requests, in no order."""
        return [
            each["reason"]
            for each in self.world.list(EVENTS)
            if each["involvedObject"].get("kind") == REQUEST.name
            for _ in range(each.get("count", 1))
        ]

    def said(self, reason: str, times: int = 1) -> None:
        """Return when there is an event for that reason."""
        self.world.until(lambda: self.events().count(reason) >= times, what=lambda: str(self.events()))

    def pods(self, name: str = "chat") -> list[Object]:
        return [
            each
            for each in self.world.list(PODS)
            if each["metadata"].get("labels", {}).get("dgdr.nvidia.com/name") == name
            and each["status"].get("phase") not in ("Succeeded", "Failed")
        ]
