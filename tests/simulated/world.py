"""A simulated API server with gadgets, and the runtime that watches it: the start of most runtime tests."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec import convert

from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache, Change
from kube_runtime.client.client import Client
from kube_runtime.types.meta import Object
from simulated.gadget import GADGETS, MAKERS, NAMESPACE, Gadget, Maker, gadget, key
from simulated.server import Server


@dataclass
class World:
    """A server with gadgets, an informer, and the changes that it announced."""

    server: Server
    informer: Informer[Gadget]
    cache: Cache = field(init=False)
    client: Client = field(init=False)
    writer: Writer = field(init=False)
    changes: list[Change[Gadget]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = Client(self.server, field_manager="operator")
        self.cache = Cache([self.informer.store])
        self.writer = Writer(self.client, self.cache)
        self.cache.subscribe(Gadget, self.changes.append)

    def has(self, name: str, size: Any = 0, **metadata: Any) -> Object:
        if key(name) in self.server.storage.objects.get(GADGETS, {}):
            patch = {"spec": {"size": size}, "metadata": metadata}
            return self.server.storage.merge(GADGETS, key(name), patch)
        return self.server.storage.create(GADGETS, gadget(name, size, **metadata))

    def has_no(self, name: str) -> None:
        self.server.storage.delete(GADGETS, key(name), {})

    def has_maker(self, name: str) -> Maker:
        kind = Maker.KIND
        metadata = {"name": name, "namespace": NAMESPACE}
        wanted = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
        return convert(self.server.storage.create(MAKERS, wanted), Maker)

    def sizes(self) -> dict[str, int]:
        return {gadget.metadata.name: gadget.spec.size for gadget in self.cache.list(Gadget)}

    def announced(self) -> list[tuple[int | None, int | None]]:
        """The sizes before and after each change since the last call."""
        sizes = [tuple(g and g.spec.size for g in (c.old, c.new)) for c in self.changes]
        self.changes.clear()
        return sizes  # type: ignore[return-value]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.informer.run(self.client))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled(), task.exception()

    @asynccontextmanager
    async def synced(self) -> AsyncIterator[None]:
        """Run the informer; its store is synced and its watch open when the block starts."""
        async with self.running():
            await self.informer.synced.wait()
            await settle(0.001)
            yield


def a_world(seed: int = 0, **options: Any) -> World:
    random.seed(seed)  # the same seed, the same world
    return World(Server(seed), Informer(Gadget, **options))


async def settle(seconds: float = 1.0) -> None:
    await asyncio.sleep(seconds)
