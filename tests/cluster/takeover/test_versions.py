"""Graphs run through every change of operator and of stored version: no pod restarts, no write is refused.

A client writes in each served version all the time. The CRDs are applied as an upgrade does it, and the
operator writes each stored object once more.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from cluster.admission.conftest import Install, account, asker, install
from cluster.admission.front import Front, front
from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph
from cluster.installed import installed
from cluster.served import define, is_stored_alone, serve
from cluster.takeover import newer
from cluster.takeover.earlier import GoOperator
from cluster.world import CHILDREN, COMPONENT, GRAPH, PODS, SERVICE, Refused, World
from conformance.modes import COMMON
from conformance.recordings import Case
from devcluster.layout import free_ports
from dynamo_operator import labels
from dynamo_operator.shared.cluster import GROVE, InferencePool, LeaderWorkerSet, PodCliqueSet, PodGroup
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.kinds import ControllerRevision, Deployment, PersistentVolumeClaim
from kube_runtime.types.meta import Kind, Object

__all__ = ["account", "asker", "install"]
pytestmark = pytest.mark.cluster

FLAGS = (*COMMON, "--migrate-stored-objects")
OF_VERSION = {"v1alpha1": (GRAPH, COMPONENT), "v1beta1": (newer.GRAPH, newer.COMPONENT)}
OF_MODE: Mapping[str, tuple[Kind, tuple[str, ...], tuple[Kind, ...]]] = {
    "none": (Deployment.KIND, (), ()),
    "lws": (LeaderWorkerSet.KIND, ("lws", "podgroup"), (LeaderWorkerSet.KIND, PodGroup.KIND)),
    "grove": (PodCliqueSet.KIND, ("grove",), GROVE.kinds),
}
"""The kind of the workloads, and CRDs of others with their kinds, whose controllers do not run."""
BETWEEN_WRITES_SECONDS = 0.4
WRITTEN = "example.com/written-in-"


@dataclass
class Cluster:
    """The CRDs of a cluster, and the operator's address."""

    control_plane: ControlPlane
    address: Front

    @property
    def webhook(self) -> ConversionWebhook:
        return ConversionWebhook(url=f"https://127.0.0.1:{self.address.port}/convert")

    def serves(self, *versions: str) -> None:
        """Serve these versions, and store the first."""
        (stored, *others) = versions
        define(self.control_plane, self.webhook if others else None, stored)
        self.control_plane.kubectl_knows(is_later_served="v1beta1" in versions)

    def stores_only(self, version: str, world: World) -> None:
        """Wait until the operator has written each stored object once more, in this version."""
        world.until(lambda: is_stored_alone(self.control_plane, version))


@pytest.fixture
def served(kinds: ControlPlane, world: World) -> Iterator[Cluster]:
    """CRDs that a test may change; afterwards they are as other tests expect them."""
    with front() as address:
        address.backends = [*free_ports(1)]  # where no operator answers yet
        cluster = Cluster(kinds, address)
        yield cluster
        serve(kinds, "v1alpha1", conversion=cluster.webhook)


@dataclass
class Client:
    """Writes a label in each of the `versions`, in turn, until it is stopped."""

    world: World
    name: str
    versions: tuple[str, ...]
    written: dict[str, int] = field(default_factory=dict[str, int])
    refused: list[str] = field(default_factory=list[str])

    @contextmanager
    def writing(self) -> Iterator[None]:
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.wait(BETWEEN_WRITES_SECONDS):
                for version in self.versions:
                    number += 1
                    note = {"metadata": {"annotations": {f"{WRITTEN}{version}": str(number)}}}
                    try:
                        self.world.patch(OF_VERSION[version][0], self.name, note)
                    except Refused as refused:
                        self.refused.append(f"{version}: {refused}")
                    else:
                        self.written[version] = number

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def has_written(self, more: int = 3) -> None:
        """Wait for more writes in each version."""
        goal = max(self.written.values(), default=0) + more
        self.world.until(
            lambda: all(self.written.get(version, 0) >= goal for version in self.versions),
            what=lambda: str((self.written, self.refused)),
        )


@dataclass(frozen=True)
class State:
    """What must not change: the pods and their templates, and what the user wrote, in one version."""

    pods: dict[str, str]
    templates: dict[str, Any]
    spec: Object

    @classmethod
    def of(cls, world: World, kind: Kind, name: str) -> "State":
        workloads = [*world.list(Deployment.KIND)]
        for workload in (LeaderWorkerSet.KIND, PodCliqueSet.KIND):
            with suppress(Refused):  # not installed
                workloads += world.list(workload)
        return cls(
            {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.list(PODS)},
            {body["metadata"]["uid"]: _without_empty(_of_pods(body["spec"])) for body in workloads},
            world.read(kind, name)["spec"],
        )


def _of_pods(spec: Object) -> Object:
    """What pods are made from: templates and their number."""
    names = ("replicas", "template", "leaderWorkerTemplate")
    return {name: spec[name] for name in names if name in spec}


def _without_empty(value: Any) -> Any:
    """A value without empty maps: to Grove, which reads it into structs, they are the same as none."""
    if isinstance(value, dict):
        return {name: _without_empty(inner) for name, inner in value.items() if inner != {}}
    return [_without_empty(inner) for inner in value] if isinstance(value, list) else value


def pods_run(world: World, count: int) -> None:
    world.until(
        lambda: sum(pod["status"].get("phase") == "Running" for pod in world.list(PODS)) == count,
        what=lambda: str([pod["metadata"]["name"] for pod in world.list(PODS)]),
    )


def is_taken_over(world: World, *kinds: Kind) -> bool:
    owned = [body for kind in kinds for body in world.list(kind) if body["metadata"].get("ownerReferences")]
    marked = [
        body for body in owned if labels.LAST_APPLIED_GENERATION in body["metadata"].get("annotations", {})
    ]
    return bool(owned) and not marked


def converts(world: World) -> bool:
    """Whether the API server trusts the webhook: both versions can be read."""
    with suppress(Refused):
        return [len(world.list(graphs)) for graphs, _ in OF_VERSION.values()] == [1, 1]
    return False


@dataclass(frozen=True)
class Left:
    """A graph that the Go operator left, and a client that writes it."""

    world: World
    before: State
    annotations: Mapping[str, str]
    client: Client

    @classmethod
    def by(cls, operator: newer.NewerGoOperator, pods: int) -> "Left":
        operator.has_run()
        world = operator.world
        pods_run(world, pods)
        annotations = world.read(newer.GRAPH, "g")["metadata"]["annotations"]
        client = Client(world, "g", ("v1alpha1", "v1beta1"))
        return cls(world, State.of(world, newer.GRAPH, "g"), annotations, client)

    def is_as_before(self) -> bool:
        self.client.has_written()
        return self.before == State.of(self.world, newer.GRAPH, "g")


@pytest.mark.parametrize(
    ("mode", "cases"),
    [
        ("none", {"disagg-vllm": 3}),
        ("lws", {"multinode-scale-down": 0}),
        ("grove", {"disagg-vllm": 0, "n-topology": 0}),
    ],
    ids=["components", "groups", "grove"],
)
def test_from_the_1x_line_with_either_version_stored(
    served: Cluster, world: World, install: Install, mode: str, cases: Mapping[str, int]
) -> None:
    """Each graph of the mode, with the number of its pods, in a namespace of its own."""
    with ExitStack() as stack:
        workload, crds, others = OF_MODE[mode]
        if crds:
            stack.enter_context(installed(served.control_plane, crds, others))
        served.serves("v1beta1", "v1alpha1")
        places = (served.control_plane.new_namespace(f"{world.namespace}-{case}") for case in cases)
        graphs = [
            Left.by(newer.NewerGoOperator(stack.enter_context(place), newer.case_of(case), mode), pods)
            for place, (case, pods) in zip(places, cases.items(), strict=True)
        ]
        operator = stack.enter_context(install(*FLAGS, url_port=served.address.port))
        served.address.backends = [operator.port]
        world.until(lambda: all(converts(graph.world) for graph in graphs))
        children = (workload, SERVICE, *((newer.COMPONENT,) if mode != "grove" else ()))
        with ExitStack() as clients:
            for graph in graphs:
                clients.enter_context(graph.client.writing())
            world.until(lambda: all(is_taken_over(graph.world, *children) for graph in graphs))
            assert all(graph.is_as_before() for graph in graphs)
            served.serves("v1alpha1", "v1beta1")
            for graph in graphs:
                graph.client.has_written()
            served.stores_only("v1alpha1", world)
            world.until(lambda: all(_is_settled(graph.world, mode) for graph in graphs))
            assert all(graph.is_as_before() for graph in graphs)
        for graph in graphs:
            assert [] == graph.client.refused
            # What the Go operator finds its workers by.
            found = graph.world.read(newer.GRAPH, "g")["metadata"]["annotations"]
            hash_ = labels.CURRENT_WORKER_HASH_V2
            assert graph.annotations[hash_] == found[hash_]
            assert {version: str(number) for version, number in graph.client.written.items()} == {
                key.removeprefix(WRITTEN): text for key, text in found.items() if key.startswith(WRITTEN)
            }


def _is_settled(world: World, mode: str) -> bool:
    return mode != "none" or is_ready(world.read(newer.GRAPH, "g"))


def test_a_pool_that_selects_workers_keeps_its_pods(served: Cluster, world: World, install: Install) -> None:
    """Their requests go to frontends in the pods of workers, which this operator does not run."""
    with installed(served.control_plane, ("inferencepool",), (InferencePool.KIND,)):
        served.serves("v1beta1", "v1alpha1")
        case = newer.case_of("n-epp-gaie")
        newer.NewerGoOperator(world, case).has_run()
        pods_run(world, 2)
        before, pool = State.of(world, newer.GRAPH, "g"), world.read(InferencePool.KIND, "g-pool")
        with install(*FLAGS, url_port=served.address.port) as operator:
            served.address.backends = [operator.port]
            world.eventually(
                newer.GRAPH,
                "g",
                lambda body: "g-pool would select no pods" in condition(body).get("message", ""),
            )
            assert before == State.of(world, newer.GRAPH, "g")
            assert pool["spec"] == world.read(InferencePool.KIND, "g-pool")["spec"]


def test_from_the_0_9_line_with_v1beta1_stored(served: Cluster, world: World, install: Install) -> None:
    GoOperator(world, Case("disagg-vllm")).has_run()
    pods_run(world, 3)
    before = State.of(world, GRAPH, "g")
    client = Client(world, "g", ("v1alpha1",))
    served.serves("v1alpha1", "v1beta1")
    # Until an operator answers, its webhooks refuse writes.
    with install(*FLAGS, url_port=served.address.port) as operator, client.writing():
        served.address.backends = [operator.port]
        world.until(lambda: converts(world))
        client.versions = ("v1alpha1", "v1beta1")
        world.until(lambda: is_taken_over(world, COMPONENT, Deployment.KIND, SERVICE))
        client.has_written()
        served.serves("v1beta1", "v1alpha1")
        client.has_written()
        served.stores_only("v1beta1", world)
        world.until(lambda: is_ready(world.read(GRAPH, "g")))
        client.has_written()
        assert before == State.of(world, GRAPH, "g")
    assert [] == client.refused


def test_ours_to_both_versions_and_back(served: Cluster, world: World, install: Install) -> None:
    with install(*FLAGS, url_port=served.address.port) as operator:
        served.address.backends = [operator.port]
        world.create(GRAPH, graph("g"))
        world.until(lambda: is_ready(world.read(GRAPH, "g")))
        before = State.of(world, GRAPH, "g")
        client = Client(world, "g", ("v1alpha1",))
        with client.writing():
            client.has_written()
            served.serves("v1alpha1", "v1beta1")
            world.until(lambda: converts(world))
            client.versions = ("v1alpha1", "v1beta1")
            client.has_written()
            served.serves("v1beta1", "v1alpha1")
            client.has_written()
            served.stores_only("v1beta1", world)
            world.until(lambda: is_ready(world.read(GRAPH, "g")))
            assert before == State.of(world, GRAPH, "g")
            served.serves("v1alpha1", "v1beta1")
            client.has_written()
            served.stores_only("v1alpha1", world)
            client.versions = ("v1alpha1",)
            client.has_written()
            served.serves("v1alpha1")
            client.has_written()
            world.until(lambda: is_ready(world.read(GRAPH, "g")))
            assert before == State.of(world, GRAPH, "g")
        assert [] == client.refused


ADAPTER = Kind("nvidia.com", "v1beta1", "DynamoGraphDeploymentScalingAdapter")
OWNED = (
    *(kind for kind in CHILDREN if kind != COMPONENT),
    *(newer.COMPONENT, ADAPTER, ControllerRevision.KIND, PersistentVolumeClaim.KIND),
)


def owners(world: World) -> dict[tuple[str, str], set[str]]:
    """The versions of our kinds that objects name as their owners; claims that are being deleted are gone."""
    bodies: list[Object] = [{**body, "kind": kind.name} for kind in OWNED for body in world.list(kind)]
    return {
        (body["kind"], body["metadata"]["name"]): named
        for body in bodies
        if "deletionTimestamp" not in body["metadata"]
        and (named := {it["apiVersion"] for it in body["metadata"].get("ownerReferences", ())} & OURS)
    }


OURS = {"nvidia.com/v1alpha1", "nvidia.com/v1beta1"}
CLAIM = {"name": "models", "create": True, "size": "1Gi", "storageClass": "none"}


def test_ours_to_v1beta1_alone_where_a_graph_goes_with_its_children(
    served: Cluster, world: World, install: Install
) -> None:
    with install(*FLAGS, url_port=served.address.port) as operator:
        served.address.backends = [operator.port]
        body = graph("g")
        body["spec"]["pvcs"] = [{**CLAIM, "volumeAccessMode": "ReadWriteMany"}]
        body["spec"]["services"]["Decode"]["scalingAdapter"] = {"enabled": True}
        world.create(GRAPH, body)
        world.until(lambda: is_ready(world.read(GRAPH, "g")))
        served.serves("v1alpha1", "v1beta1")
        world.until(lambda: converts(world))
        before, named = State.of(world, newer.GRAPH, "g"), owners(world)
        assert {("nvidia.com/v1alpha1",)} == {tuple(versions) for versions in named.values()}
        assert {"PersistentVolumeClaim", "DynamoGraphDeploymentScalingAdapter"} < {kind for kind, _ in named}
        served.serves("v1beta1", "v1alpha1")
        served.stores_only("v1beta1", world)
        later = {key: {"nvidia.com/v1beta1"} for key in named}
        world.until(lambda: owners(world) == later, what=lambda: str(owners(world)))
        served.serves("v1beta1")
        # The garbage collector keeps the version in which it saw a custom resource first, until it starts
        # again: https://github.com/kubernetes/kubernetes/issues/102641
        served.control_plane.install_crds()
        world.patch(newer.GRAPH, "g", {"metadata": {"annotations": {"nvidia.com/suspend": "false"}}})
        assert before == State.of(world, newer.GRAPH, "g")
        world.delete(newer.GRAPH, "g")
        world.until(lambda: not owners(world), what=lambda: str(owners(world)))
