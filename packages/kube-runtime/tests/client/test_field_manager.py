"""Who owns what a patch changes: the client's field manager, unless the caller names another."""

import pytest

from kube_runtime.apply.writer import Writer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from simulated.clock import run
from simulated.gadget import GADGETS, Gadget, gadget, key
from simulated.server import Server


@pytest.mark.parametrize(("named", "expected"), [({}, "operator"), ({"field_manager": "scaler"}, "scaler")])
def test_a_patch_is_of_the_field_manager_that_is_named(named: dict[str, str], expected: str) -> None:
    server = Server()
    server.storage.create(GADGETS, gadget("g", 1))

    async def scenario() -> None:
        writer = Writer(Client(server, field_manager="operator"), Cache())
        written = await writer.merge_patch(Gadget, key("g"), {"spec": {"size": 2}}, **named)
        assert 2 == written.spec.size

    run(scenario())
    assert [expected] == [each.query["fieldManager"] for each in server.requests]
