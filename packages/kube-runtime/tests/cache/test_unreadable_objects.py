"""Objects that do not decode are reported, and the others stay unaffected."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kube_runtime.errors import DecodeError
from kube_runtime.types.meta import Key
from simulated.gadget import Gadget, GadgetSpec, key
from simulated.world import a_world, settle

pytestmark = [pytest.mark.looptime, pytest.mark.usefixtures("lists")]


def refusing_negative(each: Gadget) -> Gadget:
    """What a buggy `keep` does."""
    return replace(each, spec=GadgetSpec(int(each.spec.size**0.5)))  # TypeError of a complex number


@pytest.mark.parametrize(
    ("transform", "bad", "cause"), [(None, "huge", "Expected `int`"), (refusing_negative, -1, "TypeError")]
)
async def test_an_object_that_does_not_decode_or_transform_is_reported_and_the_watch_continues(
    transform: Callable[[Gadget], Gadget] | None, bad: str | int, cause: str
) -> None:
    world = a_world(transform=transform)
    world.has("good", 1)
    world.has("bad", bad)
    async with world.synced():
        assert {"good": 1} == world.sizes()
        broken = world.cache.broken(Gadget, key("bad"))
        assert isinstance(broken, DecodeError)
        assert cause in str(broken)
        world.has("good", bad)
        world.has("other", 1)
        await settle()
        assert {"good": 1, "other": 1} == world.sizes(), "the last good state stays"
        assert world.cache.broken(Gadget, key("good")) is not None
        world.has("good", 0)
        world.has("bad", 1)
        await settle()
        assert {"good": 0, "bad": 1, "other": 1} == world.sizes()
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
