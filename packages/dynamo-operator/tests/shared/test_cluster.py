"""Optional APIs that are installed and that the operator may not use, as facts; registries of images."""

from typing import Any

import pytest

from dynamo_operator.component.read import withheld
from dynamo_operator.graph.warnings import ClusterContext, context_problems
from dynamo_operator.shared.cluster import (
    GROVE,
    INFERENCE_POOL,
    LEADER_WORKER_SET,
    OPTIONAL_APIS,
    LeaderWorkerSet,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodGroup,
    granted_by,
    registry_of_credential,
    registry_of_image,
    withheld_text,
)
from kube_runtime.cache.store import Cache, Store
from kube_runtime.cache.watch import Started, Synced
from kube_runtime.types.meta import Resource
from specs import a_graph, a_service


def a_cache(forbidden: tuple[type[Resource], ...], served: tuple[type[Resource], ...]) -> Cache:
    stores: dict[type[Resource], Store[Any]] = {
        each: Store(each)
        for each in (LeaderWorkerSet, PodGroup, PodCliqueSet, PodClique, PodCliqueScalingGroup)
    }
    for each in forbidden:
        stores[each].mark_kind_forbidden()
    for each in served:
        stores[each].on_watch_event(Started())
        stores[each].on_watch_event(Synced())
    return Cache(stores.values())


def test_what_is_installed_and_forbidden_is_withheld_and_what_is_absent_is_not() -> None:
    assert {} == withheld(a_cache((), ()))
    assert {} == withheld(a_cache((), (LeaderWorkerSet, PodGroup)))
    assert {} == withheld(a_cache((LeaderWorkerSet,), ()))  # without Volcano it is not used
    found = withheld(a_cache((LeaderWorkerSet, PodCliqueSet, PodClique, PodCliqueScalingGroup), (PodGroup,)))
    assert {GROVE, LEADER_WORKER_SET} == set(found)
    assert (LeaderWorkerSet.KIND,) == found[LEADER_WORKER_SET]


def test_what_was_read_before_the_right_was_withdrawn_is_served_and_not_withheld() -> None:
    cache = a_cache((), (LeaderWorkerSet, PodGroup))
    cache.store(LeaderWorkerSet).mark_kind_forbidden()
    assert cache.forbids(LeaderWorkerSet)
    assert cache.serves(LeaderWorkerSet)
    assert {} == withheld(cache)


def test_admission_says_that_pools_are_forbidden_and_not_that_they_are_not_installed() -> None:
    graph = a_graph({"e": a_service("epp")})
    withheld_pools = withheld_text({INFERENCE_POOL: INFERENCE_POOL.kinds})
    [found] = context_problems(graph, ClusterContext(pools_served=False, pools_withheld=withheld_pools))
    assert "may not read inferencepools.inference.networking.k8s.io" in found.message
    assert "install" not in found.message.replace("is installed", "")


def test_the_text_names_the_project_the_kinds_and_the_value_that_grants_them() -> None:
    for api in OPTIONAL_APIS:
        text = withheld_text({api: api.kinds})
        assert text.startswith(f"{api.title} is installed, but the operator may not read ")
        assert all(str(each) in text for each in api.kinds)
        assert f"dynamo-operator.optionalApis.{api.key}=true" in text
        assert all(api.value in granted_by(each) for each in api.kinds)


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("nvcr.io/nvidia/vllm:1", "nvcr.io"),
        ("registry.example.com:5000/a/b@sha256:0", "registry.example.com:5000"),
        ("localhost/a", "localhost"),
        ("localhost:5000/a", "localhost:5000"),
        ("NVCR.io/a", "nvcr.io"),
        ("busybox", "docker.io"),
        ("busybox:1.37", "docker.io"),
        ("library/busybox", "docker.io"),
        ("docker.io/lib/y:1", "docker.io"),
        ("index.docker.io/lib/y", "docker.io"),
    ],
)
def test_an_image_names_its_registry(image: str, registry: str) -> None:
    assert registry == registry_of_image(image)


@pytest.mark.parametrize(
    ("server", "registry"),
    [
        ("nvcr.io", "nvcr.io"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("registry-1.docker.io", "docker.io"),
        ("registry.example.com:5000/path", "registry.example.com:5000"),
        ("http://localhost:5000", "localhost:5000"),
    ],
)
def test_a_credential_is_for_one_registry(server: str, registry: str) -> None:
    assert registry == registry_of_credential(server)
