"""What is remembered of pods, how they are found, and whom they wake."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.diagnosis import is_ready
from dynamo_operator.component.read import (
    SELECTOR,
    PodIndex,
    component_pod_watch,
    hastens_component,
    reduced_pod,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import GROVE, on_provider
from dynamo_operator.shared.cluster import LeaderWorkerSet
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache, Change, Store
from kube_runtime.cache.watch import Changed, Removed
from kube_runtime.types.kinds import Deployment, Pod
from kube_runtime.types.meta import Key, Metadata, Object, OwnerReference, Resource, Selector
from simulated.caches import a_store
from specs import a_graph, a_service

LABELS = {
    "nvidia.com/dynamo-component": "Decode",
    "nvidia.com/dynamo-graph-deployment-name": "the-graph",
    "nvidia.com/selector": "the-graph-decode",
}
SET_NAME = "leaderworkerset.sigs.k8s.io/name"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
GRAPH = on_provider(a_graph({"Decode": a_service()}, "the-graph"), GROVE)
NAMESPACE = GRAPH.metadata.namespace


def a_pod(name: str = "x-0", status: Object | None = None, **more: Any) -> Pod:
    labels = {**LABELS, "user": "says", **more.pop("labels", {})}
    metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "labels": labels, **more}
    body = {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status or {}}
    return msgspec.convert(body, Pod)


def stores(*objects: Resource) -> dict[type[Resource], Store[Any]]:
    types = (Pod, Deployment, LeaderWorkerSet, DynamoGraphDeployment)
    return {each: a_store(each, objects) for each in types}


def woken(watch: Watches, pod: Pod) -> list[Key]:
    keys: Iterable[Key] = watch.map_to(pod)
    return list(keys)


def owned(type_: type[Resource], name: str, owner: str) -> Resource:
    kind = DynamoComponentDeployment.KIND.name
    reference = OwnerReference(kind, owner, "u", "nvidia.com/v1alpha1", controller=True)
    return type_(metadata=Metadata(name, NAMESPACE, owner_references=(reference,)))


def test_a_ready_pod_is_cached_without_container_statuses_and_annotations() -> None:
    status = {
        "phase": "Running",
        "conditions": [READY, {"type": "Initialized", "status": "True"}],
        "containerStatuses": [{"name": "main", "ready": True}],
    }
    found = reduced_pod(a_pod(status=status, annotations={"long": "text"}))
    assert is_ready(found)
    assert ((), {}) == (found.status.container_statuses, found.metadata.annotations)
    assert LABELS == found.metadata.labels


def test_a_pod_that_is_not_ready_is_cached_with_its_container_statuses() -> None:
    status = {
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}],
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "r"}}}],
    }
    pod = a_pod(status=status)
    found = reduced_pod(pod)
    assert pod.status.container_statuses == found.status.container_statuses
    assert ["Ready"] == [each.type for each in found.status.conditions]


def test_what_is_kept_is_still_selected_by_the_watch() -> None:
    assert Selector(labels=SELECTOR).covers(reduced_pod(a_pod()), is_watched=True)


def test_pods_are_found_by_workload_and_by_service_until_they_go() -> None:
    group = a_pod("w-0", labels={SET_NAME: "the-graph-decode-0"})
    found = stores(a_pod(), group)
    index = PodIndex(Cache(found.values()))
    assert ["x-0"] == names(index.of_workload(NAMESPACE, "the-graph-decode"))
    assert ["w-0"] == names(index.of_workload(NAMESPACE, "the-graph-decode-0"))
    assert ["w-0", "x-0"] == names(index.of_service(NAMESPACE, "the-graph", "Decode"))
    assert [] == names(index.of_service(NAMESPACE, "the-graph", "Prefill"))
    found[Pod].on_watch_event(Changed(a_pod(labels={"nvidia.com/selector": "other"}, resourceVersion="2")))
    assert [] == names(index.of_workload(NAMESPACE, "the-graph-decode"))
    assert ["x-0"] == names(index.of_workload(NAMESPACE, "other"))
    found[Pod].on_watch_event(Removed(Key(NAMESPACE, "x-0"), "x-0"))
    assert ["w-0"] == names(index.of_service(NAMESPACE, "the-graph", "Decode"))


def names(pods: Iterable[Pod]) -> list[str]:
    return sorted(each.metadata.name for each in pods)


def test_a_pod_wakes_the_component_of_its_workload() -> None:
    cache = Cache(
        stores(
            owned(Deployment, "the-graph-decode", "one"),
            owned(LeaderWorkerSet, "the-graph-decode-0", "several"),
        ).values()
    )
    watch = component_pod_watch(cache)
    assert [Key(NAMESPACE, "one")] == woken(watch, a_pod())
    group = a_pod(labels={SET_NAME: "the-graph-decode-0"})
    assert [Key(NAMESPACE, "several")] == woken(watch, group)
    assert [] == woken(watch, a_pod(labels={"nvidia.com/selector": "somebody-elses"}))


@pytest.mark.parametrize(("generation", "observed", "hastens"), [(1, 0, False), (1, 1, True), (2, 0, True)])
def test_only_what_may_end_its_wait_hastens_a_component(
    generation: int, observed: int, *, hastens: bool
) -> None:
    def a_deployment(generation: int, **status: int) -> Deployment:
        body = {
            "metadata": {"name": "w", "generation": generation},
            "spec": {"replicas": 1},
            "status": status,
        }
        return msgspec.json.decode(msgspec.json.encode(body), type=Deployment)

    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    after = a_deployment(generation, observedGeneration=observed, **counts)
    changes: list[Change[Any]] = [Change(a_deployment(1), after), Change(after, None), Change(None, a_pod())]
    assert [hastens, True, False] == list(map(hastens_component, changes))
