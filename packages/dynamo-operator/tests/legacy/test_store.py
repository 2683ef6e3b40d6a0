"""The store of archives: what is asked, and what becomes of odd answers."""

import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from dynamo_legacy import fetch as store
from dynamo_legacy.fetch import ArchiveStore, StoreError
from dynamo_legacy.settings import LegacySettings, Secret


def archive(text: str) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as file:
        member = tarfile.TarInfo("bento.yaml")
        member.size = len(text)
        file.addfile(member, io.BytesIO(text.encode()))
    return target.getvalue()


@contextmanager
def serving(
    status: int, body: bytes, headers: dict[str, str] | None = None
) -> Iterator[tuple[str, list[str]]]:
    """A store with one answer: its address, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['X-YATAI-API-TOKEN']}")
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_the_configuration_of_a_tag() -> None:
    with serving(200, archive("service: a")) as (address, asked):
        settings = LegacySettings(endpoint=f"{address}/base/", api_token=Secret("t"))
        assert await ArchiveStore(settings).graph_config("a/../b:v 1") == "service: a"
    path = "/base/api/v1/dynamo_nims/a%2F..%2Fb/versions/v%201/download"
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
async def test_anything_but_an_archive_is_an_error(status: int, body: bytes, message: str) -> None:
    with serving(status, body, {"Location": "http://169.254.169.254/"}) as (address, asked):
        fetching = ArchiveStore(LegacySettings(endpoint=address)).graph_config("a:1")
        with pytest.raises(StoreError, match=message):
            await fetching
    assert len(asked) == 1


async def test_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = LegacySettings(endpoint="http://127.0.0.1:9")
    with pytest.raises(StoreError, match="refused"):
        await ArchiveStore(gone).graph_config("a:1")
    monkeypatch.setattr(store, "TOTAL_SECONDS", -1.0)
    with serving(200, archive("service: a")) as (address, _):
        slow = ArchiveStore(LegacySettings(endpoint=address)).graph_config("a:1")
        with pytest.raises(StoreError, match="has not come within"):
            await slow
