"""Tests that compare histories read all of them, even from a server that is slow or ends its watches."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

import pytest
from aiohttp import StreamReader, web

from cluster import history
from cluster.conftest import ControlPlane
from cluster.history import recording
from cluster.world import World
from faults.proxy import Proxy
from kube_runtime.types.kinds import ConfigMap, Deployment
from kube_runtime.types.meta import Object

MAPS = ConfigMap.KIND

pytestmark = pytest.mark.cluster


@dataclass
class Brief(Proxy):
    """A proxy whose first watch has no line, and whose second has one, before they end."""

    limits: list[int] = field(default_factory=lambda: [0, 1], init=False)

    async def lines(self, request: web.Request, content: StreamReader) -> AsyncGenerator[bytes, None]:
        left = self.limits.pop(0) if self.limits else -1
        async for line in super().lines(request, content):
            if left == 0:
                return
            yield line
            left -= 1


def lived(world: World, name: str) -> None:
    world.create(MAPS, {"metadata": {"name": name}})
    world.patch(MAPS, name, {"data": {"key": "value"}})
    world.delete(MAPS, name)


LIFE = ["ADDED", "MODIFIED", "DELETED"]


def types(changes: tuple[Object, ...] | list[Object], name: str) -> list[str]:
    return [each["type"] for each in changes if each["object"]["metadata"]["name"] == name]


def test_changes_are_complete_though_watches_end_early(world: World, kinds: ControlPlane) -> None:
    since = world.version()
    lived(world, "one")
    with Brief(kinds.server, world.tls).running() as proxy:
        behind = replace(world, server=proxy.url)
        assert LIFE == types(behind.changes(MAPS, since=since), "one")
        assert not proxy.limits


def test_a_recording_has_each_change_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "READ_SECONDS", 0.1)
    names = [f"map-{number}" for number in range(10)]
    with recording(world, (MAPS, Deployment.KIND)) as changes:
        for name in names:
            lived(world, name)
        recorded = changes()
    assert dict.fromkeys(names, LIFE) == {name: types(recorded[MAPS], name) for name in names}
    assert [] == recorded[Deployment.KIND]
