"""An applier on a simulated API server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kube_runtime.apply.applier import Applier, Controlled, DesiredObjects
from kube_runtime.apply.result import Applied, Verb
from kube_runtime.apply.writer import Writer
from kube_runtime.types.meta import Object
from simulated.gadget import GADGETS, Gadget, Maker, key
from simulated.world import World, a_world, settle

HASH = "example.com/hash"
GENERATION = "example.com/owner-generation"
MARKER = ("example.com/managed-by", "us")
TYPES = (Gadget,)


@dataclass
class Scene:
    """A synced world with an applier on it, and the writes that reached the server."""

    world: World
    applier: Applier
    owner: Maker

    async def apply(self, *wanted: Object) -> Applied:
        """Apply these gadgets for the owner."""
        return await self.applier.apply(self.owner, Controlled(wanted, TYPES))

    async def apply_sets(self, *desired: DesiredObjects, owner: Maker | None = None) -> Applied:
        """Apply these sets for the owner, and let the watch bring what comes of it."""
        applied = await self.applier.apply(owner or self.owner, *desired)
        await settle()
        return applied

    def owners(self, name: str) -> list[tuple[str, bool]]:
        """The uids of the owners of a gadget, each with whether it is the controller."""
        live = self.world.server.storage.read(GADGETS, key(name))
        references = live["metadata"].get("ownerReferences", ())
        return [(each["uid"], bool(each.get("controller"))) for each in references]

    def writes(self) -> Sequence[str]:
        """The methods of the requests that were no reads."""
        return [each.method for each in self.world.server.requests if each.method != "GET"]


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    """The scene, running."""
    world = a_world()
    async with world.synced():
        writer = Writer(world.client, world.cache)
        applier = Applier(writer, HASH, GENERATION)
        yield Scene(world, applier, world.has_maker("owner"))


def verbs(applied: Applied) -> list[Verb]:
    """What was done."""
    return [each.verb for each in applied.changes]
