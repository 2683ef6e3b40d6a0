"""The log of one scene: what an engineer on call reads about a graph, from its start to its end."""

import json
import re
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import COMPONENT, GRAPH, World
from kube_runtime.types.kinds import Service
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

REVISION = re.compile("(?<=ControllerRevision chat-)[0-9a-f]{10}")
"""The part of the name that is made of the graph's uid and spec."""
ABSENT = "it does not exist"
UNWANTED = "its owner needs it no longer"
SPEC = "the spec of its owner changed"
GRAPH_LINES = f"""\
info DynamoGraphDeployment chat: Created ControllerRevision chat-HASH ({ABSENT})
info DynamoGraphDeployment chat: Created ServiceAccount chat-k8s-service-discovery ({ABSENT})
info DynamoGraphDeployment chat: Created Role chat-k8s-service-discovery-role ({ABSENT})
info DynamoGraphDeployment chat: Created RoleBinding chat-k8s-service-discovery-binding ({ABSENT})
info DynamoGraphDeployment chat: Created DynamoComponentDeployment chat-decode ({ABSENT})
info DynamoGraphDeployment chat: Created DynamoComponentDeployment chat-frontend ({ABSENT})
info DynamoGraphDeployment chat: Scaled DynamoComponentDeployment chat-decode ({SPEC}: 2 replicas)
info DynamoGraphDeployment chat: Created ControllerRevision chat-HASH ({ABSENT})
info DynamoGraphDeployment chat: Deleted DynamoComponentDeployment chat-frontend ({UNWANTED})
info DynamoGraphDeployment chat: deleted
"""
COMPONENT_LINES = f"""\
info DynamoComponentDeployment chat-decode: Created Service chat-decode ({ABSENT})
info DynamoComponentDeployment chat-decode: Created Deployment chat-decode ({ABSENT})
info DynamoComponentDeployment chat-decode: Scaled Deployment chat-decode ({SPEC}: 2 replicas)
info DynamoComponentDeployment chat-decode: Updated Service chat-decode (another client changed it)
info DynamoComponentDeployment chat-decode: deleted
info DynamoComponentDeployment chat-frontend: Created Service chat-frontend ({ABSENT})
info DynamoComponentDeployment chat-frontend: Created Deployment chat-frontend ({ABSENT})
info DynamoComponentDeployment chat-frontend: deleted
"""
REFUSED = """\
warning DynamoGraphDeployment wrong: spec.services[Main].ingress.host is required when ingress is enabled
info DynamoGraphDeployment wrong: deleted
"""
SCENE = GRAPH_LINES + COMPONENT_LINES + REFUSED


def told(line: Object) -> str:
    """A line of the log for people, without what differs from run to run."""
    name = line["key"].partition("/")[2]
    cause = f" ({line['cause']})" if "cause" in line else ""
    message = REVISION.sub("HASH", line["message"])
    return f"{line['level']} {line['controller']} {name}: {message}{cause}"


def is_failed(graph: Object) -> bool:
    return bool(graph.get("status", {}).get("state") == "failed")


class Log:
    def __init__(self, file: Path, namespace: str) -> None:
        self.file, self.namespace = file, namespace

    def lines(self) -> list[Object]:
        found = map(json.loads, self.file.read_text(encoding="utf-8").splitlines())
        return [each for each in found if each.get("namespace") == self.namespace]

    def named(self, message: str) -> Object:
        found: list[Object] = list(map(json.loads, self.file.read_text().splitlines()))
        (line,) = (each for each in found if each["message"] == message)
        return line

    def decisions(self) -> str:
        rows = [each for each in self.lines() if each["message"] != "status changed"]
        rows = [each for each in rows if each["level"] != "debug"]
        return "".join(f"{told(each)}\n" for each in sorted(rows, key=lambda each: each["key"]))

    def states(self, name: str) -> list[str]:
        rows = [each for each in self.lines() if each["key"].endswith(f"/{name}")]
        return [each["state"] for each in rows if "state" in each]


def test_a_graph_from_its_start_to_its_end(world: World, kinds: ControlPlane, tmp_path: Path) -> None:
    flags = (*OFF, f"--restrictedNamespace={world.namespace}", "--log-level=debug")
    log = Log(tmp_path / "log", world.namespace)
    with OperatorProcess(kinds.kubeconfig, log.file, flags) as operator:
        operator.ready()
        world.create(GRAPH, graph(Decode=worker("decode"), Frontend=service("frontend")))
        world.eventually(GRAPH, "chat", is_ready)
        world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": {"replicas": 2}}}})
        world.eventually(COMPONENT, "chat-decode", lambda found: found["spec"]["replicas"] == 2)
        world.eventually(GRAPH, "chat", is_ready)
        world.patch(Service.KIND, "chat-decode", {"spec": {"selector": {"app": "mine"}}})
        world.until(lambda: "another client" in log.decisions())
        world.patch(GRAPH, "chat", {"spec": {"services": {"Frontend": None}}})
        world.gone(COMPONENT, "chat-frontend")
        world.create(GRAPH, graph("wrong", Main=service("frontend", ingress={"enabled": True})))
        world.eventually(GRAPH, "wrong", is_failed)
        world.delete(GRAPH, "wrong")
        world.delete(GRAPH, "chat")
        world.until(lambda: log.decisions().count(": deleted") == 4, what=log.decisions)
        assert 0 == operator.stop()
    assert SCENE == log.decisions()
    states = log.states("chat")
    assert ("initializing", "successful") == (states[0], states[-1])
    assert ["failed"] == log.states("wrong")
    created = [each for each in log.lines() if each.get("reason") == "CreateDeployment"]
    assert {"chat"} == {each["graph"] for each in created}
    reconciles = [each for each in log.lines() if each["message"] == "reconciled"]
    assert any(each["requests"] for each in reconciles)
    assert all(each["seconds"] >= 0 for each in reconciles)
    first = log.named("connected")
    assert world.namespace == first["scope"]
    assert kinds.server == first["cluster"]
    assert log.named("reconciling without leader election")
