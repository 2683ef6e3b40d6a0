"""The stored version is the one of the lists at the start, and then the one of each CRD that changes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.detection import (
    StoredVersions,
    adopt_stored,
    later_kinds,
    log_served,
    stored_later,
)
from kube_runtime.cache.informer import CrdInformer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.types.meta import Key, Kind, Object
from scripted.transport import answer
from simulated.clock import on_simulated_clock
from simulated.server import Fault, Server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GRAPH = DynamoGraphDeployment.KIND
IN_V1BETA1, IN_V1ALPHA1 = "ntwK8zEfXDM=", "yq6L/IJ7oRk="
"""The hashes of a real API server for graphs."""


def definition(stored: str) -> Object:
    versions = [{"name": name, "storage": name == stored} for name in ("v1alpha1", "v1beta1")]
    return {"metadata": {"name": str(GRAPH)}, "spec": {"versions": versions}}


def path(client: Client, kind: Kind = GRAPH) -> str:
    return client.stored(kind).version


def listed(storage_hash: str = "") -> Object:
    return {"resources": [{"name": GRAPH.plural, "storageVersionHash": storage_hash}]}


@pytest.mark.parametrize(
    ("earlier", "later", "stored"),
    [
        (listed(IN_V1ALPHA1), {}, "v1alpha1"),
        (listed(IN_V1ALPHA1), listed(IN_V1ALPHA1), "v1alpha1"),
        (listed(IN_V1BETA1), listed(IN_V1BETA1), "v1beta1"),
        ({"resources": []}, listed(IN_V1BETA1), "v1beta1"),
        ({}, {}, "v1alpha1"),
    ],
)
async def test_the_lists_of_kinds_say_which_version_is_stored(
    earlier: Object, later: Object, stored: str
) -> None:
    client = Client(Server())
    is_new = adopt_stored(client, stored_later(earlier, later))
    assert (stored, stored == "v1beta1") == (path(client), is_new)
    assert not adopt_stored(client, stored_later(earlier, later))


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (listed(), {}, ("info", "v1alpha1")),
        ({}, listed(), ("info", "v1beta1")),
        (listed(), listed(), ("warning", None)),
    ],
)
def test_without_webhooks_the_start_says_what_is_served(
    earlier: Object, later: Object, expected: tuple[str, str | None]
) -> None:
    with capture_logs() as logs:
        log_served(earlier, later)
    assert [expected] == [(line["log_level"], line.get("version")) for line in logs]


async def test_an_api_server_without_the_later_version_has_no_kinds_in_it() -> None:
    class Older:
        async def send(self, request: Request) -> Answer:
            assert request.path.endswith("/apis/nvidia.com/v1beta1")
            return answer(404, {"message": "not found", "code": 404})

    assert {} == await later_kinds(Client(Older()))


@asynccontextmanager
async def following(server: Server, on_adopted: Callable[[], None]) -> AsyncIterator[Client]:
    client, informer = Client(server), CrdInformer()
    cache = Cache([informer.store])
    watch = StoredVersions(client, cache, on_adopted)
    tasks = [asyncio.ensure_future(informer.run(client))]
    await informer.synced.wait()
    tasks.append(asyncio.ensure_future(watch.run()))
    await asyncio.sleep(1)
    try:
        yield client
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@on_simulated_clock
async def test_a_crd_that_stores_another_version_is_followed_there_and_back() -> None:
    server = Server()
    server.storage.create(DEFINITIONS, definition("v1alpha1"))
    adopted = list[str]()
    async with following(server, lambda: adopted.append(path(client))) as client:
        assert "v1alpha1" == path(client)
        before = len(server.requests)
        for version in ("v1beta1", "v1alpha1", "v1beta1"):
            server.storage.merge(DEFINITIONS, Key("", str(GRAPH)), definition(version))
            await asyncio.sleep(1)
            assert version == path(client)
        assert 3 == len(server.requests) - before
        assert ["v1beta1", "v1alpha1", "v1beta1"] == adopted


@on_simulated_clock
async def test_an_outage_delays_the_new_version_and_nothing_else() -> None:
    server = Server()
    server.storage.create(DEFINITIONS, definition("v1alpha1"))
    async with following(server, lambda: None) as client:
        server.faults = [Fault(500, times=5, method="GET", is_watch=False)]
        server.storage.merge(DEFINITIONS, Key("", str(GRAPH)), definition("v1beta1"))
        await asyncio.sleep(60)
        assert "v1beta1" == path(client)


@on_simulated_clock
async def test_a_crd_that_goes_keeps_the_version_until_it_is_back() -> None:
    server = Server()
    server.storage.create(DEFINITIONS, definition("v1alpha1"))
    async with following(server, lambda: None) as client:
        server.storage.delete(DEFINITIONS, Key("", str(GRAPH)), {})
        await asyncio.sleep(1)
        server.storage.create(DEFINITIONS, definition("v1beta1"))
        await asyncio.sleep(1)
        assert "v1beta1" == path(client)
