"""Simulated frontends of graphs: one HTTP server, whose paths start with the Service of the frontend."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Pace:
    """How a graph responds. Units: seconds. Other than 200, `status` is that after `answers` successes."""

    first: float = 0.0
    between: float = 0.001
    status: int = 200
    answers: int = 0
    lines: tuple[bytes, ...] = ()
    """Lines to send instead of tokens."""


@dataclass(slots=True)
class Frontends:
    """All frontends; `pace` returns how that of a Service responds."""

    port: int
    pace: Callable[[str], Pace]
    asked: Counter[str] = field(default_factory=Counter[str])
    """Number of requests for completions, by Service."""
    prompts: list[int] = field(default_factory=list[int])
    """Number of words of each prompt."""

    @property
    def url(self) -> str:
        """The value for the configuration's `online.frontendUrl`."""
        return f"http://127.0.0.1:{self.port}/{{frontend}}"


@contextmanager
def frontends(pace: Callable[[str], Pace], host: str = "127.0.0.1") -> Iterator[Frontends]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

        def do_GET(self) -> None:
            self._send(200, json.dumps({"data": [{"id": "served"}]}).encode())

        def do_POST(self) -> None:
            service = self.path.split("/")[1]
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                served.asked[service] += 1
                served.prompts.append(len(body["messages"][0]["content"].split()))
                count = served.asked[service]
            speed = pace(service)
            if speed.status != 200 and count > speed.answers:
                self._send(speed.status, b'{"error": "overloaded"}')
                return
            with suppress(OSError):  # the client may be gone
                self._send(200, None)
                lines = speed.lines or _tokens(body["max_tokens"], served.prompts[-1])
                for number, line in enumerate(lines):
                    time.sleep(speed.between if number else speed.first)
                    self.wfile.write(line)
                    self.wfile.flush()

        def _send(self, status: int, body: bytes | None) -> None:
            self.send_response(status)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body or b"")

    with ThreadingHTTPServer((host, 0), Handler) as server:
        served = Frontends(server.server_port, pace)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


def _tokens(count: int, words: int) -> Iterator[bytes]:
    """A stream of `count` tokens; the prompt has two tokens for each word, and 10 more."""
    for _ in range(count):
        yield _event({"choices": [{"delta": {"content": ""}}]})
    usage = {"prompt_tokens": 2 * words + 10, "completion_tokens": count}
    yield _event({"choices": [{"delta": {}, "finish_reason": "length"}]})
    yield _event({"choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(body: object) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
