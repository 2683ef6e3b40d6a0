"""What is read of Grove's objects, and whom they wake."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from dynamo_operator.component.service import ServiceObserved
from dynamo_operator.features.grove.read import grove_members, grove_watches, live_templates
from dynamo_operator.features.grove.status import GroveMember
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.read import service_snapshot
from dynamo_operator.names import COMPONENT, GROVE, on_provider
from dynamo_operator.shared.cluster import (
    LiveTemplate,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodCliqueStatus,
    PullSecret,
    Queue,
    ReplicasSpec,
)
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.types.meta import Key, Metadata, OwnerReference, Resource
from simulated.caches import a_cache
from specs import a_graph, a_service

ZONE, RACK = {"topologyName": "t", "pack": {"required": "zone"}}, {"packDomain": "rack"}
TEMPLATE = {
    "cliques": [
        {
            "name": "f",
            "annotations": {"nvidia.com/restartAt": "r1"},
            "spec": {"replicas": 4, "minAvailable": 1, "podSpec": {"schedulerName": "kai-scheduler"}},
        },
        {"name": "w-ldr", "spec": {"replicas": 1, "minAvailable": 1}},
        {"name": "w-wkr", "spec": {"replicas": 3, "minAvailable": 1}},
    ],
    "podCliqueScalingGroups": [{"name": "w", "replicas": 2, "topologyConstraint": RACK}],
    "topologyConstraint": ZONE,
}
GRAPH = a_graph(
    {"F": a_service("frontend", replicas=5), "W": a_service(multinode={"nodeCount": 4})},
    metadata={"uid": "uid"},
)


def a_set(**metadata: Any) -> PodCliqueSet:
    owner = OwnerReference("DynamoGraphDeployment", "the-graph", "uid", controller=True)
    spec = msgspec.Raw(msgspec.json.encode({"replicas": 1, "template": TEMPLATE}))
    return PodCliqueSet(Metadata("chat", "prod", owner_references=(owner,), **metadata), spec)


def cache(*objects: Resource) -> Cache:
    """A cache of all types that are read here, with these objects."""
    types = (DynamoGraphDeployment, PodCliqueSet, PodClique, PodCliqueScalingGroup, Queue)
    return a_cache(types, objects)


def woken(watches: Iterable[Watches], changed: Resource) -> list[Key]:
    return [key for each in watches if isinstance(changed, each.type_) for key in each.map_to(changed)]


def test_without_a_set_nothing_is_in_use() -> None:
    assert {} == live_templates(GRAPH, cache())
    assert {} == live_templates(GRAPH, cache(a_set(deletion_timestamp="2026-01-01T00:00:00Z")))


def test_sizes_are_in_use_once_something_lives_and_minima_and_restarts_at_once() -> None:
    rest = {name: LiveTemplate(None, 1, scheduler="") for name in ("w-ldr", "w-wkr")}
    of_set, group = LiveTemplate(topology=ZONE), LiveTemplate(topology=RACK)
    expected = {"": of_set, "f": LiveTemplate(None, 1, "r1", "kai-scheduler"), **rest, "w": group}
    assert expected == live_templates(GRAPH, cache(a_set()))
    living = (
        PodClique(Metadata("chat-0-f", "prod"), ReplicasSpec(9)),
        PodCliqueScalingGroup(Metadata("chat-0-w", "prod"), ReplicasSpec(9)),
    )
    expected |= {"f": LiveTemplate(4, 1, "r1", "kai-scheduler"), "w": LiveTemplate(2, topology=RACK)}
    assert expected == live_templates(GRAPH, cache(a_set(), *living))


def test_a_service_is_run_by_a_clique_or_by_a_group() -> None:
    clique = PodClique(Metadata("chat-0-f", "prod"))
    found = grove_members(GRAPH, cache(clique))
    assert {
        "F": GroveMember("chat-0-f", is_group=False, live=clique, desired=5),
        "W": GroveMember("chat-0-w", is_group=True, live=None, desired=None),
    } == found


@pytest.mark.parametrize(
    ("live", "observed"),
    [
        ([], ServiceObserved(restart="r1")),
        ([1], ServiceObserved(exists=True, restart="r1", is_current=False)),
        ([2], ServiceObserved(exists=True, restart="r1", is_ready=True)),
    ],
)
def test_a_clique_is_at_zero_once_grove_has_observed_that(live: list[int], observed: ServiceObserved) -> None:
    metadata = Metadata("chat-0-f", "prod", generation=2)
    cliques = [PodClique(metadata, ReplicasSpec(0), PodCliqueStatus(generation)) for generation in live]
    assert observed == service_snapshot(on_provider(GRAPH, GROVE), cache(a_set(), *cliques))["F"]


@pytest.mark.parametrize("type_", [PodClique, PodCliqueScalingGroup])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chat-0-w", [Key("prod", "the-graph")]),
        ("chat-0-w-0-w-ldr", [Key("prod", "the-graph")]),
        ("other-0-w", []),
        ("chat", []),
    ],
)
def test_what_grove_made_wakes_the_graph_of_its_set(
    type_: type[Resource], name: str, expected: list[Key]
) -> None:
    watches = grove_watches(cache(a_set()))
    assert expected == woken(watches, type_(Metadata(name, "prod")))


def test_a_queue_wakes_the_graphs_that_wait_in_it() -> None:
    annotations = {"nvidia.com/kai-scheduler-queue": "research"}
    queued = a_graph({"w": a_service()}, "queued", metadata={"annotations": annotations})
    graphs = (
        a_graph({"w": a_service()}, "new"),
        on_provider(a_graph({"w": a_service()}, "on-grove"), GROVE),
        on_provider(a_graph({"w": a_service()}, "elsewhere"), COMPONENT),
        queued,
    )
    watches = grove_watches(cache(*graphs))
    assert [Key("prod", "new"), Key("prod", "on-grove")] == woken(watches, Queue(Metadata("dynamo")))
    assert [Key("prod", "queued")] == woken(watches, Queue(Metadata("research")))


def test_a_pull_secret_wakes_the_graphs_on_grove_and_those_whose_provider_is_not_recorded_yet() -> None:
    graphs = (
        a_graph({"w": a_service()}, "new"),
        on_provider(a_graph({"w": a_service()}, "on-grove"), GROVE),
        on_provider(a_graph({"w": a_service()}, "elsewhere"), COMPONENT),
    )
    woken_by = woken(grove_watches(cache(*graphs)), PullSecret(Metadata("reg", "prod")))
    assert [Key("prod", "new"), Key("prod", "on-grove")] == woken_by
