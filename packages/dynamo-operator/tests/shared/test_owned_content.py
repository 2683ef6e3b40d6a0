"""The cache keeps the content of our own children, within bounds, and little of anything else."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.scope import informers
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import PullSecret
from dynamo_operator.shared.transforms import OWNED_BYTES, registries_only
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Store
from kube_runtime.cache.watch import Changed, Removed
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Key, Metadata, OwnerReference

GRAPH = "uid-of-the-graph"
FAT = msgspec.Raw(b'{"a":"' + b"x" * 1_000_000 + b'"}')
SMALL = msgspec.Raw(b'{"a":"b"}')


class World:
    """The stores of an operator, with one graph in namespace lab."""

    def __init__(self) -> None:
        self.informers: dict[type, Informer[Any]] = {
            informer.type_: informer for informer in informers(RenderSettings())
        }
        self.store: Store[ConfigMap] = self.informers[ConfigMap].store

    def with_graph(self) -> "World":
        graph = DynamoGraphDeployment(Metadata("chat", "lab", GRAPH, "1"))
        self.informers[DynamoGraphDeployment].store.on_watch_event(Changed(graph))
        return self

    def put(self, name: str, data: msgspec.Raw, *owners: str, **metadata: Any) -> ConfigMap:
        """Bring a ConfigMap through the watch, and return what the cache keeps of it."""
        config_map = a_config_map(name, data, *owners, **metadata)
        self.store.on_watch_event(Changed(config_map))
        kept = self.store.shown.get(config_map.key)
        assert kept is not None
        return kept

    @property
    def bytes(self) -> int:
        """Size of all that the cache keeps of ConfigMaps."""
        return sum(len(msgspec.json.encode(it)) for it in self.store.shown.list())


def a_config_map(name: str, data: msgspec.Raw, *owners: str, **metadata: Any) -> ConfigMap:
    references = tuple(
        OwnerReference("DynamoGraphDeployment", "chat", uid, "nvidia.com/v1alpha1", controller=True)
        for uid in owners
    )
    given = {"namespace": "lab", "resource_version": "1", **metadata}
    return ConfigMap(Metadata(name, owner_references=references, uid=name, **given), data)


def test_the_content_of_a_child_is_kept() -> None:
    assert SMALL == World().with_graph().put("ours", SMALL, GRAPH).data


@pytest.mark.parametrize(
    ("owners", "metadata"),
    [((), {}), (("uid-of-nothing",), {}), ((GRAPH,), {"namespace": "elsewhere"})],
    ids=["no owner", "forged owner", "owner of another namespace"],
)
def test_of_what_is_not_a_child_only_metadata_are_kept(
    owners: tuple[str, ...], metadata: dict[str, str]
) -> None:
    world = World().with_graph()
    for number in range(300):
        assert b"{}" == bytes(world.put(f"fat-{number}", FAT, *owners, **metadata).data)
    assert world.bytes < 300 * 400


def test_what_is_kept_for_one_owner_is_bounded() -> None:
    world = World().with_graph()
    for number in range(300):
        world.put(f"fat-{number}", FAT, GRAPH)
    assert world.bytes < OWNED_BYTES + 300 * 400


def test_what_is_gone_makes_room() -> None:
    world = World().with_graph()
    for _ in range(2):
        for number in range(4):
            world.put(f"fat-{number}", FAT, GRAPH)
        for number in range(4):
            world.store.on_watch_event(Removed(Key("lab", f"fat-{number}"), f"fat-{number}"))
    assert SMALL == world.put("ours", SMALL, GRAPH).data


def test_what_has_our_marker_counts_for_its_namespace() -> None:
    world = World()
    marker = {"nvidia.com/managed-by": "dynamo-operator"}
    for number in range(300):
        world.put(f"fat-{number}", FAT, labels=marker)
    assert world.bytes < OWNED_BYTES + 300 * 400
    assert SMALL == world.put("ours", SMALL, labels=marker, namespace="other").data


def test_metadata_that_anyone_may_fill_are_cut() -> None:
    world = World()
    metadata = {
        "labels": {f"l{number}": "x" for number in range(10_000)} | {"nvidia.com/a": "kept"},
        "annotations": {"long": "x" * 200_000, "short": "kept"},
        "finalizers": tuple(f"example.com/{number}" for number in range(10_000)),
    }
    kept = world.put("fat", SMALL, *map(str, range(10_000)), **metadata).metadata
    assert len(msgspec.json.encode(kept)) < 10_000
    assert ("kept", "kept") == (kept.labels["nvidia.com/a"], kept.annotations["short"])


def test_children_are_listed_after_their_owners() -> None:
    world = World()
    after = world.informers[ConfigMap].after
    assert world.informers[DynamoGraphDeployment] in after
    assert not any(informer.after for informer in after)


async def test_an_owner_that_is_seen_late_gets_the_content_with_the_next_write() -> None:
    world = World()
    assert b"{}" == bytes(world.put("ours", SMALL, GRAPH).data)
    world.with_graph()
    written = a_config_map("ours", SMALL, GRAPH)  # an apply that changed nothing
    with world.store.writing(written.key) as flight:
        world.store.wrote(flight, replace(written, metadata=labelled(written.metadata)))
    kept = world.store.shown.get(written.key)
    assert kept is not None
    assert SMALL == kept.data


def labelled(metadata: Metadata) -> Metadata:
    return replace(metadata, labels={"nvidia.com/dynamo-component": "chat"})


def test_the_registries_of_a_pull_secret_are_bounded() -> None:
    auths = msgspec.json.encode({"auths": {f"r{number}.example.com": {} for number in range(5000)}})
    encoded = msgspec.json.decode(msgspec.json.encode(auths))
    kept = registries_only(PullSecret(Metadata("s"), {".dockerconfigjson": encoded}))
    assert 64 == len(kept.data)
