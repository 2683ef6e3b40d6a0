"""Finding objects, and what is refused."""

import asyncio
import weakref

import msgspec
import pytest
from msgspec.structs import replace

from kube_runtime.apply.writer import Writer
from kube_runtime.cache.store import OWN_WRITE_SECONDS, Cache, Change, Store
from kube_runtime.cache.watch import Changed, Removed
from kube_runtime.errors import Conflict, Invalid, NotFound, Unreachable
from kube_runtime.leases import LeadershipLost
from kube_runtime.types.kinds import Service
from kube_runtime.types.meta import Key, Metadata, OwnerReference, Resource, Selector
from simulated.caches import a_store
from simulated.gadget import GADGETS, NAMESPACE, Gadget, GadgetSpec, gadget, key
from simulated.server import NO_ANSWER, Fault
from simulated.translation import SameInBoth
from simulated.world import World, a_world, settle
from simulated.writing import LeaseFor, stays, write

pytestmark = pytest.mark.looptime


def a_gadget(
    name: str, *, namespace: str = "default", version: str = "1", owners: tuple[str, ...] = ()
) -> Gadget:
    references = tuple(OwnerReference(kind="Owner", name="o", uid=uid) for uid in owners)
    metadata = Metadata(
        name=name,
        namespace=namespace,
        uid=f"uid-of-{name}",
        resource_version=version,
        owner_references=references,
    )
    return Gadget(metadata=metadata, spec=GadgetSpec(size=1))


def a_cache(*gadgets: Gadget) -> tuple[Cache, Store[Gadget]]:
    store = a_store(Gadget, gadgets)
    return Cache([store]), store


def test_objects_are_found_by_key_and_by_namespace() -> None:
    a, b = a_gadget("a", namespace="one"), a_gadget("b", namespace="two")
    cache, _ = a_cache(a, b)
    assert a is cache.get(Gadget, Key("one", "a"))
    assert cache.get(Gadget, Key("one", "b")) is None
    assert [b] == list(cache.list(Gadget, "two"))
    assert [] == list(cache.list(Gadget, "three"))
    assert [a, b] == list(cache.list(Gadget))


def test_a_namespace_has_objects_until_the_last_one_is_removed() -> None:
    a, b = a_gadget("a"), a_gadget("b")
    cache, store = a_cache(a, b)
    store.on_watch_event(Removed(a.key, a.metadata.uid))
    assert cache.has_any(Gadget, a.metadata.namespace)
    store.on_watch_event(Removed(b.key, b.metadata.uid))
    assert not cache.has_any(Gadget, a.metadata.namespace)


def test_objects_are_found_by_each_of_their_owners() -> None:
    shared, single = a_gadget("shared", owners=("x", "y")), a_gadget("single", owners=("x",))
    cache, store = a_cache(shared, single)
    assert [shared, single] == cache.owned_by("x", [Gadget])
    assert [shared] == cache.owned_by("y", [Gadget])
    left = a_gadget("shared", version="2", owners=("y",))
    store.on_watch_event(Changed(left))
    assert [single] == cache.owned_by("x", [Gadget])
    assert [left] == cache.owned_by("y", [Gadget])
    store.on_watch_event(Removed(left.key, left.metadata.uid))
    assert [] == cache.owned_by("y", [Gadget])


def test_a_reader_may_iterate_while_the_cache_changes() -> None:
    cache, store = a_cache(a_gadget("a"), a_gadget("b"))
    seen = []
    for each in cache.list(Gadget):
        seen.append(each.metadata.name)
        store.on_watch_event(Changed(a_gadget(f"{each.metadata.name}-child")))
    assert ["a", "b"] == seen


def test_a_type_that_is_not_watched_never_looks_empty_and_another_is_watched_once() -> None:
    cache, store = a_cache()
    with pytest.raises(LookupError, match="Service is not watched"):
        cache.get(Service, Key("default", "a"))
    with pytest.raises(LookupError, match="Service is not watched"):
        cache.owned_by("x", [Gadget, Service])
    assert not cache.serves(Service)
    assert not cache.holds(Service)
    assert cache.serves(Gadget)
    with pytest.raises(ValueError, match="Gadget is watched twice"):
        cache.add(store)


def test_a_late_subscriber_gets_the_existing_objects() -> None:
    gadget = a_gadget("a")
    cache, _ = a_cache(gadget)
    seen: list[Change[Gadget]] = []
    cache.subscribe(Gadget, seen.append)
    assert [Change(None, gadget, initial=True)] == seen


def test_who_asked_gets_the_uids_of_objects_that_are_gone() -> None:
    gadget, deleted = a_gadget("a"), list[str]()
    cache, store = a_cache(gadget)
    cache.subscribe_deleted(Gadget, deleted.append)
    assert [] == deleted
    successor = Gadget(replace(gadget.metadata, uid="2", resource_version="2"))
    store.on_watch_event(Changed(successor))
    store.on_watch_event(Removed(gadget.key, "2"))
    assert [gadget.metadata.uid, "2"] == deleted


def test_an_object_is_reduced_before_it_is_stored() -> None:
    def without_spec(gadget: Gadget) -> Gadget:
        return Gadget(metadata=gadget.metadata)

    store = Store(Gadget, transform=without_spec)
    store.on_watch_event(Changed(a_gadget("a")))
    kept = store.shown.get(Key("default", "a"))
    assert kept is not None
    assert GadgetSpec() == kept.spec


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("", {}, True),
        ("a=1", {"a": "1"}, True),
        ("a==1", {"a": "2"}, False),
        ("a!=1", {}, True),
        ("a!=1", {"a": "1"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("example.com/a=1, b", {"example.com/a": "1", "b": "2"}, True),
        ("a=1,b", {"a": "1"}, False),
        ("a=", {"a": ""}, True),
    ],
)
def test_a_label_selector_says_what_its_watch_will_bring(
    selector: str, labels: dict[str, str], expected: bool
) -> None:
    resource = Resource(metadata=Metadata(labels=labels))
    assert expected is Selector(labels=selector).covers(resource, is_watched=False)


@pytest.mark.parametrize("selector", ["a in (1,2)", "a notin (b)", "a>1 b", ",", "=a"])
def test_a_label_selector_that_is_not_understood_is_refused(selector: str) -> None:
    with pytest.raises(ValueError, match="unsupported label selector"):
        Selector(labels=selector)


def test_a_namespace_and_a_field_selector_bound_what_a_watch_will_bring() -> None:
    resource = Resource(metadata=Metadata(namespace="one"))
    assert Selector(namespace="one").covers(resource, is_watched=False)
    assert not Selector(namespace="two").covers(resource, is_watched=False)
    assert not Selector(fields="type=x").covers(resource, is_watched=False)
    assert Selector(fields="type=x").covers(resource, is_watched=True)


def test_what_is_derived_from_all_objects_is_computed_when_one_has_changed_and_only_then() -> None:
    cache, store = a_cache(a_gadget("a"))
    looks: list[int] = []

    def names() -> tuple[str, ...]:
        looks.append(1)
        return tuple(sorted(each.metadata.name for each in cache.list(Gadget)))

    def derived() -> tuple[str, ...]:
        return cache.derived("names", (Gadget,), names)

    assert (("a",), ("a",)) == (derived(), derived())
    store.on_watch_event(Changed(a_gadget("a", version="2")))
    assert ("a",) == derived()
    assert 1 == len(looks), "another version alone does not count as a change"
    store.on_watch_event(Changed(a_gadget("b")))
    assert ("a", "b") == derived()
    store.on_watch_event(Removed(Key("default", "a"), "uid-of-a"))
    assert ("b",) == derived()


def test_what_was_derived_from_objects_that_have_changed_is_not_kept() -> None:
    class Value:
        """An object whose garbage collection can be observed."""

    cache, store = a_cache()
    names = [f"namespace-{number}" for number in range(100)]
    kept = [weakref.ref(cache.derived(each, (Gadget,), Value)) for each in names]
    assert all(each() for each in kept)
    store.on_watch_event(Changed(a_gadget("b")))
    cache.derived(names[0], (Gadget,), Value)
    assert not any(each() for each in kept)


def test_who_names_an_owner_in_another_namespace_is_not_among_what_it_owns() -> None:
    own = a_gadget("a", namespace="one", owners=("x",))
    cache, _ = a_cache(own, a_gadget("b", namespace="two", owners=("x",)))
    assert [own] == cache.owned_by("x", [Gadget], "one")


async def taken_and_not_answered(world: World) -> asyncio.Task[Gadget]:
    """A write that the server has taken a second ago, and that it answers four seconds later."""
    world.server.answer_seconds = 5
    writing = asyncio.create_task(write(world, "a", 1))
    await settle(1)
    return writing


def shown(world: World) -> Gadget:
    """The gadget `a` that the cache shows."""
    found = world.cache.get(Gadget, key("a"))
    assert found is not None
    return found


async def delete(world: World, name: str) -> None:
    stored = world.server.storage.read(GADGETS, key(name))
    await world.writer.delete(msgspec.convert(stored, Gadget))


async def test_every_way_to_write_is_seen_at_once_and_announced_once() -> None:
    world = a_world()
    world.server.lag_seconds = 5
    async with world.synced():
        await world.writer.create(Gadget, gadget("a", 1))
        assert {"a": 1} == world.sizes()
        written = await write(world, "b", 5)
        assert written is world.cache.get(Gadget, key("b"))
        assert [(None, 1), (None, 5)] == world.announced(), "others are woken at once"
        await world.writer.merge_patch(Gadget, key("a"), {"spec": {"size": 2}})
        assert {"a": 2, "b": 5} == world.sizes()
        await world.writer.merge_patch(Gadget, key("a"), {"status": {"ready": 3}}, subresource="status")
        seen = world.cache.get(Gadget, key("a"))
        assert seen is not None
        assert 3 == seen.status.ready
        await settle(20)
        assert {"a": 2, "b": 5} == world.sizes()
    assert [(1, 2), (2, 2)] == world.announced()


async def test_what_a_write_has_shown_is_not_decoded_again() -> None:
    world = a_world(transform=lambda each: replace(each, spec=GadgetSpec(each.spec.size + 1)))
    translation = world.client.translations[Gadget.KIND] = SameInBoth(Gadget.KIND)
    async with world.synced():
        world.server.lag_seconds = 0.5
        await write(world, "a", 1)
        await settle()
        assert ({"a": 2}, 1) == (world.sizes(), translation.reads), "nor reduced again"
        world.has("a", 2)
        await settle()
        assert ({"a": 3}, 2) == (world.sizes(), translation.reads), "a write of others is"
    assert [(None, 2), (2, 3)] == world.announced()


async def test_what_is_shown_of_a_deletion_is_not_what_the_watch_brings_of_the_write_before() -> None:
    world = a_world()
    async with world.synced():
        world.server.lag_seconds = 5
        written = await write(world, "a", 1)
        before = msgspec.Raw(msgspec.json.encode(world.server.storage.read(GADGETS, key("a"))))
        assert world.informer.store.shown_own_write(before) is written
        await world.writer.delete(written)
        assert world.informer.store.shown_own_write(before) is None


async def test_what_a_write_has_shown_is_too_large_when_the_watch_brings_it() -> None:
    world = a_world(most_bytes=1024 * 1024)
    world.has("a", 1, annotations={f"a{number}": "" for number in range(1100)})
    async with world.synced():
        assert world.cache.broken(Gadget, key("a")) is not None
        await world.writer.merge_patch(Gadget, key("a"), {"spec": {"size": 2}})
        await settle()
        assert world.cache.broken(Gadget, key("a")) is not None


async def test_what_a_write_has_shown_without_content_gets_it_when_its_owner_is_known() -> None:
    known = set[str]()
    world = a_world(transform=lambda each: each if known else Gadget(metadata=each.metadata))
    async with world.synced():
        world.server.lag_seconds = 2
        await write(world, "a", 7)
        assert {"a": 0} == world.sizes()
        known.add("owner")
        await settle(5)
        assert {"a": 7} == world.sizes()


async def test_the_watch_may_be_sooner_than_the_answer() -> None:
    world = a_world()
    async with world.synced():
        writing = await taken_and_not_answered(world)
        assert {"a": 1} == world.sizes()
        await writing
        assert {"a": 1} == world.sizes()
        world.has("a", 2)
        await settle(1)
        assert {"a": 2} == world.sizes(), "nothing is held"
    assert [(None, 1), (1, 2)] == world.announced()


@pytest.mark.parametrize("is_changed", [True, False])
async def test_an_answer_does_not_bring_back_what_was_deleted_meanwhile(is_changed: bool) -> None:
    counted: dict[int, Gadget] = {}
    world = a_world(transform=lambda gadget: counted.setdefault(len(counted), gadget))
    async with world.synced():
        if not is_changed:
            await write(world, "a", 1)
            await settle()
        writing = await taken_and_not_answered(world)
        world.has_no("a")
        await settle(1)
        before = len(counted)
        await writing
        assert ({}, before) == (world.sizes(), len(counted)), "neither shown nor counted"


async def test_a_removal_that_the_watch_still_brings_does_not_take_away_what_we_created() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.server.lag_seconds = 2
        world.has_no("a")
        await write(world, "a", 2)
        await stays(world, {"a": 2}, seconds=10)


async def test_a_removal_of_what_we_wrote_is_believed_at_once() -> None:
    world = a_world()
    async with world.synced():
        world.server.streams[0].cut()
        await write(world, "a", 1)
        world.has_no("a")
        assert {"a": 1} == world.sizes()
        await settle(2)
        assert {} == world.sizes()


async def test_a_write_that_changes_nothing_announces_nothing() -> None:
    world = a_world()
    async with world.synced():
        await write(world, "a", 1)
        await settle()
        world.announced()
        before = world.cache.get(Gadget, key("a"))
        await write(world, "a", 1)
        assert before is world.cache.get(Gadget, key("a"))
        world.has("a", 2)
        await settle()
        assert {"a": 2} == world.sizes(), "nothing is held"
    assert [(1, 2)] == world.announced()


async def test_a_write_that_the_watch_never_brings_is_given_up() -> None:
    world = a_world()
    async with world.synced():
        world.server.streams[0].is_silent = True
        await write(world, "a", 1)
        await settle(OWN_WRITE_SECONDS - 1)
        assert {"a": 1} == world.sizes()
        await settle(2)
        assert {} == world.sizes()
        await settle(400)
        assert {"a": 1} == world.sizes()


@pytest.mark.parametrize(("code", "error"), [(NO_ANSWER, Unreachable), (409, Conflict), (422, Invalid)])
async def test_a_failed_write_shows_nothing(code: int, error: type[Exception]) -> None:
    world = a_world()
    async with world.synced():
        world.server.faults.append(Fault(code, times=99, method="PATCH"))
        with pytest.raises(error):
            await write(world, "a", 1)
        await settle()
        assert {} == world.sizes()


async def test_a_write_whose_response_is_lost_arrives_by_the_watch() -> None:
    world = a_world()
    async with world.synced():
        world.server.faults.append(Fault(NO_ANSWER, times=99, method="POST", after=True))
        with pytest.raises(Unreachable):
            await world.writer.create(Gadget, gadget("a", 1))
        await settle()
        assert {"a": 1} == world.sizes()


async def test_a_cancelled_write_leaves_nothing_behind() -> None:
    world = a_world()
    async with world.synced():
        writing = await taken_and_not_answered(world)
        writing.cancel()
        await asyncio.wait([writing])
        await write(world, "a", 2)
        assert {"a": 2} == world.sizes()


async def test_writes_to_different_objects_do_not_wait_for_each_other() -> None:
    world = a_world()
    async with world.synced():
        world.server.answer_seconds = 5
        before = asyncio.get_running_loop().time()
        await asyncio.gather(*(write(world, f"g{number}", 1) for number in range(20)))
        assert 5 == pytest.approx(asyncio.get_running_loop().time() - before)


async def test_a_deleted_object_is_shown_as_being_deleted_until_it_is_gone() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.announced()
        world.server.lag_seconds = 5
        await delete(world, "a")
        assert shown(world).metadata.deletion_timestamp is not None
        await settle(10)
        assert {} == world.sizes()
    assert [(1, 1), (1, None)] == world.announced()


async def test_a_deletion_that_waits_for_finalizers_is_shown_as_the_server_has_it() -> None:
    world = a_world()
    world.has("a", 1, finalizers=["example.com/wait"])
    async with world.synced():
        world.server.lag_seconds = 1
        world.has("a", 2, finalizers=["example.com/wait"])
        await delete(world, "a")
        await settle(1.5)
        assert shown(world).metadata.deletion_timestamp is not None
        assert 1 == shown(world).spec.size, "the older state is not shown"
        await settle(10)
        assert "2026-01-01T00:00:01Z" == shown(world).metadata.deletion_timestamp
        assert 2 == shown(world).spec.size
        world.has("a", 2, finalizers=[])
        await settle(2)
        assert {} == world.sizes()


async def test_a_name_deleted_and_used_again_at_once_shows_the_new_object() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.server.lag_seconds = 2
        await delete(world, "a")
        created = await write(world, "a", 2)
        for _ in range(10):
            assert created.metadata.uid == shown(world).metadata.uid
            assert shown(world).metadata.deletion_timestamp is None
            await settle(1)


async def test_deleting_what_is_already_gone_is_success() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.server.lag_seconds = 5
        world.has_no("a")
        await world.writer.delete(shown(world))
        await settle(10)
        assert {} == world.sizes()


async def test_a_write_of_an_unwatched_type_is_just_a_write() -> None:
    world = a_world()
    async with world.synced():
        wanted = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": NAMESPACE}}
        written = await world.writer.apply(Service, wanted, force=True)
        assert "a" == written.metadata.name
        await world.writer.delete(written)
        with pytest.raises(NotFound):
            await world.client.get(Service, written.key)


async def test_a_write_outside_the_selection_is_not_shown() -> None:
    world = a_world(labels="app=ours")
    async with world.synced():
        await write(world, "a", 1)
        assert {} == world.sizes()
        wanted = gadget("b", 2, labels={"app": "ours"})
        await world.writer.apply(Gadget, wanted, force=True)
        assert {"b": 2} == world.sizes()


async def test_an_own_write_is_reduced_like_everything_else() -> None:
    world = a_world(transform=lambda each: Gadget(metadata=each.metadata))
    async with world.synced():
        world.server.lag_seconds = 1
        assert 7 == (await write(world, "a", 7)).spec.size
        assert {"a": 0} == world.sizes()
        await settle(2)
    assert [(None, 0)] == world.announced()


async def test_nothing_is_sent_by_a_process_that_does_not_lead_any_more() -> None:
    world = a_world()
    world.has("a", 1)
    writer = Writer(world.client, world.cache, leases=[LeaseFor(writes=2)])
    async with world.synced():
        world.server.faults.append(Fault(429))  # the second try needs the Lease, too
        await writer.merge_patch(Gadget, key("a"), {"spec": {"size": 2}})
        sent = len(world.server.requests)
        for attempt in (
            writer.merge_patch(Gadget, key("a"), {"spec": {"size": 3}}),
            writer.apply(Gadget, gadget("b"), force=True),
            writer.create(Gadget, gadget("c")),
            writer.delete(shown(world)),
        ):
            with pytest.raises(LeadershipLost):
                await attempt
        assert sent == len(world.server.requests)
        assert {"a": 2} == world.sizes()
