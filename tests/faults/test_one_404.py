"""One of several API servers may not know a kind for a moment: that is no reason to doubt what runs."""

import asyncio
import random
import time
from pathlib import Path

import pytest
from aiohttp import web

from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.graph.test_graph import DEPLOYMENT, GRAPH, is_ready
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from faults.proxy import FaultyProxy, kubeconfig

pytestmark = pytest.mark.cluster


class Behind(FaultyProxy):
    """A proxy that knows no Deployments for one watch, when told to."""

    is_next_unknown = False
    streams: tuple[web.Request, ...] = ()
    loop: asyncio.AbstractEventLoop

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query and request.path.endswith("/deployments"):
            if self.is_next_unknown:
                self.is_next_unknown = False
                return web.Response(status=404, text="404 page not found")
            self.streams = (*self.streams, request)
            self.loop = asyncio.get_running_loop()
        return await super()._forward(request)

    def forget(self) -> None:
        """Cut the watches of Deployments, and answer the next one with 404."""
        self.is_next_unknown = True
        for each in self.streams:
            if each.transport is not None:
                self.loop.call_soon_threadsafe(each.transport.abort)


@pytest.mark.timeout(90)
def test_one_404_on_a_watch_changes_no_status(
    world: World, kinds: ControlPlane, tmp_path: Path
) -> None:
    proxy = Behind(kinds.server, world.tls, random.Random(1), is_faulty=False)  # noqa: S311
    with proxy.running():
        config = kubeconfig(proxy, tmp_path / "config")
        flags = (*OFF, f"--restrictedNamespace={world.namespace}")
        with OperatorProcess(config, tmp_path / "operator.log", flags) as operator:
            operator.ready()
            world.create(GRAPH, graph(Frontend=service("frontend")))
            before = world.eventually(GRAPH, "chat", is_ready)
            proxy.forget()
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                now = world.get(GRAPH, "chat")
                assert now is not None
                assert before["status"] == now["status"]
                time.sleep(0.1)
            assert not proxy.is_next_unknown
            world.delete(DEPLOYMENT, "chat-frontend")
            world.eventually(DEPLOYMENT, "chat-frontend")
            assert operator.ended is None
