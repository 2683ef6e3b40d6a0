"""Writes of our own to a world of gadgets, and what the cache must show meanwhile."""

from dataclasses import dataclass

from simulated.gadget import Gadget, gadget
from simulated.world import World, settle


async def write(world: World, name: str, size: int) -> Gadget:
    """The answer to an apply of a gadget."""
    return await world.writer.apply(Gadget, gadget(name, size), force=True)


async def stays(world: World, sizes: dict[str, int], *, seconds: float) -> None:
    """Fails unless the cache shows these gadgets, and no other state, for so long."""
    for _ in range(round(seconds * 10)):
        assert sizes == world.sizes()
        await settle(0.1)


@dataclass
class LeaseFor:
    """A Lease that is held for that number of writes."""

    writes: int

    def holds_lease(self) -> bool:
        self.writes -= 1
        return self.writes >= 0
