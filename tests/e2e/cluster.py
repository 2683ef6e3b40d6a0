"""The real cluster of a session: the node, what the runtime needs, and our operator in it."""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import person
from cluster.conftest import ControlPlane
from cluster.world import PODS, World
from devcluster.components import KubectlError
from devcluster.layout import Layout
from devcluster.programs import Helm, find
from devcluster.progress import Lines
from dynamo_operator.graph.api import DynamoGraphDeployment
from e2e.graphs import OTHER_RUNTIME, RUNTIME, graph
from e2e.inside import Answer, Inside
from e2e.load import CHAT, completion
from kube_runtime.types.meta import Kind, Object
from realnode.build import build_image, build_program_image
from realnode.node import RealInstance, build_node_programs, namespaces

SOURCES = Path(__file__).parents[2]
CHARTS = SOURCES / "charts"
HERE = Path(__file__).parent
RELEASE = "dynamo-platform"
SYSTEM = "dynamo-system"
OPERATOR = f"{RELEASE}-dynamo-operator-controller-manager"
FIRST = "localhost/dynamo-operator:first"
SECOND = "localhost/dynamo-operator:second"
GRAPH = DynamoGraphDeployment.KIND
SERVICES = Kind("", "v1", "Service", "services")
PORT = 8000


@dataclass(frozen=True, slots=True)
class RealCluster(ControlPlane):
    """A running cluster with a real node."""

    instance: RealInstance
    inside: Inside
    helm: Helm

    def install(self, image: str, *verb: str, more: Mapping[str, str] | None = None) -> None:
        """Installs or upgrades the platform by its chart; returns when graphs can be created.

        Its values are the defaults, but for the image, and `more` by their paths.
        """
        manager = "dynamo-operator.controllerManager.manager.image"
        repository, _, tag = image.rpartition(":")
        values = {f"{manager}.repository": repository, f"{manager}.tag": tag, **(more or {})}
        self.helm(
            *(*verb, RELEASE, str(CHARTS / "dynamo-platform"), f"--namespace={SYSTEM}"),
            *(f"--set={name}={value}" for name, value in values.items()),
            *("--create-namespace", "--wait", "--timeout=120s"),
        )
        self.world("default").until(self.admits)

    def admits(self) -> bool:
        """Whether the webhooks are reached: a Service leads to new pods a moment after they are ready."""
        body = {"apiVersion": GRAPH.api_version, "kind": GRAPH.name, **graph("trial")}
        try:
            self.kubectl("create", "--dry-run=server", "--filename=-", input=json.dumps(body))
        except KubectlError as error:
            if "webhook" not in str(error):
                raise
            return False
        return True


def start(instance: RealInstance) -> None:
    progress = Lines(sys.stderr)
    instance.up(progress=progress)
    programs = {**build_node_programs(progress), **find(progress)}
    messaging = {f"localhost/{name}:1": programs[name] for name in ("nats-server", "etcd")}
    for name, program in messaging.items():
        build_program_image(name, program)
    build_image(HERE / "images" / "runtime", RUNTIME, progress)
    build_image(SOURCES, FIRST, progress)
    for name, second in ((RUNTIME, OTHER_RUNTIME), (FIRST, SECOND)):
        text = f"FROM {name}\nLABEL org.opencontainers.image.version=second\n"
        build_image(HERE / "images", second, progress, text=text)
    for name in (*messaging, RUNTIME, OTHER_RUNTIME, FIRST, SECOND):
        progress.step(f"loading {name}")
        instance.load_built(name)


def messaging(cluster: ControlPlane) -> None:
    cluster.kubectl("apply", "--filename", HERE / "manifests" / "messaging.yaml")
    cluster.kubectl(
        *("wait", "--for=condition=Available", "--namespace=messaging", "--timeout=60s"),
        *("deployment/nats", "deployment/etcd"),
    )


def address(world: World, service: str) -> str:
    found = world.eventually(SERVICES, service)
    return f"{found['spec']['clusterIP']}:{PORT}"


def pods(world: World, service: str) -> list[Object]:
    """The pods of one service of a graph that are not being deleted."""
    return [
        each
        for each in world.list(PODS)
        if each["metadata"].get("labels", {}).get("nvidia.com/dynamo-component") == service
        and "deletionTimestamp" not in each["metadata"]
    ]


def processes(cluster: RealCluster, program: str) -> list[int]:
    """The processes in containers of the node whose command line begins with that program."""
    found = []
    for pid in namespaces(Layout(cluster.instance.node_folder.parent)).processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except FileNotFoundError:
            continue
        if any(word.rpartition("/")[2] == program for word in words[:3]):
            found.append(pid)
    return found


def identities(world: World) -> dict[str, Any]:
    """Each pod of graphs with its uid and the number of its restarts: the same means, nothing happened."""
    return {
        each["metadata"]["name"]: (
            each["metadata"]["uid"],
            sum(one["restartCount"] for one in each["status"].get("containerStatuses", ())),
        )
        for each in world.list(PODS)
        if "nvidia.com/dynamo-component" in each["metadata"].get("labels", {})
    }


def models(inside: Inside, at: str) -> list[str]:
    answer: Answer = inside.get(at, "/v1/models")
    return [each["id"] for each in answer.json["data"]] if answer.status == 200 else []


def first_completion(cluster: RealCluster, world: World, service: str) -> float:
    """The moment of the first completion through a Service."""
    at = address(world, service)

    def answered() -> bool:
        if not models(cluster.inside, at):
            return False
        answer = cluster.inside.post(at, CHAT, completion())
        return answer.status == 200 and bool(answer.json["usage"]["completion_tokens"])

    world.until(answered, what=lambda: str(cluster.inside.get(at, "/v1/models")), within_seconds=90)
    return time.monotonic()


def dynamoctl(*arguments: str | Path) -> str:
    done = person.dynamoctl(*arguments)
    assert 0 == done.returncode, done.stderr
    return done.stdout
