"""`dynamoctl chat`, `curl` and `port-forward` through the proxy of a real API server."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.person import Person
from cluster.world import GRAPH, PATIENCE_SECONDS, World
from devcluster.kubelet import egress
from dynamo_graphs import Cluster
from dynamo_graphs.reader import Missing
from kube_runtime.types.kinds import Pod, Service
from kube_runtime.types.meta import Kind
from simulated.frontend import Pace, frontends

pytestmark = pytest.mark.cluster

ENDPOINTS = Kind("", "v1", "Endpoints", "endpoints")
LABELS = {"nvidia.com/dynamo-graph-deployment-name": "chat", "nvidia.com/dynamo-component": "Frontend"}


def token(text: str) -> bytes:
    return f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n".encode()


HELLO = Pace(lines=(token("Hello "), token("there"), b"data: [DONE]\n\n"))


@pytest.fixture
def admin(kinds: ControlPlane, namespace: str, world: World, kubectl: Callable[..., str]) -> Iterator[Person]:
    """A user with all permissions, and a graph whose frontend is a server of this test."""
    world.create(GRAPH, graph(Frontend=service("frontend")))
    pod = egress.subnet(urlsplit(kinds.server).port or 0)[2]
    address = str(pod)
    with frontends(lambda _: HELLO, egress.loopback(pod)) as served:
        metadata = {"name": "chat-frontend", "labels": LABELS}
        ports = [{"name": "http", "port": 8000, "targetPort": served.port}]
        world.create(Service.KIND, {"metadata": metadata, "spec": {"ports": ports}})
        # The API server proxies only to addresses of pods, which it reads from their status.
        spec = {"schedulerName": "none", "containers": [{"name": "main", "image": "none"}]}
        world.create(Pod.KIND, {"metadata": {"name": "frontend-0"}, "spec": spec})
        status = json.dumps({"status": {"podIP": address, "podIPs": [{"ip": address}]}})
        kubectl("patch", "pod", "frontend-0", "--subresource=status", f"--patch={status}")
        target = {"kind": "Pod", "namespace": namespace, "name": "frontend-0"}
        ports = [{"name": "http", "port": served.port}]
        subset = {"addresses": [{"ip": address, "targetRef": target}], "ports": ports}
        world.create(ENDPOINTS, {"metadata": {"name": "chat-frontend"}, "subsets": [subset]})
        yield Person(kinds.kubeconfig, namespace)


def test_a_user_asks_the_model(admin: Person) -> None:
    code, text, said = admin.run("chat", "chat", "hi")
    assert (0, "Hello there\n") == (code, text)
    assert said.startswith("2 tokens in ")
    code, found = admin.json("chat", "chat", "hi")
    assert (0, "served", "Hello there", 2) == (code, found["model"], found["text"], found["tokens"])
    code, _, said = admin.run("chat", "chat", "hi", "--model", "other")
    assert (1, True) == (code, 'does not serve "other"' in said)
    code, text, _ = admin.run("curl", "chat")
    assert (0, {"data": [{"id": "served"}]}) == (code, json.loads(text))


@pytest.mark.stalls  # what only a client imports and compiles, once
def test_a_program_asks_the_model(admin: Person) -> None:
    cluster = Cluster(namespace=admin.namespace, kubeconfig=admin.kubeconfig)
    pieces: list[str] = []
    answer = cluster.chat("chat", "hi", write=pieces.append)
    assert ("Hello there", 2) == (answer.text, answer.tokens)
    assert ["Hello ", "there"] == pieces
    with pytest.raises(Missing, match='does not serve "other"'):
        cluster.chat("chat", "hi", model="other")


def test_a_local_port(admin: Person) -> None:
    with admin.running("port-forward", "chat", "--port", "0") as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/v1/models", timeout=60) as answer:  # noqa: S310 - ours
            assert {"data": [{"id": "served"}]} == json.load(answer)
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)
    assert 0 == process.returncode
