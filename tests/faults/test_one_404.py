"""One of several API servers may not know a kind for a moment: running pods must not be affected."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.graph.test_graph import DEPLOYMENT, GRAPH
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from faults.proxy import Proxy, cut, kubeconfig

pytestmark = pytest.mark.cluster


@dataclass
class Forgetful(Proxy):
    """A proxy that can pretend to know no Deployments for one watch."""

    is_next_unknown: bool = False

    async def met(self, request: web.Request) -> web.StreamResponse | None:
        if self.is_next_unknown and is_watch_of_deployments(request):
            self.is_next_unknown = False
            return web.Response(status=404, text="404 page not found")
        return None

    def forget(self) -> None:
        """Cut the watches of Deployments, and answer the next one with 404."""
        self.is_next_unknown = True
        for each in filter(is_watch_of_deployments, tuple(self.streams)):
            self.loop.call_soon_threadsafe(cut, each)


def is_watch_of_deployments(request: web.Request) -> bool:
    return "watch" in request.query and request.path.endswith("/deployments")


def test_one_404_on_a_watch_changes_no_status(world: World, kinds: ControlPlane, tmp_path: Path) -> None:
    with Forgetful(kinds.server, world.tls).running() as proxy:
        config = kubeconfig(proxy, tmp_path / "config")
        flags = (*OFF, f"--restrictedNamespace={world.namespace}")
        with OperatorProcess(config, tmp_path / "operator.log", flags) as operator:
            operator.ready()
            world.create(GRAPH, graph(Frontend=service("frontend")))
            before = world.eventually(GRAPH, "chat", is_ready)
            proxy.forget()

            def is_answered() -> bool:
                now = world.get(GRAPH, "chat")
                assert now is not None
                assert before["status"] == now["status"]
                return not proxy.is_next_unknown

            world.until(is_answered)
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                assert is_answered()
                time.sleep(0.1)
            world.delete(DEPLOYMENT, "chat-frontend")
            world.eventually(DEPLOYMENT, "chat-frontend")
            assert operator.ended is None
