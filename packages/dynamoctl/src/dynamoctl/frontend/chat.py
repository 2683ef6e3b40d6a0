"""`dynamoctl chat` and `dynamoctl curl`: ask the frontend of a graph."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dynamo_graphs.frontend import Frontend, completion, frontend_of, served_model
from dynamo_graphs.graph import ignore
from dynamo_graphs.reader import GRAPHS
from dynamoctl.options import Where
from dynamoctl.screen import show_json, visible_lines
from dynamoctl.target import target_of
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.errors import ApiError, ConfigError
from kube_runtime.types.meta import Object

_ERRORS = 400


async def print_chat(
    name: str, where: Where, prompt: str, *, model: str, max_tokens: int, output: str
) -> ExitCode:
    """Ask once, or without a prompt for each line that the user types; print the times after each answer."""
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


async def print_answer(name: str, where: Where, path: str, *, method: str, body: bytes | None) -> ExitCode:
    """Send one request to the frontend and print the answer as it arrives; 1 for an HTTP error."""
    async with target_of(name, where, GRAPHS) as at:
        frontend = await frontend_of(at)
        verb = method or ("POST" if body is not None else "GET")
        answer = await frontend.send(verb, path, body=body)
        try:
            async for chunk in answer.body:
                if sys.stdout.isatty():  # without control characters
                    text = visible_lines(chunk.decode("utf-8", "replace"))
                    sys.stdout.buffer.write(text.encode())
                else:
                    sys.stdout.buffer.write(chunk)
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
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(sys.stdin)
        line = sys.stdin.readline()
    else:
        try:
            line = await asyncio.to_thread(sys.stdin.readline)
        except UnicodeDecodeError as error:
            raise ConfigError("<stdin>", "expected UTF-8 text") from error
    return line.strip() if line else None


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
