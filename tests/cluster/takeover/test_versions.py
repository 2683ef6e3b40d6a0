"""Graphs run through every change of operator and of stored version: no pod restarts, no write is refused.

A client writes in each served version all the time. The CRDs are applied as an upgrade does it, and the
operator writes each stored object once more.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
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
from cluster.takeover import newer
from cluster.takeover.earlier import GoOperator
from cluster.world import CHILDREN, COMPONENT, GRAPH, PODS, SERVICE, Refused, World
from conformance.modes import COMMON
from conformance.recordings import Case
from devcluster.layout import free_ports
from dynamo_operator import labels
from dynamo_operator.admission.definitions import CONVERTED
from dynamo_operator.crds import custom_resource_definitions
from dynamo_operator.shared.cluster import GROVE, InferencePool, LeaderWorkerSet, PodCliqueSet, PodGroup
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.kinds import (
    ControllerRevision,
    CustomResourceDefinition,
    Deployment,
    PersistentVolumeClaim,
)
from kube_runtime.types.meta import Kind, Object

__all__ = ["account", "asker", "install"]
pytestmark = pytest.mark.cluster

FLAGS = (*COMMON, "--migrate-stored-objects")
DEFINITION = CustomResourceDefinition.KIND
NAMES = [str(type_.KIND) for type_ in CONVERTED]
OF_VERSION = {"v1alpha1": (GRAPH, COMPONENT), "v1beta1": (newer.GRAPH, newer.COMPONENT)}
OF_MODE: Mapping[str, tuple[Kind, tuple[str, ...], tuple[Kind, ...]]] = {
    "none": (Deployment.KIND, (), ()),
    "lws": (LeaderWorkerSet.KIND, ("lws", "podgroup"), (LeaderWorkerSet.KIND, PodGroup.KIND)),
    "grove": (PodCliqueSet.KIND, ("grove",), GROVE.kinds),
}
"""The kind of the workloads, and CRDs of others with their kinds, whose controllers do not run."""
WRITTEN = "example.com/written-in-"


@dataclass
class Cluster:
    """The CRDs of a cluster, and the operator's address."""

    control_plane: ControlPlane
    address: Front

    def serves(self, *versions: str) -> None:
        """Serve these versions, and store the first."""
        hook = ConversionWebhook(url=f"https://127.0.0.1:{self.address.port}/convert")
        (stored, *others) = versions
        self._apply(custom_resource_definitions(hook if others else None, stored))
        self.control_plane.kubectl_knows(is_later_served="v1beta1" in versions)

    def stores_only(self, version: str, world: World) -> None:
        """Wait until the operator has written each stored object once more, in this version."""
        world.until(
            lambda: all(
                world.read(DEFINITION, name)["status"]["storedVersions"] == [version] for name in NAMES
            ),
            what=lambda: str([world.read(DEFINITION, name)["status"]["storedVersions"] for name in NAMES]),
        )

    def _apply(self, bodies: Sequence[Mapping[str, object]]) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*bodies]})
        self.control_plane.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", input=text)
        self.control_plane.kubectl("wait", "--for=condition=Established", "crd", *NAMES)


@pytest.fixture
def served(kinds: ControlPlane, world: World) -> Iterator[Cluster]:
    """CRDs that a test may change; afterwards they are as other tests expect them."""
    with front() as address:
        address.backends = [*free_ports(1)]  # where no operator answers yet
        cluster = Cluster(kinds, address)
        yield cluster
        for kind in _readable(world):
            world.until(lambda kind=kind: _is_gone(world, kind))  # type: ignore[misc]
        cluster.serves("v1alpha1", "v1beta1")
        for name in NAMES:
            status = json.dumps({"status": {"storedVersions": ["v1alpha1"]}})
            kinds.kubectl("patch", "crd", name, "--subresource=status", "--type=merge", f"--patch={status}")
        cluster.serves("v1alpha1")


def _is_gone(world: World, kind: Kind) -> bool:
    bodies = world.list(kind)
    for body in bodies:
        name = body["metadata"]["name"]
        with suppress(Refused):  # gone meanwhile
            world.patch(kind, name, {"metadata": {"finalizers": None}})
            world.delete(kind, name)
    return not bodies


def _readable(world: World) -> tuple[Kind, ...]:
    """The kinds of a graph, in a version that needs no webhook."""
    found = world.get(DEFINITION, NAMES[0]) or {}
    stored = next(version["name"] for version in found["spec"]["versions"] if version["storage"])
    return OF_VERSION[stored]


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
            while not stop.wait(0.2):
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

    def has_written(self, more: int = 5) -> None:
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


@pytest.mark.parametrize(
    ("mode", "case", "pods"),
    [
        *(("none", "disagg-vllm", 3), ("lws", "multinode-scale-down", 0)),
        *(("grove", "disagg-vllm", 0), ("grove", "n-topology", 0)),
    ],
    ids=["components", "groups", "grove", "topology"],
)
def test_from_the_1x_line_with_either_version_stored(
    served: Cluster, world: World, install: Install, mode: str, case: str, pods: int
) -> None:
    with ExitStack() as stack:
        workload, crds, others = OF_MODE[mode]
        if crds:
            stack.enter_context(installed(served.control_plane, crds, others))
        served.serves("v1beta1", "v1alpha1")
        newer.NewerGoOperator(served.control_plane, world, newer.case_of(case), mode).has_run()
        pods_run(world, pods)
        before = State.of(world, newer.GRAPH, "g")
        recorded = world.read(newer.GRAPH, "g")["metadata"]["annotations"]
        operator = stack.enter_context(install(*FLAGS, url_port=served.address.port))
        served.address.backends = [operator.port]
        world.until(lambda: converts(world))
        client = Client(world, "g", ("v1alpha1", "v1beta1"))
        with client.writing():
            children = (workload, SERVICE, *((newer.COMPONENT,) if mode != "grove" else ()))
            world.until(lambda: is_taken_over(world, *children))
            client.has_written()
            assert before == State.of(world, newer.GRAPH, "g")
            served.serves("v1alpha1", "v1beta1")
            client.has_written()
            served.stores_only("v1alpha1", world)
            world.until(lambda: _is_settled(world, mode))
            client.has_written()
            assert before == State.of(world, newer.GRAPH, "g")
        assert [] == client.refused
        # What the Go operator finds its workers by.
        found = world.read(newer.GRAPH, "g")["metadata"]["annotations"]
        assert recorded[labels.CURRENT_WORKER_HASH_V2] == found[labels.CURRENT_WORKER_HASH_V2]
        assert {version: str(number) for version, number in client.written.items()} == {
            key.removeprefix(WRITTEN): text for key, text in found.items() if key.startswith(WRITTEN)
        }


def _is_settled(world: World, mode: str) -> bool:
    return mode != "none" or is_ready(world.read(newer.GRAPH, "g"))


def test_a_pool_that_selects_workers_keeps_its_pods(served: Cluster, world: World, install: Install) -> None:
    """Their requests go to frontends in the pods of workers, which this operator does not run."""
    with installed(served.control_plane, ("inferencepool",), (InferencePool.KIND,)):
        served.serves("v1beta1", "v1alpha1")
        case = newer.case_of("n-epp-gaie")
        newer.NewerGoOperator(served.control_plane, world, case).has_run()
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
    GoOperator(served.control_plane, world, Case("disagg-vllm")).has_run()
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
