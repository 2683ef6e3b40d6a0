"""`dynamoctl chat` and `dynamoctl curl`: ask the frontend of a graph."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dynamoctl.cluster.target import GRAPHS, Missing, target_of
from dynamoctl.frontend.forward import Frontend, frontend_of
from dynamoctl.options import Where
from dynamoctl.screen import bounded_lines, counted, show_json, visible_lines
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.decode import UNREADABLE
from kube_runtime.errors import ApiError, ConfigError, ServerFailure
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


_ERRORS = 400


async def print_chat(
    name: str, where: Where, prompt: str, *, model: str, max_tokens: int, output: str
) -> ExitCode:
    """Ask once, or without a prompt for each line that the user types; print the times after each answer.

    Raises: CycloptsError; OperatorError.
    """
    async with target_of(name, where, GRAPHS) as at:
        frontend = await frontend_of(at)
        chosen = await served_model(frontend, model)
        if prompt:
            messages: list[Object] = [{"role": "user", "content": prompt}]
            await _answer(frontend, chosen, messages, max_tokens, output)
            return ExitCode.OK
        print(visible(f"{chosen} on {at.key}; Ctrl-D ends the conversation"), file=sys.stderr)
        messages = []
        while (line := await typed_line()) is not None:
            if not line:
                continue
            messages.append({"role": "user", "content": line})
            try:
                text = await _answer(frontend, chosen, messages, max_tokens, output)
            except ApiError as error:  # the user may ask again, or something else
                print(f"error: {visible(str(error))}", file=sys.stderr)
                messages.pop()
            else:
                messages.append({"role": "assistant", "content": text})
    return ExitCode.OK


async def print_answer(
    name: str, where: Where, path: str, *, method: str, body: bytes | None
) -> ExitCode:
    """Send one request to the frontend and print the answer as it arrives; 1 for an HTTP error.

    Raises: CycloptsError; OperatorError.
    """
    async with target_of(name, where, GRAPHS) as at:
        frontend = await frontend_of(at)
        verb = method or ("POST" if body is not None else "GET")
        answer = await frontend.send(verb, path, body=body)
        try:
            async for chunk in answer.body:
                sys.stdout.buffer.write(_printed(chunk))
                sys.stdout.buffer.flush()
        finally:
            await answer.aclose()
    if answer.status >= _ERRORS:
        print(f"error: {frontend.service} answered with status {answer.status}", file=sys.stderr)
        return ExitCode.PROBLEMS
    return ExitCode.OK


async def typed_line() -> str | None:
    """The next line that the user types, stripped; None at the end."""
    if sys.stdin.isatty():
        print("> ", end="", file=sys.stderr, flush=True)
        # A terminal has whole lines. In a thread, the read would outlive Ctrl-C and delay the exit.
        await _readable()
        line = sys.stdin.readline()
    else:
        try:
            line = await asyncio.to_thread(sys.stdin.readline)
        except UnicodeDecodeError as error:
            raise ConfigError("<stdin>", "expected UTF-8 text") from error
    return line.strip() if line else None


async def _readable() -> None:
    """Wait until standard input has data or ends."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)


async def _answer(
    frontend: Frontend, model: str, messages: Sequence[Object], max_tokens: int, output: str
) -> str:
    write: Callable[[str], None] = _write if output == "text" else ignore
    answer = await completion(frontend, model, messages, max_tokens=max_tokens, write=write)
    if output == "json":
        show_json(
            {
                "model": model,
                "text": answer.text,
                "tokens": answer.tokens,
                "timeToFirstTokenSeconds": answer.first_seconds,
                "seconds": answer.seconds,
                "tokensPerSecond": answer.tokens_per_second,
            }
        )
    else:
        print(flush=True)
        print(answer.summary(), file=sys.stderr)
    return answer.text


def _write(text: str) -> None:
    sys.stdout.write(visible_lines(text))
    sys.stdout.flush()


def ignore(_text: str) -> None:
    """Drop the pieces of an answer that is used as a whole."""


def body_of(data: str | None) -> bytes | None:
    """The body to send: the text, or after @ the content of a file or of stdin; None without data.

    Raises: ConfigError.
    """
    if data is None or not data.startswith("@"):
        return None if data is None else data.encode()
    if data == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(data[1:]).read_bytes()
    except OSError as error:
        raise ConfigError(data[1:], f"cannot read it: {error.strerror}") from error


def _printed(chunk: bytes) -> bytes:
    """The chunk for a file or a pipe; on a terminal as text without control characters."""
    if not sys.stdout.isatty():
        return chunk
    return visible_lines(chunk.decode("utf-8", "replace")).encode()
