"""Archives from each source, and the message that a build leaves. `test_archives.py` has hostile ones."""

import asyncio
import base64
import gzip
import hashlib
import hmac
import io
import json
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from dynamo_legacy import fetch as program
from dynamo_legacy.api import ConfigMapSource, HttpSource, OciSource, PvcSource, S3Source, Source
from dynamo_legacy.build.plan import COMPRESSED
from dynamo_legacy.fetch import (
    PERMANENT,
    ArchiveStore,
    BadArchive,
    StoreError,
    fetch,
    graph_message,
    redirected,
)
from dynamo_legacy.render import parse_graph_config
from dynamo_legacy.settings import LegacySettings, Secret
from scripted.threads import in_a_thread

CONFIG = "service: graphs.disagg:Frontend\nservices:\n- name: Frontend\n  image: {a: b}\n"
FILES = {"bento.yaml": CONFIG, "env/docker/Dockerfile": "FROM scratch\n", "src/a.py": "pass\n"}


def tar(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of a fetching container."""
    for name in ("TERMINATION_LOG", "HEADERS", "CREDENTIALS", "MOUNTED"):
        at = tmp_path / name.lower()
        value = at if name == "TERMINATION_LOG" else str(at)
        monkeypatch.setattr(program, f"_{name}" if name == "TERMINATION_LOG" else name, value)
    (tmp_path / "workspace").mkdir()
    return tmp_path


def fetched(pod: Path, source: Source, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the program, and return its termination message."""
    monkeypatch.setenv("SOURCE", msgspec.json.encode(source).decode())
    fetch(pod / "workspace" / "buildcontext")
    return (pod / "termination_log").read_text()


def failed(pod: Path, source: Source, monkeypatch: pytest.MonkeyPatch) -> tuple[object, str]:
    """Run the program to its failure: its exit code and its termination message."""
    with pytest.raises(SystemExit) as ended:
        fetched(pod, source, monkeypatch)
    return ended.value.code, (pod / "termination_log").read_text()


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Starts a web server in a thread, as the program has an event loop of its own; returns its URL."""
    stack = ExitStack()

    def start(handler: Any) -> str:
        address = []

        async def serving(started: threading.Event, stop: asyncio.Event) -> None:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", handler)
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            address.append(runner.addresses[0][1])
            started.set()
            await stop.wait()
            await runner.cleanup()

        stack.enter_context(in_a_thread(serving))
        return f"http://127.0.0.1:{address[0]}"

    with stack:
        yield start


def answering(body: bytes, status: int = 200, asked: list[str] | None = None, **headers: str) -> Any:
    """A handler with one answer, which notes the path and the token of each request."""

    async def answer(request: web.Request) -> web.Response:
        if asked is not None:
            asked.append(f"{request.raw_path} {request.headers.get('X-YATAI-API-TOKEN')}")
        return web.Response(body=body, status=status, headers=headers)

    return answer


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_archive_behind_a_url_is_unpacked(
    pod: Path, serve: Any, monkeypatch: pytest.MonkeyPatch, pack: Any
) -> None:
    body = pack(tar(FILES))
    url = serve(answering(body)) + "/a.tar?token=secret"
    digest = hashlib.sha256(body).hexdigest()
    message = fetched(pod, Source(http=HttpSource(url=url, sha256=digest)), monkeypatch)
    assert "Frontend" == parse_graph_config(message).services[0].name
    context = pod / "workspace" / "buildcontext"
    assert set(FILES) == {str(each.relative_to(context)) for each in context.rglob("*") if each.is_file()}


def test_headers_come_from_files_and_stay_with_their_host(
    pod: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    async def elsewhere(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response(body=tar(FILES))

    other = serve(elsewhere)

    async def redirecting(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        raise web.HTTPFound(f"{other}/b.tar")

    (pod / "headers").mkdir()
    (pod / "headers" / "Authorization").write_text("Bearer secret\n")
    source = HttpSource(url=serve(redirecting) + "/a.tar", header_secret_name="h")
    fetched(pod, Source(http=source), monkeypatch)
    assert ["Bearer secret", None] == seen


@pytest.mark.parametrize(
    ("url", "location", "expected"),
    [
        ("https://a/x", "/y", ("https://a/y", {"A": "b"})),
        ("http://a/x", "https://a/y", ("https://a/y", {"A": "b"})),
        ("https://a/x", "https://b/y", ("https://b/y", {})),
        ("https://a/x", "https://a:8443/y", ("https://a:8443/y", {})),
    ],
)
def test_a_redirect_keeps_headers_on_its_host(
    url: str, location: str, expected: tuple[str, dict[str, str]]
) -> None:
    assert expected == redirected(url, location, {"A": "b"})


@pytest.mark.parametrize("location", ["http://a/y", "http://b/y", "ftp://a/y", "file:///etc/passwd"])
def test_a_redirect_does_not_leave_tls(location: str) -> None:
    with pytest.raises(BadArchive, match="without TLS"):
        redirected("https://a/x", location, {"A": "b"})


@pytest.mark.parametrize("url", ["http://[", "http://a:port/x"])
def test_an_invalid_url_is_an_error_in_one_line(pod: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    code, text = failed(pod, Source(http=HttpSource(url=url)), monkeypatch)
    assert PERMANENT == code
    assert 1 == len(text.splitlines())


SECRET_KEY = "key"


def signature(request: web.Request) -> str:
    """The signature that a store computes for a request without a body, by AWS Signature Version 4."""
    credential, signed, _ = re.findall(r"=([^,]+)", request.headers["Authorization"])
    _, *scope = credential.split("/")
    headers = "".join(f"{each}:{request.headers[each]}\n" for each in signed.split(";"))
    body = request.headers["x-amz-content-sha256"]
    asked = f"GET\n{request.raw_path}\n\n{headers}\n{signed}\n{body}"
    digest = hashlib.sha256(asked.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", request.headers["x-amz-date"], "/".join(scope), digest))
    key = f"AWS4{SECRET_KEY}".encode()
    for each in (*scope, text):
        key = hmac.digest(key, each.encode(), "sha256")
    return key.hex()


def a_store(request: web.Request) -> web.Response:
    """What an S3-compatible store answers: its object to who may read it, or an error as XML."""
    if request.headers.get("Authorization", "").rpartition("=")[2] != signature(request):
        return error_of_store(403, "SignatureDoesNotMatch")
    if request.path != "/bucket/folder/key.tar":
        return error_of_store(404, "NoSuchKey")
    times = {"ETag": '"e"', "Last-Modified": "Mon, 23 Nov 2026 00:00:00 GMT"}
    return web.Response(body=tar(FILES), headers=times)


def error_of_store(status: int, code: str) -> web.Response:
    text = f"<Error><Code>{code}</Code><Message>m</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml")


@pytest.mark.parametrize(
    ("path", "key", "said"),
    [
        ("folder/key.tar", SECRET_KEY, ""),
        ("folder/other.tar", SECRET_KEY, "NoSuchKey"),
        ("folder/key.tar", "another", "SignatureDoesNotMatch"),
    ],
    ids=["object", "missing", "wrong-key"],
)
def test_an_object_of_a_store_is_asked_for_with_a_signature(
    pod: Path, serve: Any, monkeypatch: pytest.MonkeyPatch, path: str, key: str, said: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return a_store(request)

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key)
    source = Source(s3=S3Source(uri=f"s3://bucket/{path}", endpoint=serve(answer)))
    if not said:
        assert fetched(pod, source, monkeypatch)
        return
    message = failed(pod, source, monkeypatch)[1]
    assert message.startswith(f"s3://bucket/{path}: ")
    assert said in message


def test_the_layer_of_an_artifact_is_checked(pod: Path, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = gzip.compress(tar(FILES))
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    given = [layer, b"another"]

    async def answer(request: web.Request) -> web.Response:
        if "/manifests/" in request.path:
            return web.json_response({"layers": [{"digest": digest}]})
        return web.Response(body=given.pop(0))

    host = serve(answer).removeprefix("http://")
    source = Source(oci=OciSource(ref=f"{host}/team/graph:1", insecure=True))
    fetched(pod, source, monkeypatch)
    code, text = failed(pod, source, monkeypatch)
    assert (42, True) == (code, "the layer has sha256" in text)


def test_keys_of_a_config_map_are_files(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pod / "mounted" / "..2026"
    data.mkdir(parents=True)
    (data / "Dockerfile").write_text("FROM scratch\n")
    (pod / "mounted" / "..data").symlink_to("..2026")
    (pod / "mounted" / "Dockerfile").symlink_to("..data/Dockerfile")
    assert "" == fetched(pod, Source(config_map=ConfigMapSource(name="m")), monkeypatch)
    context = pod / "workspace" / "buildcontext"
    assert "FROM scratch\n" == (context / "env/docker/Dockerfile").read_text()
    assert ["Dockerfile", "env"] == sorted(each.name for each in context.iterdir())


def test_a_volume_has_a_folder_or_an_archive(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pod / "mounted" / "graph"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    source = PvcSource(claim_name="c", path="/graph")
    assert "" == fetched(pod, Source(pvc=source), monkeypatch)
    (pod / "mounted" / "a.tar").write_bytes(tar(FILES))
    unpacked = pod / "workspace" / "second"
    monkeypatch.setenv("SOURCE", json.dumps({"pvc": {"claimName": "c", "path": "a.tar"}}))
    fetch(unpacked)
    assert (unpacked / "src/a.py").is_file()


@pytest.mark.parametrize("path", ["../../etc/passwd", "missing", "/../../"])
def test_a_path_leads_out_of_no_volume(pod: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    (pod / "mounted").mkdir()
    source = Source(pvc=PvcSource(claim_name="c", path=path))
    assert 42 == failed(pod, source, monkeypatch)[0]


@pytest.mark.parametrize("status", [404, 500])
def test_a_server_without_the_archive_is_asked_again_by_the_job(
    pod: Path, serve: Any, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    url = serve(answering(b"", status)) + "/a.tar?sig=secret"
    code, text = failed(pod, Source(http=HttpSource(url=url)), monkeypatch)
    assert (1, True, False) == (code, f"status {status}" in text, "secret" in text)


def test_another_digest_and_a_missing_dockerfile_fail_at_once(
    pod: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve(answering(tar({"bento.yaml": CONFIG})))
    wrong = Source(http=HttpSource(url=url, sha256="0" * 64))
    code, text = failed(pod, wrong, monkeypatch)
    assert (42, True) == (code, "sha256" in text)
    code, text = failed(pod, Source(http=HttpSource(url=url)), monkeypatch)
    assert (42, "the archive has no env/docker/Dockerfile") == (code, text)


def test_a_large_configuration_is_compressed_and_a_huge_one_left_out(tmp_path: Path) -> None:
    services = "".join(f"- {{name: Service{n}, config: {{workers: {n}}}}}\n" for n in range(200))
    (tmp_path / "bento.yaml").write_text(f"services:\n{services}")
    message = graph_message(tmp_path)
    assert message.startswith(COMPRESSED)
    assert 4000 >= len(message)
    noise = base64.b64encode(hashlib.shake_256(b"a").digest(9000)).decode()
    (tmp_path / "bento.yaml").write_text(f"services: [{{name: {noise!r}}}]")
    assert "" == graph_message(tmp_path)


@pytest.mark.parametrize(
    "text", ["[" * 10_000, "a: *b", "a: 1\n---\na: 2", "service: !!timestamp x", "a: \x00"]
)
def test_a_hostile_configuration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bento.yaml").write_text(text)
    with pytest.raises(BadArchive, match=r"bento\.yaml"):
        graph_message(tmp_path)


def test_a_dockerfile_of_a_volume_is_no_link_out_of_it(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The container has logins in its files, which must not get into the context of the build."""
    (pod / "login").write_text("secret")
    graph = pod / "mounted" / "graph"
    graph.mkdir(parents=True)
    (graph / "Dockerfile").symlink_to(pod / "login")
    source = Source(pvc=PvcSource(claim_name="c", path="graph"))
    assert 42 == failed(pod, source, monkeypatch)[0]
    assert not (pod / "workspace" / "buildcontext" / "env").exists()


async def test_the_configuration_of_a_tag(serve: Any) -> None:
    asked: list[str] = []
    address = serve(answering(tar({"bento.yaml": "service: a"}), asked=asked))
    settings = LegacySettings(endpoint=f"{address}/base/", api_token=Secret("t"))
    assert await ArchiveStore(settings).graph_config("a b:v 1") == "service: a"
    path = "/base/api/v1/dynamo_nims/a%20b/versions/v%201/download"
    assert asked == [f"{path} yatai-image-builder:default:t"]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b"", "status 404 Not Found"),
        (500, b"", "status 500"),
        (302, b"", "status 302"),
        (200, b"{}", "not a tar archive"),
    ],
)
async def test_anything_but_an_archive_is_an_error(
    serve: Any, status: int, body: bytes, message: str
) -> None:
    asked: list[str] = []
    address = serve(answering(body, status, asked, Location="http://169.254.169.254/"))
    with pytest.raises(StoreError, match=message):
        await ArchiveStore(LegacySettings(endpoint=address)).graph_config("a:1")
    assert len(asked) == 1


async def test_a_store_that_does_not_answer(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = LegacySettings(endpoint="http://127.0.0.1:9")
    with pytest.raises(StoreError, match="refused"):
        await ArchiveStore(gone).graph_config("a:1")
    monkeypatch.setattr(program, "TOTAL_SECONDS", -1.0)
    slow = LegacySettings(endpoint=serve(answering(tar({"bento.yaml": "service: a"}))))
    with pytest.raises(StoreError, match="has not come within"):
        await ArchiveStore(slow).graph_config("a:1")
