"""`dynamoctl chat` and `dynamoctl curl`: ask the frontend of a graph."""

import asyncio
import sys
from pathlib import Path

from dynamo_graphs.frontend import Conversation, conversation, frontend_of
from dynamo_graphs.graph import ignore
from dynamo_graphs.reader import GRAPHS
from dynamoctl.options import Where
from dynamoctl.screen import show_json, visible_lines
from dynamoctl.target import target_of
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ApiError, ConfigError, visible

_ERRORS = 400


async def print_chat(
    name: str, where: Where, prompt: str, *, model: str, max_tokens: int, output: str
) -> ExitCode:
    """Ask once, or without a prompt for each line that the user types; print the times after each answer."""
    async with target_of(name, where, GRAPHS) as at:
        begun = await conversation(at, model)
        if prompt:
            await _answer(begun, prompt, max_tokens, output)
            return ExitCode.OK
        print(visible(f"{begun.model} on {at.key}; Ctrl-D ends the conversation"), file=sys.stderr)
        while (line := await typed_line()) is not None:
            try:
                if line:
                    await _answer(begun, line, max_tokens, output)
            except ApiError as error:  # the user may ask again, or something else
                print(f"error: {visible(str(error))}", file=sys.stderr)
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


async def _answer(begun: Conversation, prompt: str, max_tokens: int, output: str) -> None:
    write = _write if output == "text" else ignore
    answer = await begun.ask(prompt, max_tokens=max_tokens, write=write)
    if output == "json":
        show_json(
            {
                "model": begun.model,
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
