"""Have a worker load, unload or list LoRAs, over HTTP.

A worker responds with 200 even if the engine could not load a LoRA, and with 404, 405 or 501 if it has no
such API, which is not a failure of the LoRA. No response raises an exception: each call ends in a `Reply`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import aiohttp

from dynamo_graphs.plan.lora_calls import Call, Ending, LoraVerb, Reply
from dynamo_graphs.settings import ModelSettings
from dynamo_graphs.validation.credentials import without_credentials
from kube_runtime.kind import Object

BODY_LIMIT: Final = 1 << 16
"""Bytes of a response. A list of some hundred LoRAs fits."""

_READ_BYTES: Final = 1 << 14
_MESSAGE_LIMIT: Final = 256
_CONNECT_SECONDS: Final = 10.0
_UNABLE: Final = frozenset(
    (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
)
_NOT_ENABLED: Final = (
    "; check that this worker has DYN_LORA_ENABLED=true and, if it runs vLLM, --enable-lora"
)


class LoraApi:
    """The LoRA API of all workers. `dial` maps an endpoint's base URL to the one to connect to, for tests."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        timeout_seconds: float = 120.0,
        dial: Callable[[str], str] = str,
    ) -> None:
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._dial = dial

    async def call(
        self, address: str, call: Call, *, timeout_seconds: float | None = None
    ) -> Reply:
        """Call the endpoint at that base URL, and return the outcome. Without a timeout: the usual limit."""
        limit = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        if {".", ".."} & set(call.name.split("/")):
            # Clients and servers normalize such a path, so the LoRA could not be unloaded.
            text = f"invalid LoRA name {call.name} (a part of it is one or two dots)"
            return Reply(Ending.FAILED, _short(text))
        try:
            async with asyncio.timeout(limit):
                return await self._send(self._dial(address), call)
        except aiohttp.ServerTimeoutError:
            text = "connection refused or unreachable"
        except TimeoutError:
            text = f"no answer within {limit:g} seconds"
        except (aiohttp.ClientError, OSError) as error:
            text = f"no answer: {error}" if str(error) else "the connection was dropped"
        return Reply(Ending.FAILED, _short(text))

    async def _send(self, base: str, call: Call) -> Reply:
        body = None
        if call.verb is LoraVerb.LOAD:
            body = {"lora_name": call.name, "source": {"uri": call.uri}}
        async with self._session.request(
            _METHODS[call.verb], _url(base, call), json=body, allow_redirects=False
        ) as answer:
            received = bytearray()
            async for chunk in answer.content.iter_any():
                received += chunk
                if len(received) > BODY_LIMIT:
                    return Reply(Ending.FAILED, f"the answer is longer than {BODY_LIMIT} bytes")
            return understood(call.verb, answer.status, bytes(received))


@asynccontextmanager
async def worker_api(
    settings: ModelSettings, dial: Callable[[str], str] = str
) -> AsyncIterator[LoraApi]:
    """The LoRA API of all workers, open during the block."""
    async with lora_session() as session:
        yield LoraApi(session, timeout_seconds=settings.call_timeout_seconds, dial=dial)


@asynccontextmanager
async def lora_session(
    connect_seconds: float = _CONNECT_SECONDS,
) -> AsyncIterator[aiohttp.ClientSession]:
    """A session without cookies, connection reuse or proxies."""
    # Connections are not reused: calls to one worker are minutes apart, and pods are replaced in between.
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        auto_decompress=False,
        read_bufsize=_READ_BYTES,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        trust_env=False,
    ) as session:
        yield session


def understood(verb: LoraVerb, status: int, body: bytes) -> Reply:
    """Interpret the response to a call."""
    answer = _parsed(body)
    message = _message(answer, body)
    if verb is LoraVerb.UNLOAD and (
        status == HTTPStatus.NOT_FOUND or "not found" in message.lower()
    ):
        return Reply(Ending.DONE)
    if status in _UNABLE:
        is_route = "route not found" in message.lower()
        hint = _NOT_ENABLED if is_route else f": {message}" if message else ""
        return Reply(Ending.UNABLE, _short(f"cannot manage LoRAs: status {status}{hint}"))
    if status // 100 != 2:  # noqa: PLR2004  # the class of all successes
        return Reply(
            Ending.FAILED, f"status {status}: {message}" if message else f"status {status}"
        )
    outcome = answer.get("status")
    if isinstance(outcome, str) and outcome.lower() != "success":
        return Reply(Ending.FAILED, message or f"the worker reports: {_short(outcome)}")
    return Reply(Ending.DONE, loaded=_names(answer.get("loras")) if verb is LoraVerb.LIST else None)


_METHODS: Final = {LoraVerb.LOAD: "POST", LoraVerb.UNLOAD: "DELETE", LoraVerb.LIST: "GET"}


def _url(base: str, call: Call) -> str:
    """The URL of a call; a slash in a name stays a slash."""
    path = f"/{quote(call.name)}" if call.verb is LoraVerb.UNLOAD else ""
    return f"{base}/v1/loras{path}"


def _parsed(body: bytes) -> Object:
    """The response's JSON object; empty if it is not one."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _message(answer: Object, body: bytes) -> str:
    text = answer.get("message")
    return _short(text if isinstance(text, str) else body.decode(errors="replace"))


def _names(loras: object) -> frozenset[str] | None:
    """The names in a list of LoRAs; None if the response has none."""
    if isinstance(loras, (dict, list)) and all(isinstance(name, str) for name in loras):
        return frozenset(loras)
    return None


def _short(text: str) -> str:
    """Shorten a text for a status: one line without control characters and credentials."""
    text = without_credentials(text)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _MESSAGE_LIMIT else f"{line[: _MESSAGE_LIMIT - 1]}…"
