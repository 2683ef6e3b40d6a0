"""The cache keeps the content of our own children, within bounds, and little of anything else."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_operator.component.validate import MAX_GROUPS_BYTES
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.scope import informers
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodGroup
from dynamo_operator.shared.transforms import NAMESPACE_BYTES, OWNED_BYTES, BoundedContent
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import BoundedStatuses, Store
from kube_runtime.cache.watch import Changed, Removed
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Condition, Key, Metadata, OwnerReference, Resource, Status, status_of

GRAPH = "uid-of-the-graph"
FAT = msgspec.Raw(b'{"a":"' + b"x" * 1_000_000 + b'"}')
SMALL = msgspec.Raw(b'{"a":"b"}')
LABELS = {f"example.com/{number:04}": "x" for number in range(1000)}
LABEL_BYTES = 128 * len(LABELS)
CHILDREN: list[type[Resource]] = [
    informer.type_
    for informer in informers(RenderSettings(), with_legacy_kinds=True)
    if isinstance(informer.store._transform, BoundedContent)
]
PER_REPLICA = (LeaderWorkerSet, PodGroup)


class World:
    """The stores of an operator, with one graph in namespace lab."""

    def __init__(self) -> None:
        self.informers: dict[type, Informer[Any]] = {
            informer.type_: informer for informer in informers(RenderSettings(), with_legacy_kinds=True)
        }
        self.store: Store[ConfigMap] = self.informers[ConfigMap].store

    def with_graph(self, uid: str = GRAPH, namespace: str = "lab") -> "World":
        graph = DynamoGraphDeployment(Metadata(f"chat-{uid}", namespace, uid, "1"))
        self.informers[DynamoGraphDeployment].store.on_watch_event(Changed(graph))
        return self

    def keeps(self, type_: type[Resource], name: str, owner: str, namespace: str = "lab") -> bool:
        """Whether the content of a child with many labels is kept."""
        metadata = replace(a_config_map(name, SMALL, owner, namespace=namespace).metadata, labels=LABELS)
        self.informers[type_].store.on_watch_event(Changed(type_(metadata=metadata)))
        kept = self.informers[type_].store.shown.get(Key(namespace, name))
        return kept is not None and kept.metadata.labels == LABELS

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


@pytest.mark.parametrize("type_", CHILDREN, ids=lambda type_: type_.__name__)
def test_what_is_kept_for_one_owner_is_bounded(type_: type[Resource]) -> None:
    world, most = World().with_graph(), MAX_GROUPS_BYTES if type_ in PER_REPLICA else OWNED_BYTES
    kept = sum(world.keeps(type_, f"fat-{number}", GRAPH) for number in range(1000))
    assert most / 2 < kept * LABEL_BYTES < most


def test_what_is_kept_in_a_namespace_is_bounded_however_many_owners_there_are() -> None:
    world, kept = World().with_graph("other", "other"), 0
    for graph in range(60):
        world.with_graph(str(graph))
        for type_ in CHILDREN:
            kept += sum(world.keeps(type_, f"{graph}-{number}", str(graph)) for number in range(3))
    assert NAMESPACE_BYTES < kept * LABEL_BYTES < NAMESPACE_BYTES + MAX_GROUPS_BYTES
    assert all(world.keeps(type_, "ours", "other", "other") for type_ in CHILDREN)


def test_what_is_gone_makes_room() -> None:
    world = World().with_graph()
    for _ in range(2):
        for number in range(4):
            world.put(f"fat-{number}", FAT, GRAPH)
        for number in range(4):
            world.store.on_watch_event(Removed(Key("lab", f"fat-{number}"), f"fat-{number}"))
        transform = world.store._transform
        assert isinstance(transform, BoundedContent)
        assert not transform.taken
    assert SMALL == world.put("ours", SMALL, GRAPH).data


def test_what_has_our_marker_counts_for_its_namespace() -> None:
    world = World()
    marker = {"nvidia.com/managed-by": "dynamo-operator"}
    for number in range(300):
        world.put(f"fat-{number}", FAT, labels=marker)
    assert world.bytes < OWNED_BYTES + 300 * 400
    assert SMALL == world.put("ours", SMALL, labels=marker, namespace="other").data


def test_of_metadata_that_anyone_may_fill_our_own_are_kept() -> None:
    metadata = {part: LABELS | {"nvidia.com/a": "kept"} for part in ("labels", "annotations")}
    kept = World().put("fat", SMALL, **metadata).metadata
    assert ("kept", "kept") == (kept.labels["nvidia.com/a"], kept.annotations["nvidia.com/a"])


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
        labels = {"nvidia.com/dynamo-component": "chat"}
        world.store.wrote(flight, replace(written, metadata=replace(written.metadata, labels=labels)))
    kept = world.store.shown.get(written.key)
    assert kept is not None
    assert SMALL == kept.data


OURS: list[type[Resource]] = [
    informer.type_
    for informer in informers(RenderSettings(), with_legacy_kinds=True)
    if isinstance(informer.store._transform, BoundedStatuses)
]


@pytest.mark.parametrize("type_", [it for it in OURS if isinstance(getattr(it(), "status", None), Status)])
def test_fat_statuses_of_a_namespace_are_bounded_together(type_: type[Resource]) -> None:
    store = World().informers[type_].store
    status = status_of(type_()).with_conditions([Condition("X", "True", "", "x" * 200_000)])
    for number in range(400):
        metadata = Metadata(f"fat-{number}", "lab", f"uid-{number}", "1")
        store.on_watch_event(Changed(replace(type_(), metadata=metadata, status=status)))
    kept = sum(len(msgspec.json.encode(it)) for it in store.shown.list())
    assert NAMESPACE_BYTES - 250_000 < kept < NAMESPACE_BYTES
    assert "statuses in namespace lab take more than" in str(store.broken[Key("lab", "fat-399")])
    store.on_watch_event(Removed(Key("lab", "fat-0"), "uid-0"))
    fitting = [Metadata("new", "lab", "new", "1"), Metadata("new", "den", "new", "1")]
    for metadata in fitting:
        store.on_watch_event(Changed(replace(type_(), metadata=metadata, status=status)))
    assert all(store.shown.get(Key(it.namespace, it.name)) is not None for it in fitting)
