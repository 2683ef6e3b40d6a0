"""A client that asks for chat completions at a constant rate, and counts what becomes of each."""

import threading
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self

from e2e.inside import Answer, Inside, request

CHAT = "/v1/chat/completions"
RATE_PER_SECOND = 6.0


def completion(words: str = "hello", tokens: int = 8) -> Any:
    message = {"role": "user", "content": words}
    return {"model": "/model", "messages": [message], "max_tokens": tokens}


@dataclass(frozen=True, slots=True)
class Tally:
    sent: int
    answered: int
    failures: dict[str, int]

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    def __str__(self) -> str:
        return f"{self.sent} sent, {self.answered} answered, {self.failed} failed {self.failures}"


@dataclass(slots=True)
class Load:
    """Requests at a constant rate while in its context, whether or not earlier ones are answered."""

    inside: Inside
    address: str
    rate_per_second: float = RATE_PER_SECOND
    tokens: int = 32
    _pending: list[Future[Answer]] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._send)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        assert self._thread is not None
        self._thread.join()

    def wait_for(self, more: int, within_seconds: float = 60) -> None:
        target = len(self._pending) + more
        deadline = time.monotonic() + within_seconds
        while len(self._pending) < target:
            assert time.monotonic() < deadline
            time.sleep(1 / self.rate_per_second)

    @property
    def sent(self) -> int:
        return len(self._pending)

    def failures(self) -> dict[int, str]:
        """Why requests failed, by their numbers in the order in which they were sent, from 0."""
        reasons = (_failure(pending.result()) for pending in self._pending)
        return {number: why for number, why in enumerate(reasons) if why}

    def tally(self) -> Tally:
        """The result, once the context has ended; waits for the answers that are still to come."""
        answers = [pending.result() for pending in self._pending]
        failures = Counter(_failure(answer) for answer in answers)
        answered = failures.pop("", 0)
        return Tally(len(answers), answered, dict(failures))

    def _send(self) -> None:
        begun = time.monotonic()
        while not self._end.wait(
            max(0.0, begun + len(self._pending) / self.rate_per_second - time.monotonic())
        ):
            number = len(self._pending)
            body = completion(f"question {number}", self.tokens)
            self._pending.append(
                self.inside.submit(lambda body=body: request("POST", self.address, CHAT, body))  # type: ignore[misc]
            )


def _failure(answer: Answer) -> str:
    """Why there is no completion. Empty means: there is one."""
    if answer.status != 200:
        return f"{answer.status} {answer.text[:120]}"
    finished = answer.json["choices"][0]["finish_reason"]
    return "" if finished in ("length", "stop") else f"finished by {finished}"
