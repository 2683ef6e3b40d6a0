"""Objects that do not decode are reported, and the others stay unaffected."""

import pytest
from msgspec.structs import replace

from kube_runtime.errors import DecodeError
from kube_runtime.types.meta import Key
from simulated.gadget import Gadget, GadgetSpec, key
from simulated.world import a_world, settle

pytestmark = [pytest.mark.looptime, pytest.mark.usefixtures("lists")]


async def test_an_undecodable_object_is_reported_and_the_watch_continues() -> None:
    world = a_world()
    world.has("good", 1)
    world.has("bad", "huge")
    async with world.synced():
        assert {"good": 1} == world.sizes()
        assert isinstance(world.cache.broken(Gadget, key("bad")), DecodeError)
        world.has("good", "broken too")
        world.has("other", 5)
        await settle()
        assert {"good": 1, "other": 5} == world.sizes(), "the last good state stays"
        assert world.cache.broken(Gadget, key("good")) is not None
        world.has("good", 2)
        world.has("bad", 3)
        await settle()
        assert {"good": 2, "bad": 3, "other": 5} == world.sizes()
        assert world.cache.broken(Gadget, key("good")) is None
        assert world.cache.broken(Gadget, key("bad")) is None
    assert 1 == world.server.lists(Gadget)


async def test_a_relist_does_not_remove_an_object_that_no_longer_decodes() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.announced()
        world.server.streams[0].cut()
        world.has("a", "huge")
        world.server.storage.compact()
        await settle(10)
        assert {"a": 1} == world.sizes()
        assert world.cache.broken(Gadget, key("a")) is not None
        world.has_no("a")
        await settle()
        assert {} == world.sizes()
        assert world.cache.broken(Gadget, key("a")) is None
    assert [(1, None)] == world.announced()


def refusing_negative(each: Gadget) -> Gadget:
    """What a buggy `keep` does."""
    return replace(each, spec=GadgetSpec(int(each.spec.size**0.5)))  # TypeError of a complex number


async def test_an_object_whose_transform_fails_is_broken_and_the_watch_continues() -> None:
    world = a_world(transform=refusing_negative)
    world.has("good", 4)
    world.has("bad", -1)
    async with world.synced():
        assert {"good": 2} == world.sizes()
        broken = world.cache.broken(Gadget, key("bad"))
        assert broken is not None
        assert "TypeError" in str(broken)
        world.has("good", -9)
        await settle()
        assert {"good": 2} == world.sizes(), "the last good state stays"
        assert world.cache.broken(Gadget, key("good")) is not None
        world.has("good", 9)
        await settle()
        assert {"good": 3} == world.sizes()
        assert world.cache.broken(Gadget, key("good")) is None


async def test_subscribers_are_notified_when_an_object_breaks_and_when_it_decodes_again() -> None:
    world = a_world()
    heard: list[tuple[str, bool]] = []

    def note(about: Key) -> None:
        heard.append((about.name, world.cache.broken(Gadget, about) is not None))

    world.cache.store(Gadget).subscribe_broken(note)
    world.has("a", "huge")
    world.has("b", 1)
    async with world.synced():
        world.has("a", 1)
        world.has("b", "huge")
        await settle()
        world.has_no("b")
        await settle()
        world.has("a", "huge")
        await settle()
        world.server.streams[0].expire()
        await settle(10)
    expected = [("a", True), ("a", False), ("b", True), ("b", False), ("a", True)]
    assert expected == heard[:5]
