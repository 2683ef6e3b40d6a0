"""HTTP as a client in the cluster's network sends it: to the addresses of Services and pods."""

import http.client
import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from realnode.forward import enter

T = TypeVar("T")
_TIMEOUT_SECONDS = 30.0
_THREADS = 48


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said. `status` 0 means: no answer, and `text` says why."""

    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Inside:
    """A pool of threads that are in the network of a node."""

    def __init__(self, network: Path) -> None:
        self._pool = ThreadPoolExecutor(
            _THREADS, thread_name_prefix="inside", initializer=enter, initargs=(str(network),)
        )

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Calls a function in the network, later."""
        return self._pool.submit(function)

    def get(self, address: str, path: str) -> Answer:
        return self.submit(lambda: request("GET", address, path)).result()

    def post(self, address: str, path: str, body: Any) -> Answer:
        return self.submit(lambda: request("POST", address, path, body)).result()

    def close(self) -> None:
        self._pool.shutdown()


def request(method: str, address: str, path: str, body: Any = None) -> Answer:
    """One request on a connection of its own; only for threads that are inside."""
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_SECONDS)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return Answer(answer.status, answer.read().decode())
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, f"{type(error).__name__}: {error}")
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer that came token by token. Units: seconds; `itl` is the mean time between two."""

    tokens: int
    ttft: float
    itl: float


def streamed(address: str, path: str, body: Any) -> Streamed:
    """A completion whose tokens are timed as they come in; only for threads that are inside.

    A chunk is a token, also without text: what a simulated engine answers often decodes to nothing.

    Raises:
        AssertionError: it is not answered with tokens.
    """
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_SECONDS)
    times: list[float] = []
    try:
        asked = time.monotonic()
        connection.request(
            "POST", path, json.dumps({**body, "stream": True}), {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        assert 200 == answer.status, answer.read().decode()
        for line in answer:
            words = line.decode().strip()
            if not words.startswith("data: {"):
                continue
            choices = json.loads(words.removeprefix("data: "))["choices"]
            times += [time.monotonic() for each in choices if not each.get("finish_reason")]
    finally:
        connection.close()
    assert len(times) >= 2, f"{len(times)} tokens"
    return Streamed(len(times), times[0] - asked, (times[-1] - times[0]) / (len(times) - 1))
