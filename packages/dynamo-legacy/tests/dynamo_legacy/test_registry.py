"""Registries that answer, ask for a token, refuse, are busy, break, or never answer."""

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dynamo_legacy import registry as program
from dynamo_legacy.build.plan import Probe
from dynamo_legacy.build.source import BuiltImage, Reference
from dynamo_legacy.registry import (
    UNANSWERED,
    Login,
    Registry,
    RegistryError,
    RegistryProbe,
    is_public,
    login_of,
    registry_session,
)
from dynamo_legacy.settings import LegacySettings, Secret, cluster_networks

DEEP = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
"""More levels than any version of Python decodes."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Handler], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a server with one handler, and returns its host."""
    servers: list[TestServer] = []

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return f"127.0.0.1:{server.port}"

    yield start
    for each in servers:
        await each.close()


def answering(asked: list[str], status: int = 200, **headers: str) -> Handler:
    """A handler with one answer, which notes the method, the path and the login of each request."""

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path} {request.headers.get('Authorization')}")
        return web.Response(status=status, headers=headers)

    return answer


async def has_image(host: str, login: Login | None = None) -> bool:
    async with registry_session() as session:
        reference = Reference(host, "team/app", "1")
        return await Registry(session, reference, is_insecure=True, login=login).has_image()


async def probed(host: str, *, is_own: bool = True, is_insecure: bool = True, **settings: Any) -> Probe:
    """What the operator finds out about the image of a tenant at that registry."""
    name = f"{host}/team/app:1"
    image = BuiltImage(name, name, is_insecure=is_insecure, secret="", is_own=is_own)
    return await RegistryProbe().asked(image, LegacySettings(**settings))


@pytest.mark.parametrize(("status", "exists"), [(200, True), (404, False)])
async def test_it_says_whether_an_image_exists(serve: Serve, status: int, exists: bool) -> None:
    asked: list[str] = []
    assert exists == await has_image(await serve(answering(asked, status)))
    assert ["HEAD /v2/team/app/manifests/1 None"] == asked


async def test_it_gets_a_token_with_the_login_and_shows_only_the_token(serve: Serve) -> None:
    seen = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.path, request.headers.get("Authorization", "")))
        if request.path == "/token":
            assert "repository:team/app:pull" == request.query["scope"]
            return web.json_response({"token": "t"})
        if request.headers.get("Authorization") == "Bearer t":
            return web.Response()
        realm = f"http://{request.host}/token"
        challenge = f'Bearer realm="{realm}",service="s"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    assert await has_image(await serve(answer), Login("me", "pw"))
    basic = "Basic " + base64.b64encode(b"me:pw").decode()
    path = "/v2/team/app/manifests/1"
    assert [(path, ""), ("/token", basic), (path, "Bearer t")] == seen


@pytest.mark.parametrize(
    ("status", "headers", "text", "seconds"),
    [
        (401, {}, "credentials", 60),
        (403, {}, "status 403", 60),
        (429, {"Retry-After": "7"}, "too many requests", 7),
        (429, {"Retry-After": "0"}, "too many requests", 5),
        (429, {"Retry-After": "9" * 400}, "too many requests", 3600),
        (500, {}, "status 500", 60),
        (302, {"Location": "http://169.254.169.254/"}, "status 302", 60),
    ],
)
async def test_every_other_answer_is_an_error_in_one_line(
    serve: Serve, status: int, headers: dict[str, str], text: str, seconds: float
) -> None:
    host = await serve(answering([], status, **headers))
    with pytest.raises(RegistryError, match=text) as raised:
        await has_image(host)
    assert seconds == raised.value.retry_seconds
    found = await probed(host, is_own=False)
    assert Probe(error=UNANSWERED, retry_seconds=seconds) == found


async def test_a_manifest_and_a_token_that_are_nested_deeply_are_errors(serve: Serve) -> None:
    async def manifest(_: web.Request) -> web.Response:
        return web.Response(body=DEEP)

    async def token(request: web.Request) -> web.Response:
        realm = f'Bearer realm="http://{request.host}/token",service="s"'
        is_token = request.path == "/token"
        headers = {} if is_token else {"WWW-Authenticate": realm}
        return web.Response(body=DEEP, status=200 if is_token else 401, headers=headers)

    async with registry_session() as session:
        for handler, text in ((manifest, "the manifest is not JSON"), (token, "token service")):
            reference = Reference(await serve(handler), "team/app", "1")
            with pytest.raises(RegistryError, match=text):
                await Registry(session, reference, is_insecure=True).manifest()


async def test_a_registry_that_never_answers_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    monkeypatch.setattr(program, "SECONDS", 0.2)
    with pytest.raises(RegistryError, match="no answer"):
        await has_image(await serve(answer))


async def test_an_endless_answer_is_cut(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/token":
            return web.Response(body=bytes(5 * 1024 * 1024))
        challenge = f'Bearer realm="http://{request.host}/token"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    with pytest.raises(RegistryError, match="too large"):
        await has_image(await serve(answer))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0", "localhost", "localhost.localdomain"]
)
async def test_a_tenants_registry_may_not_be_an_address_inside(serve: Serve, host: str) -> None:
    asked: list[str] = []
    port = (await serve(answering(asked))).rpartition(":")[2]
    found = await probed(f"{host}:{port}")
    assert not found.exists
    assert [] == asked
    closed = await probed(f"{host}:1")
    assert closed == found  # an open port is not distinguished from a closed one


async def test_a_private_registry_is_asked_if_the_administrator_lists_it(serve: Serve) -> None:
    host = await serve(answering([]))
    assert not (await probed(host)).exists
    assert not (await probed(host, known_registries="127.0.0.1:1")).exists
    assert (await probed(host, known_registries=f"harbor.corp,{host}")).exists


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name is one of this machine."""

    async def resolve(_: object, host: str, port: int = 0, **__: object) -> list[dict[str, object]]:
        address = {"host": "127.0.0.1", "port": port, "family": socket.AF_INET}
        return [{"hostname": host, **address, "proto": 0, "flags": 0}]

    monkeypatch.setattr("aiohttp.resolver.ThreadedResolver.resolve", resolve)


@pytest.mark.usefixtures("names")
async def test_a_name_that_points_inside_is_not_connected_to(serve: Serve) -> None:
    asked: list[str] = []
    port = (await serve(answering(asked))).rpartition(":")[2]
    assert Probe() == await probed(f"registry.example:{port}")
    assert [] == asked


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("listed", ["", "other.example", "internal.example"])
async def test_tokens_come_from_the_registry_or_a_listed_host_only(serve: Serve, listed: str) -> None:
    """The registry of a tenant sends the operator to a service inside, and asks for its answer."""
    seen = []

    async def registry(request: web.Request) -> web.Response:
        seen.append((request.host, request.path, request.headers.get("Authorization", "")))
        if request.path.startswith("/admin"):
            return web.json_response({"token": "of-an-internal-service"})
        if request.headers.get("Authorization"):
            return web.Response()
        realm = f"http://internal.example:{port}/admin/delete?confirm=yes"
        return web.Response(status=401, headers={"WWW-Authenticate": f'Bearer realm="{realm}"'})

    port = (await serve(registry)).rpartition(":")[2]

    host = f"tenant.example:{port}"
    is_listed = listed == "internal.example"
    found = await probed(host, known_registries=f"{host}={listed}" if listed else host)
    assert is_listed == found.exists
    assert is_listed == any(path.startswith("/admin") for _, path, _ in seen)
    assert is_listed == any("internal" in authorization for *_, authorization in seen)


def challenging(monkeypatch: pytest.MonkeyPatch, realm: str) -> list[str]:
    """Every registry asks for a token of that realm. Returns the URLs of requests, without their queries."""
    sent = []

    async def send(self: Registry, method: str, url: str, authorization: str) -> object:
        sent.append(url.partition("?")[0])
        if sent[-1] == realm:
            return 200, {}, b'{"token": "t"}'
        status = 200 if authorization == "Bearer t" else 401
        return status, {"WWW-Authenticate": f'Bearer realm="{realm}",service="s"'}, b""

    monkeypatch.setattr(Registry, "_send", send)
    return sent


@pytest.mark.parametrize(
    ("registry", "realm"),
    [
        ("docker.io", "https://auth.docker.io/token"),
        ("nvcr.io", "https://nvcr.io/proxy_auth"),
        ("nvcr.io", "https://authn.nvidia.com/token"),
        ("registry.gitlab.com", "https://gitlab.com/jwt/auth"),
        ("git.example.com:5050", "https://git.example.com/jwt/auth"),
        ("Registry.Example.COM", "https://registry.example.com/token"),
    ],
)
async def test_registries_get_tokens_where_they_issue_them(
    monkeypatch: pytest.MonkeyPatch, registry: str, realm: str
) -> None:
    sent = challenging(monkeypatch, realm)
    assert (await probed(registry, is_insecure=False)).exists
    assert sent[1] == realm


@pytest.mark.parametrize(
    "realm",
    [
        "http://registry.example.com/token",
        "https://auth.example.com/token",
        "https://registry.example.com.evil/token",
        "https://registry.example.com@evil/token",
        "https://registry.example.com\\@evil/token",
        "https://evil#registry.example.com",
        "https://auth.docker.io/token",
        "https://[127.0.0.1/token",
        "//registry.example.com/token",
        "https:///token",
        "",
    ],
)
async def test_no_other_realm_is_followed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], realm: str
) -> None:
    sent = challenging(monkeypatch, realm)
    assert UNANSWERED == (await probed("registry.example.com", is_own=False, is_insecure=False)).error
    assert ["https://registry.example.com/v2/team/app/manifests/1"] == sent
    assert "its token" in capsys.readouterr().out


async def test_the_administrators_login_reaches_no_registry_of_a_tenant(serve: Serve) -> None:
    seen: list[str] = []
    host = await serve(answering(seen, 401, **{"WWW-Authenticate": "Basic"}))
    login: dict[str, Any] = {"registry_username": "u", "registry_password": Secret("p")}
    assert Probe() == await probed(host, known_registries=host, **login)
    assert ["HEAD /v2/team/app/manifests/1 None"] == seen


@pytest.mark.parametrize(
    ("is_expected", "addresses"),
    [
        (True, ["8.8.8.8", "198.51.101.7", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]),
        (False, ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1"]),
        (False, ["127.0.0.1", "127.1", "2130706433", "localhost", "0.0.0.0", "::1", "::7f00:1"]),  # noqa: S104
        (False, ["169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"]),
        (False, ["224.0.0.1", "255.255.255.255", "ff02::1", "fe80::1%eth0", "fec0::1", "fc00::1"]),
        (False, ["::ffff:127.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:a00:1::"]),
        (False, ["198.51.102.7", "2600:1f18::7"]),
    ],
    ids=["public", "private", "loopback", "metadata", "multicast and local", "embedded", "of the cluster"],
)
def test_addresses_inside_are_known(is_expected: bool, addresses: list[str]) -> None:
    cluster = cluster_networks("198.51.102.0/24, 2600:1f18::/32")
    answers = {address: is_public(address, cluster) for address in addresses}
    assert dict.fromkeys(addresses, is_expected) == answers


def test_the_login_of_a_host_is_found_in_a_docker_configuration() -> None:
    auth = base64.b64encode(b"u:p").decode()
    config = f'{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{auth}"}}}}}}'.encode()
    assert Login("u", "p") == login_of(config, "docker.io")
    assert None is login_of(config, "quay.io")
    assert None is login_of(b"[", "quay.io")
    assert None is login_of(DEEP, "quay.io")
    assert "p" not in repr(Login("u", "p")).replace("Login", "")
