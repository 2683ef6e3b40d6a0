"""Pods on their way out: whom they wake, and what must wait for them."""

from datetime import UTC, datetime
from itertools import chain
from typing import Any

import msgspec
import pytest

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.read import PodIndex
from dynamo_operator.component.service import component_object
from dynamo_operator.features.rollouts.feature import observed_revisions
from dynamo_operator.features.rollouts.plan import Rollout, plan_rollout
from dynamo_operator.features.rollouts.revisions import Revisions
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.read import components_of, leaving_pod_watch, leaving_pods
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.report import earliest
from kube_runtime.cache.store import Cache, Store
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Key, Object, Resource
from simulated.caches import listed
from specs import IMAGE, a_graph, a_service

SETTINGS = RenderSettings()
OWNER = {"kind": "DynamoGraphDeployment", "name": "chat", "uid": "uid", "controller": True}
RECREATE = {"nvidia.com/deployment-strategy": "Recreate"}
MANAGED = {"uid": "uid", "annotations": {"nvidia.com/worker-rollout": "managed"}}
GRAPH = a_graph({"W": a_service(annotations=RECREATE)}, metadata=MANAGED)


def component(**changes: Any) -> DynamoComponentDeployment:
    """W under its plain name, as it was made when the graph rolled natively; with nothing left of it."""
    body = component_object(GRAPH, "W", SETTINGS)
    body["metadata"] |= {"ownerReferences": [OWNER]}
    body["spec"] |= {"replicas": 0, **changes}
    counts = {"componentKind": "Deployment", "componentName": "chat-w", "replicas": 0, "updatedReplicas": 0}
    return msgspec.convert(
        {**body, "status": {"conditions": [], "service": counts}}, DynamoComponentDeployment
    )


def pod(**metadata: Any) -> Pod:
    found: Object = {
        "name": "p",
        "namespace": "prod",
        "labels": {"nvidia.com/selector": "chat-w", "nvidia.com/dynamo-component": "W"},
        **metadata,
    }
    return msgspec.convert({"metadata": found}, Pod)


GOING = pod(deletionTimestamp="2026-01-01T00:00:00Z")


def a_cache(*objects: Resource) -> tuple[Cache, PodIndex]:
    types: tuple[type[Resource], ...] = (DynamoGraphDeployment, DynamoComponentDeployment, Pod)
    stores: list[Store[Any]] = [Store(each) for each in types]
    cache = Cache(stores)
    index = PodIndex(cache)
    for store, type_ in zip(stores, types, strict=True):
        listed(store, type_, objects)
    return cache, index


def observed(graph: DynamoGraphDeployment, cache: Cache) -> Revisions:
    components = chain.from_iterable(components_of(graph, cache).values())
    return observed_revisions(graph, components, SETTINGS)


def next_rollout(graph: DynamoGraphDeployment, found: Revisions, index: PodIndex) -> Rollout:
    leaving = leaving_pods((member.component for member in found.old), index)
    return plan_rollout(graph, found, datetime.now(UTC), leaving=leaving)


@pytest.mark.parametrize(
    ("live", "differs"),
    [
        ({}, False),
        ({"annotations": {"nvidia.com/restartAt": "one"}}, False),
        ({"envFromSecret": "old"}, True),
        ({"extraPodSpec": {"mainContainer": {"image": IMAGE, "args": ["old"]}}}, True),
    ],
)
def test_workers_that_say_what_the_graph_says_are_adopted(live: Object, differs: bool) -> None:
    graph = a_graph({"W": a_service()}, metadata=MANAGED)
    found = observed(graph, a_cache(component(**{"annotations": {}, **live}))[0])
    assert (differs, differs) == (found.is_rolling_out, bool(found.target.suffix))


@pytest.mark.parametrize("each", [GOING, pod()], ids=["on its way out", "vanished with its node"])
def test_a_pod_of_a_component_that_is_to_have_none_wakes_the_managed_graph(each: Pod) -> None:
    cache, _ = a_cache(GRAPH, component(annotations={}))
    assert [Key("prod", "chat")] == list(leaving_pod_watch(cache).map_to(each))


def test_pods_of_components_that_serve_and_of_native_graphs_wake_no_graph() -> None:
    cache, _ = a_cache(GRAPH, component(replicas=1))
    assert [] == list(leaving_pod_watch(cache).map_to(GOING))
    native = a_graph({"W": a_service(annotations=RECREATE)}, metadata={"uid": "uid"})
    cache, _ = a_cache(native, component())
    assert [] == list(leaving_pod_watch(cache).map_to(GOING))


@pytest.mark.parametrize(("pods", "expected"), [((GOING,), False), ((), True)])
def test_an_old_generation_is_gone_when_its_pods_are_gone(pods: tuple[Pod, ...], expected: bool) -> None:
    rolling = a_graph({"W": a_service(replicas=0)}, metadata=MANAGED)
    cache, index = a_cache(component(envFromSecret="old", annotations={}), *pods)
    first = observed(rolling, cache)
    wanted = component_object(rolling, "W", SETTINGS, first.target)
    wanted["metadata"] |= {"ownerReferences": [OWNER]}
    new = msgspec.convert({**wanted, "status": {"conditions": []}}, DynamoComponentDeployment)
    cache, index = a_cache(component(envFromSecret="old", annotations={}), new, *pods)
    found = observed(rolling, cache)
    rollout = next_rollout(rolling, found, index)
    assert expected == (not rollout.spared)
    assert expected == (rollout.through == ("W",))


def test_a_rollout_that_may_go_on_by_itself_is_looked_at_in_time() -> None:
    assert Result(5) == earliest(DONE, 5)
    assert Result(5) == earliest(Result(60), 5)
    assert Result(1) == earliest(Result(1), 5)
    assert DONE == earliest(DONE, 0)
