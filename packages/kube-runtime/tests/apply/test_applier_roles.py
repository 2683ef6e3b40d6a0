"""A binding of ours to another role is recreated, since no write can change its role."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dynamo_operator.graph.render import role_binding
from kube_runtime.apply.applier import Applier, Shared
from kube_runtime.apply.result import Applied, Obstacle, Verb
from kube_runtime.apply.suppression import CONTEST_WRITES
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.errors import Conflict
from kube_runtime.types.kinds import RoleBinding
from kube_runtime.types.meta import Key, Metadata, Object
from kube_runtime.wire import path_of
from simulated.applying import GENERATION, HASH, MARKER
from simulated.gadget import MAKERS, NAMESPACE, Maker
from simulated.server import Fault, Server, Target
from simulated.world import settle

pytestmark = pytest.mark.looptime

PATH, KEY = path_of(RoleBinding.KIND), Key(NAMESPACE, "b")


def binding(role: str) -> Object:
    """A binding of one ServiceAccount to a ClusterRole."""
    return role_binding(NAMESPACE, KEY.name, "account", "ClusterRole", role)


@dataclass
class Scene:
    """A server whose bindings are watched, and an applier of them."""

    server: Server
    applier: Applier

    def user(self, name: str) -> Maker:
        """A new user of the binding."""
        wanted = {"metadata": {"name": name, "namespace": NAMESPACE}}
        found = self.server.storage.create(MAKERS, wanted)["metadata"]
        metadata = Metadata(name, NAMESPACE, found["uid"], resource_version=found["resourceVersion"])
        return Maker(metadata)

    async def apply(self, user: Maker, role: str) -> Applied:
        """Have a user want a binding to that role, and the watch bring what comes of it."""
        applied = await self.applier.apply(user, Shared([binding(role)], (RoleBinding,), MARKER))
        await settle()
        return applied

    def asked(self) -> list[str]:
        """The methods of the requests since the last call, but for lists and watches."""
        methods = [each.method for each in self.server.requests if Target.of(each.path).name]
        self.server.requests.clear()
        return methods

    def live(self) -> tuple[str, list[str]]:
        """The role of the binding that there is, and the uids of its users."""
        found = self.server.storage.read(PATH, KEY)
        owners = found["metadata"].get("ownerReferences", ())
        return found["roleRef"]["name"], [each["uid"] for each in owners]


@asynccontextmanager
async def a_scene(transform: Callable[[RoleBinding], RoleBinding] | None = None) -> AsyncIterator[Scene]:
    """A synced scene."""
    server = Server()
    client = Client(server, field_manager="operator")
    informer = Informer(RoleBinding, transform=transform)
    cache = Cache([informer.store])
    task = asyncio.create_task(informer.run(client))
    try:
        await informer.synced.wait()
        await settle(0.001)
        yield Scene(server, Applier(Writer(client, cache), HASH, GENERATION))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_is_deleted_and_made_anew_with_all_its_users() -> None:
    async with a_scene() as scene:
        one, two = scene.user("one"), scene.user("two")
        for user in (one, two):
            await scene.apply(user, "old")
        scene.asked()
        applied = await scene.apply(one, "new")
        assert ["GET", "DELETE", "PATCH"] == scene.asked()
        assert [Verb.UPDATE] == [each.verb for each in applied.changes]
        assert ("new", [one.metadata.uid, two.metadata.uid]) == scene.live()
        for user in (one, two):
            await scene.apply(user, "new")
        assert [] == scene.asked()


@pytest.mark.parametrize("transform", [None, lambda binding: RoleBinding(binding.metadata)])
async def test_a_change_of_anything_else_is_one_write(transform: Any) -> None:
    async with a_scene(transform) as scene:
        one = scene.user("one")
        await scene.apply(one, "role")
        scene.server.storage.merge(PATH, KEY, {"subjects": []})
        await settle()
        scene.asked()
        await scene.apply(one, "role")
        assert ["PATCH"] == scene.asked()


async def test_the_next_owner_creates_what_another_had_only_deleted() -> None:
    async with a_scene() as scene:
        one, two = scene.user("one"), scene.user("two")
        await scene.apply(one, "old")
        scene.server.faults.append(Fault(500, times=100, method="PATCH"))
        applied = await scene.apply(one, "new")
        assert applied.failures
        assert not scene.server.storage.objects[PATH]
        scene.server.faults.clear()
        await settle()
        await scene.apply(two, "new")
        assert ("new", [two.metadata.uid]) == scene.live()


async def test_one_that_is_not_ours_is_left_alone() -> None:
    async with a_scene() as scene:
        scene.server.storage.create(PATH, binding("theirs"))
        await settle()
        applied = await scene.apply(scene.user("one"), "new")
        assert [Obstacle.NAME_CONFLICT] == [each.obstacle for each in applied.blocked]
        assert [] == scene.asked()
        assert ("theirs", []) == scene.live()


async def test_an_object_with_a_finalizer_is_waited_for() -> None:
    async with a_scene() as scene:
        one = scene.user("one")
        await scene.apply(one, "old")
        scene.server.storage.merge(PATH, KEY, {"metadata": {"finalizers": ["example.com/wait"]}})
        await settle()
        with pytest.raises(Conflict):
            await scene.apply(one, "new")
        await settle()
        scene.asked()
        applied = await scene.apply(one, "new")
        assert [Obstacle.PREDECESSOR] == [each.obstacle for each in applied.blocked]
        assert [] == scene.asked()
        scene.server.storage.merge(PATH, KEY, {"metadata": {"finalizers": None}})
        await settle()
        await scene.apply(one, "new")
        assert ("new", [one.metadata.uid]) == scene.live()


async def test_two_operators_do_not_delete_it_for_each_other_without_end() -> None:
    theirs = binding("theirs")
    theirs["metadata"]["labels"] = dict([MARKER])
    async with a_scene() as scene:
        one = scene.user("one")
        await scene.apply(one, "ours")
        for turn in range(CONTEST_WRITES + 1):
            scene.server.storage.delete(PATH, KEY, {})
            scene.server.storage.create(PATH, theirs)
            await settle()
            scene.asked()
            applied = await scene.apply(one, "ours")
            is_over = turn == CONTEST_WRITES
            assert is_over == bool(applied.contested)
            assert is_over == (scene.asked() == [])
