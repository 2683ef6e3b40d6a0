"""Registries that answer, ask for a token, refuse, are busy, break, or never answer."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dynamo_legacy.build.image import Reference
from dynamo_legacy.build.plan import Probe
from dynamo_operator.legacy.registry import (
    Login,
    Registry,
    RegistryError,
    is_outside,
    login_of,
    registry_session,
)

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


async def probed(host: str, login: Login | None = None, *, only_outside: bool = False) -> Probe:
    """What a registry says of an image."""
    async with registry_session(only_outside=only_outside) as session:
        reference = Reference(host, "team/app", "1")
        return await Registry(session, reference, is_insecure=True, login=login).probe()


@pytest.mark.parametrize(("status", "exists"), [(200, True), (404, False)])
async def test_it_says_whether_an_image_exists(serve: Serve, status: int, exists: bool) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append((request.method, request.path))
        return web.Response(status=status)

    assert Probe(exists=exists) == await probed(await serve(answer))
    assert [("HEAD", "/v2/team/app/manifests/1")] == asked


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

    assert Probe(exists=True) == await probed(await serve(answer), Login("me", "pw"))
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
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers)

    found = await probed(await serve(answer))
    assert text in found.error
    assert (False, seconds) == (found.exists, found.retry_seconds)


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
    import asyncio

    from dynamo_operator.legacy import registry

    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    monkeypatch.setattr(registry, "SECONDS", 0.2)
    assert "no answer" in (await probed(await serve(answer))).error


async def test_an_endless_answer_is_cut(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/token":
            return web.Response(body=bytes(5 * 1024 * 1024))
        challenge = f'Bearer realm="http://{request.host}/token"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    assert "too large" in (await probed(await serve(answer))).error


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0", "localhost", "localhost.localdomain"],
)
async def test_a_tenants_registry_may_not_be_an_address_inside(serve: Serve, host: str) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    port = (await serve(answer)).rpartition(":")[2]
    assert (await probed(f"{host}:{port}", only_outside=True)).error
    assert [] == asked


@pytest.mark.parametrize(
    "realm",
    [
        "http://127.0.0.1:{}/token",
        "http://127.1:{}/token",
        "http://[::ffff:127.0.0.1]:{}/token",
        "http://\uff11\uff12\uff17.0.0.1:{}/token",
        "http://[127.0.0.1:{}/token",
    ],
)
async def test_a_token_service_inside_is_not_asked(serve: Serve, realm: str) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    port = (await serve(answer)).rpartition(":")[2]
    async with registry_session(only_outside=True) as session:
        registry = Registry(session, Reference("r.example.com", "a", "1"), is_insecure=True)
        with pytest.raises(RegistryError):
            await registry._authorization_for(f'Bearer realm="{realm.format(port)}",service="s"')
    assert [] == asked


async def test_the_reason_is_said(serve: Serve) -> None:
    found = await probed("127.0.0.1:5000", only_outside=True)
    assert "the operator does not connect to such addresses" in found.error


@pytest.mark.parametrize(
    ("address", "outside"),
    [
        ("10.0.0.1", True),
        ("2001:db8::1", True),
        ("127.0.0.1", False),
        ("127.1", False),
        ("2130706433", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00:ec2::254", False),
        ("::ffff:127.0.0.1", False),
        ("0.0.0.0", False),  # noqa: S104
        ("localhost", False),
    ],
)
def test_addresses_inside_are_known(address: str, outside: bool) -> None:
    assert outside == is_outside(address)


def test_the_login_of_a_host_is_found_in_a_docker_configuration() -> None:
    auth = base64.b64encode(b"u:p").decode()
    config = f'{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{auth}"}}}}}}'.encode()
    assert Login("u", "p") == login_of(config, "docker.io")
    assert None is login_of(config, "quay.io")
    assert None is login_of(b"[", "quay.io")
    assert None is login_of(DEEP, "quay.io")
    assert "p" not in repr(Login("u", "p")).replace("Login", "")
