"""Lists as the beginning of a stream, from a real API server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cluster.conftest import ControlPlane
from cluster.kube.test_client import ConfigMap
from kube_runtime.cache.informer import Informer
from kube_runtime.client.client import Answer, Client, Request, Transport
from kube_runtime.client.connect import connect
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Key, Object, R

pytestmark = pytest.mark.cluster


class Noting:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Answer:
        self.requests.append(request)
        return await self.transport.send(request)


@pytest.fixture
async def noting(control_plane: ControlPlane) -> AsyncIterator[Noting]:
    async with await connect(control_plane.kubeconfig) as transport:
        yield Noting(transport)


def a_config_map(namespace: str, name: str, **labels: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return ConfigMap.KIND.manifest(metadata, data={"k": "1"})


async def listed_in_pages(
    client: Client, type_: type[R], namespace: str = "", labels: str = ""
) -> dict[Key, R]:
    pages = [page async for page in client.pages(type_, namespace=namespace, labels=labels)]
    return {each.key: each for page in pages for each in page.items}


async def test_a_stream_brings_what_pages_bring_and_then_what_changes(noting: Noting, namespace: str) -> None:
    client = Client(noting, field_manager="test")
    for number in range(20):
        body = a_config_map(namespace, f"c{number}", part="ab"[number % 2])
        await client.create(ConfigMap, body)
    expected = await listed_in_pages(client, ConfigMap, namespace, "part=a")
    noting.requests.clear()
    informer = Informer(ConfigMap, namespace=namespace, labels="part=a")
    running = asyncio.create_task(informer.run(client))
    async with asyncio.timeout(10):
        await informer.synced.wait()
        assert expected == {each.key: each for each in informer.store.shown.list()}
        assert 10 == len(expected)
        assert informer.last_error is None
        assert ["true"] == [each.query.get("sendInitialEvents") for each in noting.requests]
        changed = asyncio.Event()
        informer.store.subscribe(lambda change: None if change.initial else changed.set())
        new = await client.create(ConfigMap, a_config_map(namespace, "new", part="a"))
        await changed.wait()
        assert new == informer.store.shown.get(new.key)
    assert 2 == len(noting.requests), "the list, its changes with it, and the new object"
    running.cancel()
    await asyncio.wait([running])


async def test_a_kind_without_objects_and_one_of_which_only_metadata_is_read(
    noting: Noting, namespace: str, kinds: ControlPlane
) -> None:
    client = Client(noting, field_manager="test")
    none = Informer(ConfigMap, namespace=namespace, labels="part=none")
    definitions = Informer(CustomResourceDefinition)
    expected = await listed_in_pages(client, CustomResourceDefinition)
    noting.requests.clear()
    running = [asyncio.create_task(each.run(client)) for each in (none, definitions)]
    async with asyncio.timeout(10):
        await none.synced.wait()
        await definitions.synced.wait()
    assert [] == list(none.store.shown.list())
    assert expected == {each.key: each for each in definitions.store.shown.list()}
    assert 2 == len(noting.requests)
    for each in running:
        each.cancel()
    await asyncio.wait(running)


async def test_a_list_is_never_older_than_what_was_written_before(noting: Noting, namespace: str) -> None:
    client = Client(noting, field_manager="test")
    for number in range(20):
        written = await client.create(ConfigMap, a_config_map(namespace, f"w{number}"))
        informer = Informer(ConfigMap, namespace=namespace)
        running = asyncio.create_task(informer.run(client))
        async with asyncio.timeout(10):
            await informer.synced.wait()
        assert written == informer.store.shown.get(written.key)
        running.cancel()
        await asyncio.wait([running])
