"""What changes beside a graph replaces none of its pods and deletes none of its Services.

`docs/rollouts.md` has the rows. Pull secrets have a module of their own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cluster.graph.graphs import IMAGE, graph, service, worker
from dynamo_operator import labels
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import (
    GROVE,
    LEADER_WORKER_SET,
    InferencePool,
    LeaderWorkerSet,
    PodCliqueSet,
    Queue,
    VirtualService,
)
from dynamo_operator.shared.templates import units
from kube_runtime.types.kinds import (
    ConfigMap,
    Deployment,
    PersistentVolumeClaim,
    Pod,
    Role,
    RoleBinding,
    Service,
    ServiceAccount,
)
from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of
from lifecycle.running import COMPONENT, GRAPH, NAMESPACE, REST_SECONDS, Running, install, running, uninstall
from simulated.clock import on_simulated_clock
from simulated.server import Server

WORKLOADS = (Deployment.KIND, LeaderWorkerSet.KIND, PodCliqueSet.KIND)
MODEL = {"modelRef": {"name": "Qwen/Qwen3-0.6B"}}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def serving(server: Server) -> dict[str, Any]:
    """What must stay: the pod templates of all workloads, and the uids of workloads and Services."""
    stored = server.storage.objects
    found: dict[str, Any] = {}
    for kind in (*WORKLOADS, Service.KIND):
        for key, body in stored.get(path_of(kind), {}).items():
            if key.name.startswith("other"):
                continue
            templates = units(body) if kind in WORKLOADS else {}
            found[f"{kind.name} {key.name}"] = body["metadata"]["uid"], templates
    return found


def chat(name: str = "chat", nodes: int = 1) -> Object:
    spread = {"multinode": {"nodeCount": nodes}} if nodes > 1 else {}
    return graph(
        name,
        Frontend=service("frontend"),
        Decode=worker("decode", **MODEL),
        Prefill=worker("prefill", **MODEL, **spread),
    )


@dataclass(frozen=True)
class Row:
    """A change beside a graph that runs on these optional APIs."""

    change: Callable[[Running], Any]
    installed: tuple[Kind, ...] = ()


def comes_and_goes(kind: Kind, name: str, **body: Any) -> Callable[[Running], Awaitable[None]]:
    async def change(operator: Running) -> None:
        operator.create(kind, {"metadata": {"name": name, **body.pop("metadata", {})}, **body})
        await asyncio.sleep(REST_SECONDS)
        operator.delete(kind, name)

    return change


def is_deleted(kind: Kind, name: str) -> Callable[[Running], None]:
    return lambda operator: operator.delete(kind, name)


def apis_come_and_go(*kinds: Kind) -> Callable[[Running], Awaitable[None]]:
    async def change(operator: Running) -> None:
        install(operator.server, *kinds)
        await asyncio.sleep(10 * REST_SECONDS)
        uninstall(operator.server, *kinds)

    return change


def an_api_goes(*kinds: Kind) -> Callable[[Running], None]:
    return lambda operator: uninstall(operator.server, *kinds)


ACCOUNT = {"labels": {labels.COMPONENT_POD: "true"}}
CLUSTER_KINDS = {
    "Namespace": Kind("", "v1", "Namespace", "namespaces", namespaced=False),
    "Node": Kind("", "v1", "Node", "nodes", namespaced=False),
}


def of_the_cluster(kind: str) -> Callable[[Running], None]:
    """A namespace gets labels, or a node comes."""

    def change(operator: Running) -> None:
        body = {"metadata": {"name": NAMESPACE, "labels": {"istio-injection": "enabled"}}}
        operator.server.storage.create(path_of(CLUSTER_KINDS[kind]), body)

    return change


ROWS = {
    "a marked ServiceAccount": Row(comes_and_goes(ServiceAccount.KIND, "a", metadata=ACCOUNT)),
    "the ServiceAccount of a graph": Row(is_deleted(ServiceAccount.KIND, "chat-k8s-service-discovery")),
    "a Role": Row(is_deleted(Role.KIND, "chat-k8s-service-discovery-role")),
    "a RoleBinding": Row(is_deleted(RoleBinding.KIND, "chat-k8s-service-discovery-binding")),
    "a ConfigMap": Row(comes_and_goes(ConfigMap.KIND, "chat", data={"x": "y"})),
    "a PVC": Row(comes_and_goes(PersistentVolumeClaim.KIND, "chat", spec={})),
    "labels of the namespace": Row(of_the_cluster("Namespace")),
    "a node": Row(of_the_cluster("Node")),
    "another graph": Row(comes_and_goes(GRAPH, "other", spec=chat("other")["spec"])),
    "a model": Row(
        comes_and_goes(
            *(DynamoModel.KIND, "qwen"),
            spec={"modelName": "Qwen/Qwen3-0.6B", "baseModelName": "Qwen/Qwen3-0.6B"},
        )
    ),
    "Grove comes and goes": Row(apis_come_and_go(*GROVE.kinds)),
    "groups come and go": Row(apis_come_and_go(*LEADER_WORKER_SET.kinds)),
    "Istio comes and goes": Row(apis_come_and_go(VirtualService.KIND)),
    "InferencePools come and go": Row(apis_come_and_go(InferencePool.KIND)),
    "KAI comes and goes": Row(apis_come_and_go(Queue.KIND)),
    "KAI comes to Grove": Row(apis_come_and_go(Queue.KIND), GROVE.kinds),
    "KAI goes from Grove": Row(an_api_goes(Queue.KIND), (*GROVE.kinds, Queue.KIND)),
    "Istio comes to Grove": Row(apis_come_and_go(VirtualService.KIND), GROVE.kinds),
    "groups come to Grove": Row(apis_come_and_go(*LEADER_WORKER_SET.kinds), GROVE.kinds),
    "Grove goes": Row(an_api_goes(*GROVE.kinds), GROVE.kinds),
    "groups go": Row(an_api_goes(*LEADER_WORKER_SET.kinds), LEADER_WORKER_SET.kinds),
}


@pytest.mark.parametrize("what", ROWS)
@on_simulated_clock
async def test_a_change_beside_a_graph_leaves_its_pods_and_services(what: str) -> None:
    row = ROWS[what]
    async with running(installed=row.installed) as operator:
        if Queue.KIND in row.installed:
            queue = {"metadata": {"name": "dynamo"}}
            operator.server.storage.create(path_of(Queue.KIND), queue)
        operator.create(GRAPH, chat(nodes=2 if row.installed else 1))
        await asyncio.sleep(REST_SECONDS)
        before = serving(operator.server)
        assert len(before) > 3
        if isinstance(awaited := row.change(operator), Awaitable):
            await awaited
        await asyncio.sleep(10 * REST_SECONDS)
        assert before == serving(operator.server)


@on_simulated_clock
async def test_another_process_writes_nothing() -> None:
    async with running() as operator:
        operator.create(GRAPH, chat())
        await asyncio.sleep(REST_SECONDS)
        await operator.deployments_run()
    server = operator.server
    before = serving(server)
    sent = len(server.requests)
    async with running(server=server) as operator:
        await asyncio.sleep(10 * REST_SECONDS)
    assert before == serving(server)
    assert {"GET"} == {request.method for request in server.requests[sent:]}


@on_simulated_clock
async def test_running_workers_get_another_drain_period_with_their_next_change() -> None:
    async with running(render=RenderSettings(worker_drain_period_seconds=0)) as operator:
        operator.create(GRAPH, chat())
        await asyncio.sleep(REST_SECONDS)
    before = serving(operator.server)
    async with running(server=operator.server) as operator:
        await asyncio.sleep(REST_SECONDS)
        assert before == serving(operator.server)


def account_of(operator: Running) -> str:
    [name] = operator.names(Deployment.KIND)
    pod: Object = operator.read(Deployment.KIND, name)["spec"]["template"]["spec"]
    return str(pod["serviceAccountName"])


@on_simulated_clock
async def test_pods_keep_their_marked_account_while_it_is_one() -> None:
    spec = {"componentType": "worker", "extraPodSpec": {"mainContainer": {"image": IMAGE}}}
    async with running() as operator:
        accounts = ServiceAccount.KIND
        operator.create(accounts, {"metadata": {"name": "m", **ACCOUNT}})
        operator.create(COMPONENT, {"metadata": {"name": "w"}, "spec": spec})
        await asyncio.sleep(REST_SECONDS)
        pod = {"name": "p", "labels": {labels.COMPONENT: "w", labels.SELECTOR: "w"}}
        operator.create(Pod.KIND, {"metadata": pod, "spec": {"nodeName": "n"}, "status": READY})
        assert "m" == account_of(operator)
        operator.create(accounts, {"metadata": {"name": "a", **ACCOUNT}})
        await asyncio.sleep(REST_SECONDS)
        assert "m" == account_of(operator)
        operator.delete(accounts, "m")
        await asyncio.sleep(REST_SECONDS)
        assert "a" == account_of(operator)  # no pod could start with the other
