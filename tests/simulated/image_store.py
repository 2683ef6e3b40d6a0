"""An image registry and a store of archives on one port, for builds of the legacy kinds."""

import io
import re
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_ARCHIVE = re.compile(r"/api/v1/dynamo_nims/([^/]+)/versions/([^/]+)/download")


@dataclass
class ImageStore:
    """The tags of existing images, and archives by tag."""

    address: str = ""
    images: set[str] = field(default_factory=set[str])
    archives: dict[str, bytes] = field(default_factory=dict[str, bytes])


def archive(config: str) -> bytes:
    """An archive with nothing but the configuration of a graph."""
    target, content = io.BytesIO(), config.encode()
    with tarfile.open(fileobj=target, mode="w") as file:
        member = tarfile.TarInfo("bento.yaml")
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))
    return target.getvalue()


@contextmanager
def image_store() -> Iterator[ImageStore]:
    store = ImageStore()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            tag = self.path.rpartition("/")[2]
            self.send_response(200 if tag in store.images else 404)
            self.end_headers()

        def do_GET(self) -> None:
            match = _ARCHIVE.fullmatch(self.path)
            content = store.archives.get(":".join(match.groups())) if match else None
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - as its base has it
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
