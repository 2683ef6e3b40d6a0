"""The kubelet's API, which the API server asks for `kubectl logs`, `exec` and `port-forward`."""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from devcluster.kubelet.containers import Container
from devcluster.kubelet.egress import SIMULATED

_BAD_REQUEST = 400  # the API server passes its text on
_FOLLOW_SECONDS = 0.2
_CHUNK = 1 << 16
_INSTEAD = {"portForward": "; use `dynamoctl port-forward GRAPH`"}

Find = Callable[[str, str, str], Container | None]
"""Namespace, pod, container ("" is any) → the container, if it is a local process."""


def application(find: Find) -> web.Application:
    """The API of all nodes of an instance."""

    def container_of(request: web.Request) -> Container | None:
        names = request.match_info
        return find(names["namespace"], names["pod"], names["container"])

    async def logs(request: web.Request) -> web.StreamResponse:
        container = container_of(request)
        if container is None:
            return web.Response(status=_BAD_REQUEST, text=SIMULATED)
        file = container.log(previous=request.query.get("previous") == "true")
        if not file.exists():
            return web.Response(status=_BAD_REQUEST, text=f"container {container.state.name} has no such log")
        return await _logged(request, container, file)

    async def refuse(request: web.Request) -> web.Response:
        verb, namespace, pod, *rest = [*request.match_info["path"].split("/"), "", "", ""]
        if find(namespace, pod, rest[0]) is None:
            return web.Response(status=_BAD_REQUEST, text=SIMULATED)
        text = f"{verb} is not supported: the pod is a local process, not a container{_INSTEAD.get(verb, '')}"
        return web.Response(status=_BAD_REQUEST, text=text)

    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", logs)
    app.router.add_route("*", "/{path:.*}", refuse)
    return app


async def _logged(request: web.Request, container: Container, file: Path) -> web.StreamResponse:
    query = request.query
    strips = query.get("timestamps") != "true"
    since = query.get("sinceTime", "")
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    with file.open("rb") as lines:
        text = deque(lines, int(query["tailLines"])) if "tailLines" in query else lines
        for line in text:
            if line[:19] >= since[:19].encode():
                await response.write(_shown(line, strips=strips))
        while query.get("follow") == "true" and (
            container.log() == file and "running" in container.state.state
        ):
            while line := lines.readline():
                await response.write(_shown(line, strips=strips))
            await asyncio.sleep(_FOLLOW_SECONDS)
    await response.write_eof()
    return response


def _shown(line: bytes, *, strips: bool) -> bytes:
    return line.partition(b" ")[2] if strips else line


async def serve(
    app: web.Application, listening: socket.socket, certificate: tuple[Path, Path]
) -> web.AppRunner:
    """Serve it with TLS, as the API server expects."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await asyncio.shield(web.SockSite(runner, listening, ssl_context=tls).start())
    return runner
