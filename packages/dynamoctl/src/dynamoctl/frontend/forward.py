"""`dynamoctl port-forward`: a local port whose HTTP requests go to the frontend of a graph.

Each request goes through the API server's proxy of Services, so pods may come and go meanwhile.

Requests carry the user's permissions in the cluster, and any page in the user's browser can send some to a
local port. So those that a page of another origin caused are refused, and those to a host name that is not
ours, as after DNS rebinding.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import label_value
from dynamoctl.cluster.target import GRAPHS, Missing, Target, target_of
from dynamoctl.options import Where
from kube_runtime.client.client import (
    MOST_ANSWER_BYTES,
    Answer,
    Request,
    Transport,
    error_of_answer,
)
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.decode import UNREADABLE
from kube_runtime.errors import ConfigError, Invalid, OperatorError
from kube_runtime.types.kinds import Service
from kube_runtime.types.meta import Struct
from kube_runtime.url_path import UrlPath, path_of, proxied

_OK = range(200, 300)


# This needs the permissions `get` and `create` for `services/proxy`, and no network route to the
# pods.
class _Port(Struct):
    """A port of a Service; "" as name if it has none."""

    port: int
    name: str = ""


class _ServiceSpec(Struct):
    """The ports of a Service."""

    ports: tuple[_Port, ...] = ()


@dataclass(frozen=True, slots=True)
class Frontend:
    """The Service of a frontend, and the path of its proxy in the API server."""

    transport: Transport
    service: str
    port: int
    path: UrlPath

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Send a request; the answer, whatever its status, may still be arriving.

        The query in `path` is sent as it is written.

        Raises:
            Invalid: the path leads out of the Service.
            Unreachable: the API server does not answer.
        """
        request = Request(
            method,
            proxied(self.path, path),
            body=body,
            content_type=content_type,
            timeout_seconds=None,
            accept="*/*",
        )
        return await self.transport.send(request)

    async def json(self, path: str) -> object:
        """The JSON at a path of the frontend.

        Raises:
            ApiError: the frontend, or the API server in front of it, answers with an error.
            Missing: the answer is not JSON.
        """
        async with self.answered("GET", path) as answer:
            body = await answer.read(MOST_ANSWER_BYTES)
        try:
            return msgspec.json.decode(body)
        except UNREADABLE as error:
            raise Missing(f"{self.service}{path} is not JSON: {error}") from error

    @asynccontextmanager
    async def answered(
        self, method: str, path: str, body: bytes | None = None
    ) -> AsyncIterator[Answer]:
        """A successful answer, closed afterwards.

        Raises:
            ApiError: the frontend, or the API server in front of it, answers with an error.
        """
        answer = await self.send(method, path, body=body)
        try:
            if answer.status not in _OK:
                text = await answer.read_error()
                raise error_of_answer(answer.status, answer.headers, text)
            yield answer
        finally:
            await answer.aclose()


async def frontend_of(at: Target[DynamoGraphDeployment]) -> Frontend:
    """The frontend of a graph.

    Raises:
        Missing: the graph does not exist, or has no frontend, or that has no Service yet.
    """
    graph = await at.get()
    keys = [key for key, it in graph.spec.services.items() if it.component_type == "frontend"]
    if not keys:
        raise Missing(f"graph {graph.key} has no service of componentType frontend")
    selector = ",".join(
        (
            f"{labels.GRAPH}={label_value(graph.metadata.name)}",
            f"{labels.COMPONENT}={label_value(min(keys))}",
        )
    )
    for service in await at.reading.all(Service, namespace=at.key.namespace, labels=selector):
        ports = msgspec.json.decode(service.spec, type=_ServiceSpec).ports
        named = [port for port in ports if port.name == "http"] or list(ports)
        if named:
            name, port = service.metadata.name, named[0].port
            path = path_of(Service.KIND, at.key.namespace, f"http:{name}:{port}", "proxy")
            return Frontend(at.reading.transport, name, port, path)
    raise Missing(
        f"the frontend of graph {graph.key} has no Service yet; see `dynamoctl why {graph.metadata.name}`"
    )


_LARGEST_BYTES = 64 * 1024**2
"""Most bytes of a request: images of multimodal prompts are the largest."""

_BAD_GATEWAY = 502
_BAD_REQUEST = 400
_FORBIDDEN = 403

_SAME_PAGE = ("same-origin", "none")
"""Values of Sec-Fetch-Site of a page of this port, and of a user who types the address."""


async def forward(name: str, where: Where, *, port: int, address: str) -> ExitCode:
    """Forward until Ctrl-C. Port 0 is any free one.

    Raises: CycloptsError; OperatorError.
    """
    async with target_of(name, where, GRAPHS) as at:
        frontend = await frontend_of(at)
        runner = web.AppRunner(application_of(frontend, address), access_log=None)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, address, port).start()
            except (OSError, UnicodeError) as error:  # a name that is too long cannot be encoded
                reason = error.strerror if isinstance(error, OSError) else error
                raise ConfigError(f"{address}:{port}", f"cannot listen: {reason}") from error
            opened = runner.addresses[0][1]
            print(f"http://{address}:{opened}", flush=True)
            to = visible(f"{at.key}, service {frontend.service}:{frontend.port}")
            print(f"forwarding to {to}; Ctrl-C ends it", file=sys.stderr)
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            await stop.wait()
        finally:
            await runner.cleanup()
    return ExitCode.OK


def application_of(frontend: Frontend, address: str) -> web.Application:
    """A web application that hands every request to the frontend; `address` is where it listens."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if refusal := _refusal(request, address):
            return web.json_response({"error": refusal}, status=_FORBIDDEN)
        try:
            answer = await frontend.send(
                request.method,
                request.raw_path,
                body=await request.read() or None,
                content_type=request.content_type,
            )
        except Invalid as error:
            return web.json_response({"error": str(error)}, status=_BAD_REQUEST)
        except OperatorError as error:
            return web.json_response({"error": str(error)}, status=_BAD_GATEWAY)
        try:
            kind = answer.headers.get("content-type", "application/octet-stream")
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
            await response.prepare(request)
            async for chunk in answer.body:
                await response.write(chunk)
            await response.write_eof()
            return response
        finally:
            await answer.aclose()

    app = web.Application(client_max_size=_LARGEST_BYTES)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


def _refusal(request: web.Request, address: str) -> str:
    """Why a request is not forwarded; "" if it is."""
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    if not _is_ours(host, address):
        return f'invalid Host "{host}" (expected localhost or an IP address)'
    if origin is not None and origin.lower() != f"http://{host}".lower():
        return f'requests from pages of origin "{origin}" are refused'
    if request.headers.get("Sec-Fetch-Site", "none") not in _SAME_PAGE:
        return "requests from pages of another origin are refused"
    return ""


def _is_ours(host: str, address: str) -> bool:
    """Whether no DNS server decides where a browser finds this host."""
    try:
        name = urlsplit(f"http://{host}").hostname or ""
        if name in ("localhost", address.lower()):
            return True
        ip_address(name)
    except ValueError:
        return False
    return True
