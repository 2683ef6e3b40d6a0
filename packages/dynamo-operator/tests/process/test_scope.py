"""Which part of the cluster an operator works in, as its settings say; on a simulated API server."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from conformance.recordings import documents
from dynamo_graphs.offline import graph_tree
from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.observability import register_scope
from dynamo_operator.process.scope import LEASE, Scope, informers, scope_of, unselected
from dynamo_operator.settings import RenderSettings, Settings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Key, Metadata, Object, Resource, Selector
from kube_runtime.wire import path_of
from simulated.server import Fault, Server

pytestmark = pytest.mark.looptime

LEASES = path_of(Lease.KIND)
WIDE = Settings(operator_version="v2")
RESTRICTED = Settings(operator_version="v2", render=RenderSettings(restricted_namespace="team-a"))


class Operator:
    """One operator's scope, with a manager that has joined it."""

    def __init__(self, server: Server, settings: Settings) -> None:
        client, self.metrics = Client(server), RuntimeMetrics()
        self.scope: Scope = scope_of(client, settings)
        events = EventWriter(client, instance="a", metrics=self.metrics)
        self.manager = Manager(client, Cache(), metrics=self.metrics, events=events)
        self.scope.join(self.manager)
        register_scope(self.metrics.registry, lambda: len(self.scope.excluded), lambda: False)
        self.stop = asyncio.Event()
        self._run: asyncio.Task[None] | None = None

    async def start(self) -> "Operator":
        await self.scope.claim()
        self._run = asyncio.create_task(self.manager.run(self.stop))
        await asyncio.sleep(0.5)
        return self

    async def end(self) -> None:
        assert self._run is not None
        self.stop.set()
        await self._run
        await self.scope.release()

    def excluded(self) -> float | None:
        return self.metrics.registry.get_sample_value("dynamo_operator_excluded_namespaces")


async def test_a_restricted_operator_marks_its_namespace_for_as_long_as_it_runs() -> None:
    server = Server()
    operator = await Operator(server, RESTRICTED).start()
    lease = server.storage.read(LEASES, Key("team-a", LEASE))
    assert "namespace-restricted-operator-v2" == lease["spec"]["holderIdentity"]
    assert all(lease.holds_lease() for lease in operator.scope.leases)
    await operator.end()
    assert {} == server.storage.objects[LEASES]


async def test_a_restricted_operator_reads_no_leases_of_others() -> None:
    server = Server()
    operator = await Operator(server, RESTRICTED).start()
    await asyncio.sleep(60)
    assert {"PATCH", "POST"} == {each.method for each in server.requests}
    await operator.end()


async def test_a_cluster_wide_operator_leaves_a_namespace_to_its_own_operator() -> None:
    server = Server()
    wide = await Operator(server, WIDE).start()
    assert (set(), 0) == (set(wide.scope.excluded), wide.excluded())
    restricted = await Operator(server, RESTRICTED).start()
    assert ({"team-a"}, set()) == (set(wide.scope.excluded), set(restricted.scope.excluded))
    assert 1 == wide.excluded()
    await restricted.end()
    await asyncio.sleep(0.1)
    assert (set(), 0) == (set(wide.scope.excluded), wide.excluded())
    await wide.end()


async def test_a_cluster_wide_operator_is_not_ready_before_it_knows_all_markers() -> None:
    server = Server()
    server.faults.append(Fault(500, times=20, collection=LEASES))
    operator = await Operator(server, WIDE).start()
    assert not operator.manager.ready()
    server.faults.clear()
    await asyncio.sleep(60)
    assert operator.manager.ready()
    await operator.end()


async def test_a_cluster_wide_operator_asks_for_marker_leases_only() -> None:
    server = Server()
    operator = await Operator(server, WIDE).start()
    asked = {each.query.get("fieldSelector") for each in server.requests}
    assert {f"metadata.name={LEASE}"} == asked
    await operator.end()


TESTS = Path(__file__).parents[4] / "tests"
GOLDEN = sorted((TESTS / "golden/cases").glob("*/objects.yaml"))
SETTINGS = RenderSettings()
SELECTIONS = [(each.type_, each.selector) for each in informers(SETTINGS)]
FOREIGN: Object = {"metadata": {"name": "theirs", "labels": {labels.APP_MANAGED_BY: "Helm"}}}


def covers(selection: Selector, each: Object) -> bool:
    """Whether a watch with that selection brings an object with these labels."""
    metadata = msgspec.convert({"labels": each["metadata"].get("labels", {})}, Metadata)
    return selection.covers(Resource(metadata), is_watched=True)


def watches_of(each: Object) -> list[type[Resource]]:
    """The types whose watch brings the object."""
    kind = each["kind"]
    return [t for t, found in SELECTIONS if t.KIND.name == kind and covers(found, each)]


def test_there_are_golden_files() -> None:
    assert GOLDEN


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_all_that_we_write_is_watched_once(path: Path) -> None:
    objects = [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each]
    assert objects
    wrong = {(each["kind"], each["metadata"]["name"]): len(watches_of(each)) for each in objects}
    assert {} == {key: count for key, count in wrong.items() if count != 1}


def test_no_label_of_a_user_hides_an_object() -> None:
    hostile: dict[str, Any] = {
        labels.COMPONENT: "theirs",
        labels.APP_MANAGED_BY: "Helm",
        labels.BASE_MODEL_HASH: "0",
        labels.INSTANCE: "x",
    }
    service = {"componentType": "worker", "labels": hostile, "modelRef": {"name": "m"}, "replicas": 1}
    body = {
        "metadata": {"name": "chat", "namespace": "n"},
        "spec": {"labels": hostile, "services": {"Worker": service}},
    }
    graph = msgspec.convert(body, DynamoGraphDeployment)
    for each in graph_tree(graph, Facts(), SETTINGS):
        assert 1 == len(watches_of(each)), each


@pytest.mark.parametrize(
    "kind",
    [
        *("Deployment", "Service", "ServiceAccount", "Role", "RoleBinding", "Ingress"),
        *("PodDisruptionBudget", "ConfigMap", "Pod", "EndpointSlice", "StatefulSet"),
        *("LeaderWorkerSet", "PodGroup", "InferencePool", "VirtualService"),
    ],
)
def test_what_others_run_is_not_watched(kind: str) -> None:
    assert [] == watches_of({**FOREIGN, "kind": kind})


def test_what_the_go_operator_made_is_watched_or_looked_for() -> None:
    looked_for = [(type_.KIND.name, selector) for type_, selector in unselected(SETTINGS).items()]
    kinds = {name for name, _ in looked_for}
    lost, unmarked = [], set()
    for path in sorted((TESTS / "conformance/cases").glob("*/*.yaml")):
        if path.name.startswith(("none", "grove", "lws", "flags")):
            for each in recorded(path):
                if each["kind"] in kinds and not watches_of(each):
                    unmarked.add(each["kind"])
                    if not any(k == each["kind"] and covers(s, each) for k, s in looked_for):
                        lost.append((path, each["metadata"]["name"]))
    assert ([], {"Ingress", "Service"}) == (lost, unmarked)


def recorded(path: Path) -> list[Object]:
    """The objects of a recording that one of our kinds controls."""
    [stage, *_] = documents(path)
    found: list[Object] = stage["objects"]
    return [each for each in found if each["metadata"].get("ownerReferences")]


def test_a_restricted_operator_looks_in_its_namespace() -> None:
    chosen = msgspec.structs.replace(SETTINGS, restricted_namespace="mine")
    assert {"mine"} == {each.namespace for each in unselected(chosen).values()}


@pytest.mark.parametrize("with_legacy_kinds", [False, True])
def test_a_restricted_operator_watches_nothing_of_other_namespaces(with_legacy_kinds: bool) -> None:
    chosen = msgspec.structs.replace(SETTINGS, restricted_namespace="mine")
    elsewhere = {
        informer.type_
        for informer in informers(chosen, with_legacy_kinds=with_legacy_kinds)
        if informer.type_.KIND.namespaced and informer.selector.namespace != "mine"
    }
    assert set() == elsewhere
