"""The finalizer of the Go operator goes, those of others stay, and an object without it costs nothing."""

import pytest

from dynamo_operator.labels import FINALIZER
from dynamo_operator.shared.patches import with_finalizer, without_finalizer
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.errors import Conflict
from simulated.gadget import GADGETS, Gadget, gadget, key
from simulated.server import Server

pytestmark = pytest.mark.looptime


def a_writer(server: Server) -> tuple[Client, Writer]:
    client = Client(server)
    return client, Writer(client, Cache())


async def test_our_finalizer_is_added_and_removed_and_those_of_others_stay() -> None:
    server = Server()
    client, writer = a_writer(server)
    server.storage.create(GADGETS, gadget("a", finalizers=["example.com/keep"]))
    after = await with_finalizer(await client.get(Gadget, key("a")), writer)
    assert ("example.com/keep", FINALIZER) == after.metadata.finalizers
    after = await without_finalizer(after, writer)
    assert ("example.com/keep",) == after.metadata.finalizers


async def test_an_object_that_was_held_up_by_it_alone_goes() -> None:
    server = Server()
    client, writer = a_writer(server)
    server.storage.create(GADGETS, gadget("a", finalizers=[FINALIZER]))
    server.storage.delete(GADGETS, key("a"), {})
    await without_finalizer(await client.get(Gadget, key("a")), writer)
    assert {} == server.storage.objects[GADGETS]


async def test_an_object_without_it_costs_no_request() -> None:
    server = Server()
    client, writer = a_writer(server)
    server.storage.create(GADGETS, gadget("a", finalizers=["foregroundDeletion"]))
    found = await client.get(Gadget, key("a"))
    server.requests.clear()
    assert found is await without_finalizer(found, writer)
    assert [] == server.requests


async def test_a_finalizer_that_was_added_meanwhile_is_not_lost() -> None:
    server = Server()
    client, writer = a_writer(server)
    server.storage.create(GADGETS, gadget("a", finalizers=[FINALIZER]))
    found = await client.get(Gadget, key("a"))
    both = {"metadata": {"finalizers": [FINALIZER, "example.com/new"]}}
    server.storage.merge(GADGETS, key("a"), both)
    with pytest.raises(Conflict):
        await without_finalizer(found, writer)
