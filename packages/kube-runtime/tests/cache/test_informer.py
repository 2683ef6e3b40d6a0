"""Kinds that come and go: who asks when, and what is remembered of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from kube_runtime.cache.informer import MOST_REFUSALS, CrdInformer, OptionalInformer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Key
from kube_runtime.wire import path_of
from scripted.transport import Script
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, Gadget, gadget, key
from simulated.server import Fault, Server
from simulated.world import settle

pytestmark = pytest.mark.usefixtures("lists")

DEFINITIONS = path_of(CustomResourceDefinition.KIND)
NAME = Key("", str(Gadget.KIND))
GRANTED_BY = "the chart value gadgets=true"


@dataclass
class World:
    """A server on which gadgets are optional, and who watches them."""

    server: Server = field(default_factory=Server)
    definitions: CrdInformer = field(default_factory=CrdInformer)
    informer: OptionalInformer[Gadget] = field(init=False)
    cache: Cache = field(init=False)
    served: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.informer = OptionalInformer(Gadget, self.definitions, granted_by=GRANTED_BY)
        self.cache = Cache([self.informer.store])
        self.cache.store(Gadget).subscribe_served(self._note)

    def _note(self) -> None:
        self.served.append(self.cache.serves(Gadget))

    def install(self) -> None:
        """Install the CRD of gadgets."""
        self.server.storage.create(DEFINITIONS, {"metadata": {"name": NAME.name}})

    def remove(self) -> None:
        """Delete it, with all gadgets."""
        for each in [*self.server.storage.objects.get(GADGETS, {})]:
            self.server.storage.delete(GADGETS, each, {})
        self.server.storage.delete(DEFINITIONS, NAME, {})

    def has(self, name: str) -> None:
        """Create a gadget."""
        self.server.storage.create(GADGETS, gadget(name))

    def names(self) -> set[str]:
        """The gadgets that are shown."""
        return {each.metadata.name for each in self.cache.list(Gadget)}

    @asynccontextmanager
    async def synced(self) -> AsyncIterator[None]:
        """Have everything run meanwhile, once it counts as synced."""
        client = Client(self.server)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.run(client)) for each in (self.definitions, self.informer)]
            await self.informer.synced.wait()
            await settle()
            yield
            for task in tasks:
                task.cancel()


@on_simulated_clock
async def test_a_kind_without_a_definition_counts_as_synced_and_is_never_asked_for() -> None:
    world = World()
    async with world.synced():
        await settle(3600)
        assert not world.cache.serves(Gadget)
        assert 0.0 == world.informer.silent_seconds()
    assert 0 == world.server.lists(Gadget) + world.server.watches(Gadget)
    assert not world.cache.forbids(Gadget)
    assert 1 == world.server.lists(CustomResourceDefinition)


@on_simulated_clock
async def test_a_kind_that_is_there_is_listed_before_it_counts_as_synced() -> None:
    world = World()
    world.install()
    world.has("a")
    async with world.synced():
        assert world.cache.serves(Gadget)
        assert {"a"} == world.names()
    assert [True] == world.served


@on_simulated_clock
async def test_a_kind_that_comes_is_watched_and_one_that_goes_is_forgotten() -> None:
    world = World()
    async with world.synced():
        for _ in range(3):
            world.install()
            world.has("a")
            await settle()
            assert {"a"} == world.names()
            world.remove()
            await settle()
            assert set() == world.names()
            assert not world.cache.serves(Gadget)
        before = len(world.server.requests)
        await settle(200)
        assert before == len(world.server.requests)
    assert [True, False] * 3 == world.served


@on_simulated_clock
async def test_a_crd_that_was_replaced_while_the_watch_was_interrupted_causes_a_relist() -> None:
    world = World()
    world.install()
    world.has("a")
    async with world.synced():
        for stream in [*world.server.streams]:
            stream.is_silent = True
        world.remove()
        world.install()
        world.has("b")
        world.server.storage.compact()
        await settle(600)
        assert {"b"} == world.names()


@on_simulated_clock
async def test_a_definition_that_is_not_yet_served_is_asked_for_soon_again() -> None:
    world = World()
    async with world.synced():
        world.server.faults.append(Fault(404, times=3, collection=GADGETS))
        world.install()
        world.has("a")
        await settle(5)
        assert {"a"} == world.names()
        assert world.cache.serves(Gadget)


@on_simulated_clock
async def test_a_definition_that_is_being_deleted_is_as_good_as_gone() -> None:
    world = World()
    finalizers = ["customresourcecleanup.apiextensions.k8s.io"]
    metadata = {"name": NAME.name, "finalizers": finalizers}
    world.server.storage.create(DEFINITIONS, {"metadata": metadata})
    world.has("a")
    async with world.synced():
        world.server.storage.delete(DEFINITIONS, NAME, {})
        await settle()
        assert not world.cache.serves(Gadget)
        assert set() == world.names()


@on_simulated_clock
async def test_other_changes_of_a_definition_do_not_end_the_watch() -> None:
    world = World()
    world.install()
    async with world.synced():
        before = world.server.lists(Gadget), world.server.watches(Gadget)
        patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"conversion": {}}}
        world.server.storage.merge(DEFINITIONS, NAME, patch)
        await settle()
        assert before == (world.server.lists(Gadget), world.server.watches(Gadget))


@on_simulated_clock
async def test_a_kind_that_may_not_be_listed_is_forbidden_and_not_absent_until_the_right_comes() -> None:
    world = World()
    world.install()
    world.server.faults.append(Fault(403, times=10**6, collection=GADGETS))
    world.server.faults.append(Fault(403, times=MOST_REFUSALS - 1, collection=DEFINITIONS))  # for a moment
    with capture_logs() as logs:
        async with world.synced():
            assert not world.cache.serves(Gadget)
            assert world.cache.forbids(Gadget)
            await settle(300)
            assert [False] == world.served
            world.server.faults.clear()
            await settle(60)
            assert world.cache.serves(Gadget)
            assert not world.cache.forbids(Gadget)
    assert [False, True] == world.served
    [told] = [each for each in logs if "may not read" in each["event"]]
    assert (str(Gadget.KIND), GRANTED_BY) == (told["kind"], told["granted_by"])


@on_simulated_clock
async def test_a_forbidden_kind_that_is_uninstalled_is_absent() -> None:
    world = World()
    world.install()
    world.server.faults.append(Fault(403, times=10**6, collection=GADGETS))
    async with world.synced():
        assert world.cache.forbids(Gadget)
        world.remove()
        await settle()
        assert not world.cache.forbids(Gadget)
    assert [False, False] == world.served


class Restricted(Server):
    """A server that forbids CRDs, and lists only its API groups."""

    groups: tuple[str, ...] = ()
    first: tuple[tuple[int, object], ...] = ()
    """Answers, status and body, that come before the right one."""

    async def send(self, request: Request) -> Answer:
        if request.path == "/apis":
            self.requests.append(request)
            if self.first:
                (status, body), *rest = self.first
                self.first = tuple(rest)
                return await Script().then(status, body).send(request)
            names = [{"name": each} for each in self.groups]
            return await Script().then(200, {"groups": names}).send(request)
        return await super().send(request)


@on_simulated_clock
async def test_without_permission_for_definitions_the_groups_are_asked_for_once() -> None:
    for groups, is_served in ((("apps", "example.com"), True), (("apps",), False)):
        server = Restricted()
        server.groups = groups
        server.faults.append(Fault(403, times=10**6, collection=DEFINITIONS))
        world = World(server)
        world.has("a")
        with capture_logs() as logs:
            async with world.synced():
                await settle(3600)
                assert is_served is world.cache.serves(Gadget)
                assert 0.0 == world.definitions.silent_seconds()
        assert 1 == sum(each.path == "/apis" for each in server.requests)
        assert MOST_REFUSALS == sum(each.path == DEFINITIONS for each in server.requests)
        assert 1 == sum("restart" in each["event"] for each in logs)


@on_simulated_clock
async def test_annotations_of_definitions_are_not_kept() -> None:
    world = World()
    metadata = {"name": NAME.name, "annotations": {"kubectl.kubernetes.io/last-applied": "x" * 99}}
    world.server.storage.create(DEFINITIONS, {"metadata": metadata})
    async with world.synced():
        shown = world.definitions.store.shown.get(NAME)
        assert shown is not None
        assert {} == shown.metadata.annotations


@on_simulated_clock
async def test_only_the_metadata_of_definitions_is_asked_for() -> None:
    world = World()
    world.install()
    async with world.synced():
        pass
    asked = [each for each in world.server.requests if each.path == DEFINITIONS]
    assert (1 if world.server.STREAMS_LISTS else 3) == len(asked)
    assert all("as=PartialObjectMetadata" in each.accept for each in asked)
    assert {"application/json"} == {each.accept for each in world.server.requests if each.path == GADGETS}
    assert world.informer.store.shown.get(key("a")) is None


@on_simulated_clock
async def test_an_api_server_that_fails_when_the_groups_are_asked_for_is_asked_again() -> None:
    server = Restricted()
    server.groups = ("example.com",)
    broken: tuple[tuple[int, object], ...] = ((500, {}),) * 5
    server.first = (*broken, (403, {}), (200, []), (200, {"groups": None}))
    server.faults.append(Fault(403, times=10**6, collection=DEFINITIONS))
    world = World(server)
    world.has("a")
    async with world.synced():
        assert world.cache.serves(Gadget)
    assert 9 == sum(each.path == "/apis" for each in server.requests)
