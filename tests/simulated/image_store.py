"""A registry and a store of archives, as builds of the older generation ask them, on one port."""

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
    """What there is: the tags of images, statuses that replace an answer, and archives by their tag.

    `asked` are the tags of images that it was asked for, in order.
    """

    address: str = ""
    images: set[str] = field(default_factory=set[str])
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    archives: dict[str, bytes] = field(default_factory=dict[str, bytes])
    asked: list[str] = field(default_factory=list[str])


def archive(config: str) -> bytes:
    """An archive that holds the configuration of a graph, and nothing else."""
    target, content = io.BytesIO(), config.encode()
    with tarfile.open(fileobj=target, mode="w") as file:
        member = tarfile.TarInfo("bento.yaml")
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))
    return target.getvalue()


@contextmanager
def image_store() -> Iterator[ImageStore]:
    """A running one, in a thread of its own."""
    found = ImageStore()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            tag = self.path.rpartition("/")[2]
            found.asked.append(tag)
            self.send_response(found.statuses.get(tag, 200 if tag in found.images else 404))
            self.end_headers()

        def do_GET(self) -> None:
            asked = _ARCHIVE.fullmatch(self.path)
            content = found.archives.get(":".join(asked.groups())) if asked else None
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - as its base has it
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
