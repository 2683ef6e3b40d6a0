"""`dynamoctl port-forward`: a local port whose HTTP requests go to the frontend of a graph.

Each request goes through the API server's proxy of Services, so pods may come and go meanwhile.

Requests carry the user's permissions in the cluster, and any page in the user's browser can send some to a
local port. So those that a page of another origin caused are refused, and those to a host name that is not
ours, as after DNS rebinding.
"""

import asyncio
import signal
import sys
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from dynamo_graphs.frontend import Frontend, frontend_of
from dynamo_graphs.reader import GRAPHS
from dynamoctl.options import Where
from dynamoctl.target import target_of
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ConfigError, Invalid, OperatorError, visible

_LARGEST_BYTES = 64 * 1024**2
"""Most bytes of a request: images of multimodal prompts are the largest."""

_BAD_GATEWAY = 502
_BAD_REQUEST = 400
_FORBIDDEN = 403

_SAME_PAGE = ("same-origin", "none")
"""Values of Sec-Fetch-Site of a page of this port, and of a user who types the address."""


async def forward(name: str, where: Where, *, port: int, address: str) -> ExitCode:
    """Forward until Ctrl-C. Port 0 is any free one."""
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
