"""Asks an operator for its health all the time, from a thread."""

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cluster.admission.conftest import Installation


@dataclass
class Probing:
    """What `/healthz` answered so far."""

    slowest_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def ask(self, url: str) -> None:
        began = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - our own operator
                answer.read()
        except OSError as error:
            self.wrong.append(str(error))
        self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)


@contextmanager
def probing(there: Installation, also: Callable[[], object] = lambda: None) -> Iterator[Probing]:
    """Ask ten times a second, and do what is to be done each time too."""
    (flag,) = (each for each in there.process.flags if "health-probe" in each)
    found, ended = Probing(), threading.Event()

    def ask() -> None:
        while not ended.wait(0.1):
            found.ask(f"http://{flag.partition('=')[2]}/healthz")
            also()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
