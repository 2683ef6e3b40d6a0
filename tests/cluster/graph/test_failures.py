"""The twenty commonest failures of graphs: `dynamoctl why` names the cause and the remedy of each.

With WRITE_DOCS=1 it writes the seconds that this took into docs/why.md, which is otherwise left alone: no
test depends on how quick a machine is.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.world import GRAPH, NAMESPACES, PATIENCE_SECONDS, PODS, QUOTAS, World
from dynamo_graphs import Cluster
from kube_runtime.types.kinds import Service, ServiceAccount
from kube_runtime.types.meta import Kind, Object

# What only a client imports and compiles, once, takes longer than a step of an operator may.
pytestmark = [pytest.mark.cluster, pytest.mark.stalls, pytest.mark.usefixtures("operator")]

PAGE = Path(__file__).parents[3] / "docs/why.md"
HEAD = """\
# How soon a cause is known

<!-- Written by `WRITE_DOCS=1 pytest tests/cluster/graph/test_failures.py`. Do not edit. -->

The twenty commonest failures, each caused on a local control plane: the seconds from `kubectl apply` until
`dynamoctl why` names the cause and a remedy. Four graphs at a time, one operator, two cores; the kubelets
are simulated, so that pulling an image fails at once. That no node fits is reported after 30 seconds, since
a scheduler may need some. [Failure modes](failure-modes.md) has more symptoms.

| failure | `why` reports | remedy | seconds |
|---|---|---|---:|
"""
AT_ONCE = 4
LONGEST_CELL = 300
_PAUSE_SECONDS = 0.2

Act = Callable[[World], object]


def created(kind: Kind, body: Object) -> Act:
    """Have another user create an object first."""
    return lambda world: world.create(kind, body)


def quota(**hard: str) -> Act:
    return created(QUOTAS, {"metadata": {"name": "limit"}, "spec": {"hard": hard}})


def with_worker(**fields: object) -> Object:
    return graph(Frontend=service("frontend"), Decode=worker("decode", **fields))


def behaving(how: str) -> Object:
    """Such a graph whose worker's pods behave so."""
    return with_worker(extraPodMetadata={"annotations": {"fake-kubelet": how}})


def with_pod(**fields: object) -> Object:
    body = with_worker()
    body["spec"]["services"]["Decode"]["extraPodSpec"] |= fields
    return body


def noted(**annotations: str) -> Object:
    body = with_worker()
    named = {f"nvidia.com/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {**body, "metadata": {"name": "chat", "annotations": named}}


def with_spec(**fields: object) -> Object:
    body = with_worker(extraPodMetadata={"annotations": {"fake-kubelet": "never-starts"}})
    return {**body, "spec": {**body["spec"], **fields}}


def with_frontend(**fields: object) -> Object:
    return graph(Frontend=service("frontend", **fields))


@dataclass(frozen=True, slots=True)
class Failure:
    """What goes wrong: what there is `before`, the graph, and what `why` must say of cause and remedy."""

    title: str
    body: Object
    cause: str
    remedy: str
    before: Act = lambda _: None

    def __str__(self) -> str:
        return self.title


PICKER = {
    "config": {
        "plugins": [{"type": "single-profile-handler"}, {"type": "max-score-picker"}],
        "schedulingProfiles": [{"name": "default", "plugins": [{"pluginRef": "max-score-picker"}]}],
    }
}
TAKEN: Object = {"metadata": {"name": "chat-frontend"}, "spec": {"ports": [{"port": 80}]}}
PVCS = [{"name": "weights", "create": False}]
LOST = [
    {
        "name": "weights",
        "create": True,
        "size": "1Gi",
        "storageClass": "nowhere",
        "volumeAccessMode": "ReadWriteOnce",
    }
]
MOUNT = {"volumeMounts": [{"name": "weights", "mountPoint": "/weights"}]}
FAILURES = (
    Failure("an image that cannot be pulled", behaving("no-image"), "image_pull_failed", "tag"),
    Failure("a container that exits", behaving("crashes"), "pods_crashing", "logs"),
    Failure(
        "more GPUs than a node has",
        with_worker(resources={"limits": {"gpu": "64"}}),
        "insufficient_capacity",
        "GPU",
    ),
    Failure(
        "a node selector that no node has",
        with_pod(nodeSelector={"gpu": "none"}),
        "insufficient_capacity",
        "nodeSelector",
    ),
    Failure(
        "a PVC that does not exist",
        {**with_worker(**MOUNT), "spec": {**with_worker(**MOUNT)["spec"], "pvcs": PVCS}},
        "weights",
        "create it",
    ),
    Failure(
        "a storage class that does not exist",
        {**with_worker(**MOUNT), "spec": {**with_worker(**MOUNT)["spec"], "pvcs": LOST}},
        "PersistentVolumeClaims",
        "PVC",
    ),
    Failure("a quota without room for pods", with_worker(), "quota", "quota", quota(pods="0")),
    Failure("a quota that refuses a Service", with_worker(), "quota", "Fix", quota(services="0")),
    Failure(
        "a ServiceAccount that does not exist", with_pod(serviceAccountName="absent"), "absent", "Events"
    ),
    Failure(
        "a name that another object has",
        with_worker(),
        "name_conflict",
        "Rename",
        created(Service.KIND, TAKEN),
    ),
    Failure(
        "an invalid spec",
        with_frontend(ingress={"enabled": True}),
        "spec.services[Frontend].ingress.host",
        "Correct",
    ),
    Failure(
        "a worker that neither runs a command nor a script",
        graph(Frontend=service("frontend"), Decode=service("worker")),
        "neither command nor args",
        "command",
    ),
    Failure(
        "several nodes without an orchestrator",
        with_worker(multinode={"nodeCount": 2}),
        "no_multinode_orchestrator",
        "LeaderWorkerSet",
    ),
    Failure(
        "a VirtualService without Istio",
        with_frontend(
            ingress={
                "enabled": True,
                "host": "chat",
                "useVirtualService": True,
                "virtualServiceGateway": "istio-system/public",
            }
        ),
        "no VirtualService is created",
        "Istio",
    ),
    Failure(
        "an endpoint picker without its ClusterRole",
        graph(Frontend=service("frontend"), Epp=service("epp", eppConfig=PICKER)),
        "EPP ClusterRole name is required",
        "--epp-cluster-role-name",
    ),
    Failure("a graph that is paused", noted(paused="true"), "paused", "resume"),
    Failure("a graph that is suspended", noted(suspend="true"), "suspended", "resume"),
    Failure(
        "a graph that is too large",
        with_worker(envs=[{"name": "NOTES", "value": "x" * 262144}]),
        "too_large",
        "ConfigMap",
    ),
    Failure(
        "no progress within the deadline",
        with_spec(progressDeadlineSeconds=1),
        "progress_deadline_exceeded",
        "kubectl describe pod",
    ),
    Failure(
        "services with different causes",
        graph(
            Frontend=service("frontend", extraPodMetadata={"annotations": {"fake-kubelet": "no-image"}}),
            Decode=worker("decode", resources={"limits": {"gpu": "64"}}),
        ),
        "image_pull_failed",
        "tag",
    ),
)


def known(failure: Failure, kinds: ControlPlane, namespace: str) -> tuple[float, str, str]:
    """The seconds until the cause and the remedy are known, and the line with each.

    Raises: AssertionError: they are not known in time; it has what `why` says instead.
    """
    world = World(kinds.server, kinds.tls, namespace)
    world.create(NAMESPACES, {"metadata": {"name": namespace, "namespace": ""}})
    try:
        world.eventually(ServiceAccount.KIND, "default")
        failure.before(world)
        begun = time.monotonic()
        world.create(GRAPH, failure.body)
        cluster, said = Cluster(namespace=namespace, kubeconfig=kinds.kubeconfig), ""
        while (seconds := time.monotonic() - begun) < PATIENCE_SECONDS:
            found = cluster.why("chat")
            cause = next((each for each in found.findings if failure.cause in each), "")
            remedy = next((each for each in (*found.advice, *found.findings) if failure.remedy in each), "")
            if cause and remedy:
                return seconds, cause, remedy
            said = "\n".join((*found.findings, "advice:", *found.advice))
            time.sleep(_PAUSE_SECONDS)
        raise AssertionError(f"{failure}: {said}")
    finally:
        world.delete(NAMESPACES, namespace)


def test_why_names_the_cause_and_the_remedy(kinds: ControlPlane, namespace: str) -> None:
    assert 20 == len(FAILURES)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [
            pool.submit(known, failure, kinds, f"{namespace}-{number}")
            for number, failure in enumerate(FAILURES)
        ]
    errors = [str(run.exception()) for run in runs if run.exception()]
    assert [] == errors, "\n\n".join(errors)
    if os.environ.get("WRITE_DOCS") == "1":
        rows = (
            f"| {failure} | {cell(cause)} | {'in the same line' if remedy == cause else cell(remedy)} "
            f"| {seconds:.1f} |\n"
            for failure, (seconds, cause, remedy) in zip(
                FAILURES, (run.result() for run in runs), strict=True
            )
        )
        text = HEAD + "".join(rows)
        PAGE.write_text(text.replace(f"{namespace}-", "lab-"), encoding="utf-8")


def test_an_unschedulable_pod_is_never_passed_over(kinds: ControlPlane, world: World) -> None:
    """Also in the first seconds, in which a scheduler may still find a node."""
    world.create(GRAPH, with_worker(resources={"limits": {"gpu": "64"}}))

    def unschedulable() -> str:
        conditions = [each for pod in world.list(PODS) for each in pod["status"].get("conditions", ())]
        return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")

    world.until(unschedulable)
    cluster = Cluster(namespace=world.namespace, kubeconfig=kinds.kubeconfig)
    found = world.until(lambda: [each for each in cluster.why("chat").findings if "nschedulable" in each])
    # While a scheduler knows no node yet it says "no nodes available to schedule pods".
    assert any("available" in each and "nodes" in each for each in found)
    for _ in range(5):
        head, *said = cluster.why("chat").findings
        assert "not" in head
        assert any("nschedulable" in each for each in said)


def cell(text: str) -> str:
    """The text for a cell of a table, its end cut off if it is long."""
    flat = " ".join(text.replace("|", "\\|").split())
    return flat if len(flat) <= LONGEST_CELL else f"{flat[:LONGEST_CELL]}…"
