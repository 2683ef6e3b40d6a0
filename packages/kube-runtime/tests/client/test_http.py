"""The transport to a real server: TLS, renewed credentials, long lines, and one clear line per failure."""

import asyncio
import gc
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from blockbuster import blockbuster_ctx
from cryptography.hazmat.primitives import serialization

from kube_runtime.client.client import MOST_ANSWER_BYTES, Client, Request
from kube_runtime.client.http import (
    TLS_BUFFER_BYTES,
    AiohttpTransport,
    ClientConfig,
    InCluster,
    TlsMaterial,
    is_in_cluster,
)
from kube_runtime.errors import ConfigError, NoAnswer, Unauthorized, Unreachable
from kube_runtime.types.kinds import Deployment
from kube_runtime.wire import proxied, url_path
from scripted.server import an_authority, server_tls, serving
from scripted.transport import Plain

GET = Request("GET", url_path("x"))
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def hello(request: web.Request) -> web.Response:
    return web.json_response({"hello": request.path, "query": request.query_string})


async def answer_of(credentials: Plain, request: Request = GET) -> tuple[int, bytes]:
    async with AiohttpTransport(credentials) as transport:
        answer = await transport.send(request)
        return answer.status, await answer.read(MOST_ANSWER_BYTES)


async def test_each_group_of_an_impersonated_user_is_a_header_of_its_own() -> None:
    seen: list[tuple[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.extend(
            (name, value) for name, value in request.headers.items() if name.startswith("Impersonate-")
        )
        return web.Response()

    headers = [("Impersonate-User", "jane"), ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops")]
    async with serving(handler) as url, AiohttpTransport(Plain(url), headers=headers) as transport:
        await (await transport.send(GET)).read(MOST_ANSWER_BYTES)
    assert headers == seen


async def test_a_limit_of_all_requests_shortens_theirs_and_that_of_watches() -> None:
    async def handler(_: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async with serving(handler) as url, AiohttpTransport(Plain(url), request_seconds=0.1) as transport:
        for seconds in (None, 30.0):
            with pytest.raises(NoAnswer, match=r"within 0\.1 s"):
                await transport.send(Request("GET", url_path("x"), timeout_seconds=seconds))


async def test_a_request_reaches_the_server_as_it_is() -> None:
    seen: list[web.Request] = []
    bodies: list[bytes] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        bodies.append(await request.read())
        response = web.Response(status=409, headers={"X-Some": "1"}, body=b"no")
        response.set_cookie("session", "1")
        return response

    request = Request("PATCH", url_path("a", "b"), {"labelSelector": "a in (b,c),d=e+f"}, b"{}", "text/x")
    async with serving(handler) as url, AiohttpTransport(Plain(url, ["t"])) as transport:
        for _ in range(2):
            answer = await transport.send(request)
            assert (409, "1", b"no") == (
                answer.status,
                answer.headers["x-some"],
                await answer.read(MOST_ANSWER_BYTES),
            )
    first, second = seen
    assert ("PATCH", url_path("a", "b"), "a in (b,c),d=e+f") == (
        first.method,
        first.path,
        first.query["labelSelector"],
    )
    assert "Bearer t" == first.headers["Authorization"]
    assert "gzip" == first.headers["Accept-Encoding"]
    assert "text/x" == first.headers["Content-Type"]
    assert first.headers["User-Agent"].startswith("kube-runtime")
    assert [b"{}", b"{}"] == bodies
    assert {} == dict(second.cookies)


async def test_a_query_arrives_as_it_is_whatever_a_user_has_typed() -> None:
    seen: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append({**request.query})
        return web.Response()

    typed = {"labelSelector": "a in (b,c),!d=\u00e4/ +&%?#"}
    not_utf_8 = {"fieldSelector": "metadata.name=\udcff"}
    async with serving(handler) as url:
        for query in (typed, not_utf_8):
            await answer_of(Plain(url), Request("GET", url_path("x"), query))
        await answer_of(Plain(url), Request("GET", proxied(url_path("x"), "/y?z=1"), typed))
    assert [typed, {"fieldSelector": "metadata.name=?"}, {"z": "1", **typed}] == seen


async def test_connections_notice_when_the_other_end_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    options: set[tuple[int, int]] = set()

    class Recorded(socket.socket):
        def setsockopt(self, level: int, option: int, value: Any, *more: Any) -> None:
            options.add((option, value))
            super().setsockopt(level, option, value, *more)

    async with serving(hello) as url:
        monkeypatch.setattr("kube_runtime.client.http.socket.socket", Recorded)
        await answer_of(Plain(url))
    assert (socket.SO_KEEPALIVE, 1) in options
    assert {(socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10)} <= options


async def test_a_compressed_answer_is_unpacked() -> None:
    async def handler(request: web.Request) -> web.Response:
        response = web.Response(body=b"x" * 500_000)
        response.enable_compression()
        return response

    async with serving(handler) as url:
        assert (200, b"x" * 500_000) == await answer_of(Plain(url))


async def test_a_redirect_is_not_followed_with_our_credentials() -> None:
    paths: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with serving(handler) as url:
        assert 302 == (await answer_of(Plain(url, ["t"])))[0]
    assert ["/x"] == paths


def only(token: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        good = request.headers.get("Authorization") == f"Bearer {token}"
        return web.Response(status=200 if good else 401)

    return handler


async def test_a_refused_token_is_renewed_once_for_all_who_wait_and_bodies_are_repeated_whole() -> None:
    bodies: list[bytes] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.read())
        return await only("new")(request)

    async with serving(handler) as url:
        credentials = Plain(url, ["old", "new"])
        async with AiohttpTransport(credentials) as transport:
            request = Request("POST", url_path("x"), body=b"{}")
            answers = await asyncio.gather(*(transport.send(request) for _ in range(20)))
            for answer in answers:
                await answer.aclose()
    assert {200} == {answer.status for answer in answers}
    assert 1 == credentials.refreshed
    assert {b"{}"} == set(bodies)


async def test_a_refusal_that_nothing_renews_is_the_answer() -> None:
    count = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return web.Response(status=401, text="Unauthorized")

    async with serving(handler) as url, AiohttpTransport(Plain(url, ["t"])) as transport:
        with pytest.raises(Unauthorized):
            await Client(transport).get_json("x")
    assert 1 == count


async def test_a_failed_renewal_of_credentials_is_unreachable() -> None:
    class Broken(Plain):
        async def refresh(self) -> None:
            raise ConfigError("/some/kubeconfig", "exec plugin x: exploded")

    async with serving(only("t")) as url, AiohttpTransport(Broken(url)) as transport:
        with pytest.raises(Unreachable, match=r"^credentials: /some/kubeconfig: exec plugin x"):
            await transport.send(GET)


async def test_nothing_listens_and_a_name_that_does_not_exist() -> None:
    async with serving(hello) as url:
        pass
    with pytest.raises(Unreachable) as caught:
        await answer_of(Plain(url))
    address = url.removeprefix("http://")
    assert f"{url}: nothing listens on {address}: connection refused" == str(caught.value)
    with pytest.raises(Unreachable, match=r"the name nowhere\.invalid cannot be resolved"):
        await answer_of(Plain("https://nowhere.invalid"))


async def test_a_server_that_does_not_answer_in_time() -> None:
    released = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with serving(handler) as url:
        with pytest.raises(NoAnswer, match=r"no answer to GET /x within 0\.1 s") as raised:
            await answer_of(Plain(url), Request("GET", url_path("x"), timeout_seconds=0.1))
        assert 0.1 == raised.value.waited_seconds
        released.set()


async def test_an_answer_that_is_cut() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with serving(handler) as url:
        with pytest.raises(Unreachable, match="GET /x"):
            await answer_of(Plain(url))


async def test_a_server_of_a_strange_authority_is_not(tmp_path: Path) -> None:
    stranger = an_authority(tmp_path / "stranger", "an unknown CA")
    context = TlsMaterial(stranger.pem).context("test")
    async with serving(hello, server_tls(an_authority(tmp_path / "ours"))) as url:
        with pytest.raises(Unreachable) as caught:
            await answer_of(Plain(url, tls=context))
        with pytest.raises(Unreachable, match="is not trusted"):
            await answer_of(Plain(url))  # the system's authorities know it neither
    assert str(caught.value).startswith(f"{url}: the certificate of 127.0.0.1 is not trusted: ")
    assert "\n" not in str(caught.value)


async def test_a_certificate_for_another_name(tmp_path: Path) -> None:
    authority = an_authority(tmp_path)
    context = TlsMaterial(authority.pem).context("test")
    async with serving(hello, server_tls(authority)) as url:
        with pytest.raises(Unreachable, match=r"not valid for 'other\.example'"):
            await answer_of(Plain(url, tls=context, tls_server_name="other.example"))
        assert 200 == (await answer_of(Plain(url, tls=context, tls_server_name="localhost")))[0]


async def test_plain_text_where_tls_is_expected() -> None:
    context = TlsMaterial(verify=False).context("test")
    async with serving(hello) as url:
        with pytest.raises(Unreachable, match=r"no TLS connection to 127\.0\.0\.1"):
            await answer_of(Plain(url.replace("http:", "https:"), tls=context))


@pytest.mark.stalls  # it looks at every object of the process
async def test_a_tls_connection_holds_little_beyond_an_answer(tmp_path: Path) -> None:
    async def long(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1_000_000)

    authority = an_authority(tmp_path)
    credentials = Plain("", tls=TlsMaterial(authority.pem).context("test"))
    async with serving(long, server_tls(authority)) as url:
        credentials.server = url
        async with AiohttpTransport(credentials) as transport:
            answer = await transport.send(GET)
            assert 1_000_000 == len(await answer.read(MOST_ANSWER_BYTES))
            held = [each.get_buffer(0) for each in gc.get_objects() if type(each) is SSLProtocol]
    assert held
    assert {TLS_BUFFER_BYTES} == set(map(len, held))


async def test_a_proxy_is_used_and_its_refusal_is_reported() -> None:
    async with serving(hello) as proxy:
        with pytest.raises(Unreachable, match="the proxy refused: 404 Not Found"):
            await answer_of(Plain("https://api.example", proxy=proxy))
    with pytest.raises(Unreachable, match=r"the proxy 127\.0\.0\.1:"):
        await answer_of(Plain("https://api.example", proxy=proxy))


async def test_a_watch_line_may_have_megabytes() -> None:
    text = "x" * 5_000_000

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"a":"' + text.encode() + b'"}}\n')
        await response.write(b'{"type":"DELETED","object":{}}\n')
        return response

    async with serving(handler) as url, AiohttpTransport(Plain(url)) as transport:
        watch = Client(transport).watch(Deployment, resource_version="1", timeout_seconds=60)
        lines = [(line.type, len(bytes(line.object))) async for line in watch]
    assert [("ADDED", len(text) + 8), ("DELETED", 2)] == lines


class Endless:
    """A watch that says one thing and then waits; `gone` is set when its client has left."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"BOOKMARK","object":{}}\n')
        connection = request.transport
        assert connection is not None
        while not connection.is_closing():  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        self.gone.set()
        return response


async def test_a_cancelled_watch_leaves_no_connection() -> None:
    server = Endless()
    async with serving(server.handle) as url, AiohttpTransport(Plain(url)) as transport:
        watch = Client(transport).watch(Deployment, resource_version="1", timeout_seconds=60)
        await anext(watch)
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(server.gone.wait(), 5)


def sockets() -> int:
    """How many this process has open."""
    opened = (each for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return sum(str(each.readlink()).startswith("socket:") for each in opened)


async def test_who_leaves_a_watch_over_tls_waits_for_no_goodbye(tmp_path: Path) -> None:
    authority = an_authority(tmp_path)
    context = TlsMaterial(authority.pem).context("test")
    async with serving(Endless().handle, server_tls(authority)) as url:
        before = sockets()
        async with AiohttpTransport(Plain(url, tls=context)) as transport:
            answer = await transport.send(GET)
            assert before + 2 == sockets(), "one of the client, one of the server"
            await answer.aclose()
        await asyncio.sleep(0)
        assert before + 1 >= sockets()


async def test_a_closed_transport_ends_its_watches() -> None:
    async with serving(Endless().handle) as url:
        transport = AiohttpTransport(Plain(url))
        watch = Client(transport).watch(Deployment, resource_version="1", timeout_seconds=60)
        await anext(watch)
        await transport.aclose()
        with pytest.raises(Unreachable):
            await anext(watch)
        with pytest.raises(Unreachable, match="the transport is closed"):
            await transport.send(GET)


async def test_a_transport_that_is_closed_during_a_login_connects_no_more() -> None:
    class SlowLogin(Plain):
        async def config(self) -> ClientConfig:
            await transport.aclose()
            return await super().config()

    transport = AiohttpTransport(SlowLogin("http://127.0.0.1:1"))
    with pytest.raises(Unreachable, match=":1: the transport is closed"):
        await transport.send(GET)


async def test_many_requests_share_connections() -> None:
    ports: set[object] = set()

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername"))
        return web.Response(text="{}")

    async with serving(handler) as url, AiohttpTransport(Plain(url)) as transport:
        for _ in range(20):
            await Client(transport).get_json("x")
    assert 1 == len(ports)


def test_bad_tls_material_names_its_source(tmp_path: Path) -> None:
    authority = an_authority(tmp_path)
    alice, bob = authority.issue("alice"), authority.issue("bob")
    certificate, key = alice.certificate.read_bytes(), bob.key.read_bytes()
    locked = serialization.load_pem_private_key(alice.key.read_bytes(), None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),  # nobody is asked for it
    )
    for material, words in (
        (TlsMaterial(b"nonsense"), "certificate authority"),
        (TlsMaterial(certificate=certificate), "come together"),
        (TlsMaterial(certificate=certificate, key=key), "client certificate or key"),
        (TlsMaterial(certificate=b"nonsense", key=key), "client certificate or key"),
        (TlsMaterial(certificate=certificate, key=locked), "client certificate or key"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            material.context("the file")
        assert "the file" == caught.value.source


def test_key_material_is_private_on_disk_and_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def look(context: ssl.SSLContext, path: Path, **options: str) -> None:
        modes.extend((path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777))
        load(context, path, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    pair = an_authority(tmp_path).issue("alice")
    TlsMaterial(None, pair.certificate.read_bytes(), pair.key.read_bytes()).context("test")
    assert [0o600, 0o700] == modes
    assert [] == list(folder.iterdir())


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def token_of(credentials: InCluster) -> str:
    return (await credentials.config()).headers["Authorization"]


def a_service_account(folder: Path) -> Path:
    (folder / "ca.crt").write_bytes(an_authority(folder / "authority").pem)
    (folder / "token").write_text("one\n")
    (folder / "namespace").write_text("dynamo-system")
    return folder


async def test_the_token_is_presented_and_read_again_when_it_is_old(tmp_path: Path) -> None:
    credentials = InCluster(POD, a_service_account(tmp_path), reread_seconds=0.5)
    with blockbuster_ctx("kube_runtime"):
        before = await credentials.config()
    assert {"Authorization": "Bearer one"} == before.headers
    (tmp_path / "token").write_text("two")
    assert "Bearer one" == await token_of(credentials)
    await asyncio.sleep(0.6)
    after = await credentials.config()
    assert {"Authorization": "Bearer two"} == after.headers
    assert before.tls is after.tls


async def test_a_refusal_makes_token_and_authority_be_read_again_at_once(tmp_path: Path) -> None:
    credentials = InCluster(POD, a_service_account(tmp_path))
    before, same = await asyncio.gather(credentials.config(), credentials.config())
    assert before is same, "two reads at once mix the old authority with the new one"
    (tmp_path / "token").write_text("two")
    (tmp_path / "ca.crt").write_bytes(an_authority(tmp_path / "new").pem)
    await credentials.refresh()
    assert "Bearer two" == await token_of(credentials)
    assert before.tls is not (await credentials.config()).tls


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        (POD, "https://10.0.0.1:443"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "https://10.0.0.1:443"),
        ({**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, "https://[fd00::1]:443"),
    ],
)
def test_the_server_comes_from_the_environment(environ: dict[str, str], url: str) -> None:
    assert url == InCluster(environ).server


@pytest.mark.parametrize("name", ["token", "ca.crt"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\x00 "])
async def test_an_unusable_file_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = a_service_account(tmp_path)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        await InCluster(POD, folder).config()
    assert str(folder / name) == caught.value.source


def test_a_pod_has_both_environment_and_token(tmp_path: Path) -> None:
    assert not is_in_cluster(POD, tmp_path)
    a_service_account(tmp_path)
    assert is_in_cluster(POD, tmp_path)
    assert not is_in_cluster({}, tmp_path)
