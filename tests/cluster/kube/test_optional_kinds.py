"""Kinds that are installed and removed on a real API server."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from cluster.conftest import ControlPlane
from kube_runtime.cache.informer import CrdInformer, OptionalInformer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.client.connect import connect
from kube_runtime.schema import custom_resource_definition
from kube_runtime.types.meta import Kind, Object, Resource

pytestmark = pytest.mark.cluster


class Guest(Resource):
    KIND = Kind("optional.test", "v1", "Guest")


DEFINITION = custom_resource_definition(Guest, {"note": "x" * 100_000})


@dataclass
class Watching:
    """Who watches guests, and what the cluster does meanwhile."""

    control_plane: ControlPlane
    definitions: CrdInformer
    cache: Cache
    changed: asyncio.Event

    async def kubectl(self, *arguments: str, body: Object | None = None) -> None:
        stdin = None if body is None else msgspec.json.encode(body).decode()
        await asyncio.to_thread(self.control_plane.kubectl, *arguments, input=stdin)

    async def until(self, outcome: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not outcome():
                self.changed.clear()
                await self.changed.wait()

    def is_served(self) -> bool:
        return self.cache.serves(Guest)

    def has_guests(self) -> bool:
        return any(self.cache.list(Guest))


@asynccontextmanager
async def watching(control_plane: ControlPlane, kubeconfig: Path) -> AsyncIterator[Watching]:
    """The informers of CRDs and of guests, running and synced."""
    definitions = CrdInformer()
    informer = OptionalInformer(Guest, definitions)
    cache, changed = Cache([informer.store]), asyncio.Event()
    cache.subscribe(Guest, lambda _: changed.set())
    cache.store(Guest).subscribe_served(changed.set)
    async with await connect(kubeconfig) as transport, asyncio.TaskGroup() as group:
        client = Client(transport, field_manager="test")
        tasks = [group.create_task(each.run(client)) for each in (definitions, informer)]
        async with asyncio.timeout(20):
            await informer.synced.wait()
        yield Watching(control_plane, definitions, cache, changed)
        for task in tasks:
            task.cancel()


async def test_a_kind_is_watched_while_it_is_installed(control_plane: ControlPlane, namespace: str) -> None:
    metadata = {"name": "one", "namespace": namespace}
    guest = Guest.KIND.manifest(metadata)
    async with watching(control_plane, control_plane.kubeconfig) as world:
        assert not world.is_served()
        for _ in range(2):
            await world.kubectl("create", "-f", "-", body=DEFINITION)
            await world.until(world.is_served)
            await world.kubectl("create", "-f", "-", body=guest)
            await world.until(world.has_guests)
            await world.kubectl("delete", "crd", str(Guest.KIND))
            await world.until(lambda: not world.is_served())
            assert not world.has_guests()


async def test_who_may_not_read_definitions_knows_the_groups_of_the_start(
    control_plane: ControlPlane,
) -> None:
    user = control_plane.instance.user_kubeconfig(f"guest-{uuid.uuid4().hex[:8]}")
    async with watching(control_plane, user) as world:
        assert not world.is_served()
        assert world.definitions.has(Kind("apps", "v1", "Deployment", "deployments"))
        assert not world.definitions.has(Guest.KIND)
