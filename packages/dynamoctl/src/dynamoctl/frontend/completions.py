"""Stream chat completions and time them."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from dynamoctl.ages import counted
from dynamoctl.cluster.target import Missing
from dynamoctl.frontend.proxy import Frontend
from dynamoctl.log_lines import bounded_lines
from kube_runtime.decode import UNREADABLE
from kube_runtime.errors import ServerFailure
from kube_runtime.kind import Object

_PATH = "/v1/chat/completions"
_DATA = b"data:"
_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Completion:
    """A completed answer.

    `seconds` is the time to the last token, `first_seconds` to the first; None without one. `tokens` is the
    count of the frontend, else the number of chunks.
    """

    text: str
    tokens: int
    first_seconds: float | None
    seconds: float

    @property
    def tokens_per_second(self) -> float | None:
        """The rate after the first token; None for fewer than two."""
        if self.first_seconds is None or self.tokens < 2:  # noqa: PLR2004 - a rate needs two
            return None
        passed = self.seconds - self.first_seconds
        return (self.tokens - 1) / passed if passed > 0 else None

    def summary(self) -> str:
        """One line for people."""
        if self.first_seconds is None:
            return f"no tokens in {self.seconds:.2f} s"
        rate = self.tokens_per_second
        speed = f", {rate:.1f} tokens/s" if rate else ""
        count = counted(self.tokens, "token")
        return f"{count} in {self.seconds:.2f} s: first after {self.first_seconds * 1000:.0f} ms{speed}"


async def served_model(frontend: Frontend, model: str) -> str:
    """The named model, else the first one that is served.

    Raises:
        Missing: no model is served, or not the named one.
        ApiError: the frontend answers with an error.
    """
    answer = await frontend.json("/v1/models")
    entries = answer.get("data") if isinstance(answer, dict) else None
    names = [
        str(entry["id"]) for entry in entries or () if isinstance(entry, dict) and "id" in entry
    ]
    if not names:
        raise Missing(f"{frontend.service} serves no model yet")
    if model and model not in names:
        raise Missing(f'{frontend.service} does not serve "{model}" (it serves {", ".join(names)})')
    return model or names[0]


async def completion(
    frontend: Frontend,
    model: str,
    messages: Sequence[Object],
    *,
    max_tokens: int,
    write: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Completion:
    """Ask for one answer; `write` gets each piece of text as it arrives.

    Raises:
        ApiError: the frontend answers with an error.
        Unreachable: the connection was cut.
    """
    body = {
        "model": model,
        "messages": list(messages),
        "max_tokens": max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    pieces: list[str] = []
    counted: int | None = None
    first: float | None = None
    silent: list[float] = []  # tokens that decode to no text, as those of a simulated engine may
    begun = last = clock()
    async with (
        frontend.answered("POST", _PATH, msgspec.json.encode(body)) as answer,
        aclosing(_chunks(answer.body)) as chunks,
    ):
        async for chunk in chunks:
            usage = _mapping(chunk.get("usage"))
            if isinstance(tokens := usage.get("completion_tokens"), int):
                counted = tokens
            choice = _choice(chunk)
            text = _text(choice)
            if text:
                last = clock()
                first = last - begun if first is None else first
                pieces.append(text)
                write(text)
            elif choice and not choice.get("finish_reason"):
                silent.append(clock() - begun)
    if first is None and counted and silent:
        return Completion("", counted, silent[0], silent[-1])
    return Completion("".join(pieces), counted or len(pieces), first, last - begun)


async def _chunks(body: AsyncIterator[bytes]) -> AsyncGenerator[Any, None]:
    async with aclosing(bounded_lines(body)) as lines:
        async for line in lines:
            if not line.startswith(_DATA):
                continue
            data = line.removeprefix(_DATA).strip()
            if data == _DONE:
                return
            try:
                chunk = msgspec.json.decode(data)
            except UNREADABLE as error:
                raise ServerFailure(
                    200, "", f"the frontend sent unreadable data: {error}"
                ) from error
            if isinstance(chunk, dict):
                if "error" in chunk:
                    raise ServerFailure(500, "", f"the frontend reports: {chunk['error']}")
                yield chunk


def _choice(chunk: Object) -> Object:
    """The first choice of a chunk; {} at the end of the answer, which may have the usage only."""
    choices = chunk.get("choices")
    return _mapping(choices[0] if isinstance(choices, list) and choices else None)


def _text(choice: Object) -> str:
    """The text of a choice, or the model's reasoning."""
    delta = _mapping(choice.get("delta"))
    text = delta.get("content") or delta.get("reasoning_content")
    return text if isinstance(text, str) else ""


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}
