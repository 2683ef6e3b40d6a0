"""A transport with scripted responses, and static credentials."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_runtime.client.client import Answer, Request
from kube_runtime.client.http import ClientConfig


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def answer(status: int, body: Any) -> Answer:
    """An answer with these bytes, or with this value as JSON."""
    return Answer(status, {}, chunks(body if isinstance(body, bytes) else json.dumps(body).encode()))


@dataclass
class Script:
    """A transport that returns the next response of a list and records its requests."""

    answers: list[Answer | Exception] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    at_seconds: list[float] = field(default_factory=list)
    closed: int = 0

    def then(self, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> "Script":
        raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        self.answers.append(Answer(status, headers or {}, chunks(raw), self._close))
        return self

    def then_raise(self, error: Exception) -> "Script":
        self.answers.append(error)
        return self

    async def send(self, request: Request) -> Answer:
        self.requests.append(request)
        self.at_seconds.append(asyncio.get_running_loop().time())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _close(self) -> None:
        self.closed += 1

    @property
    def body(self) -> Any:
        return json.loads(self.requests[-1].body or b"null")


@dataclass
class Plain:
    """Credentials of a server; each `refresh` takes the next of its tokens."""

    server: str
    tokens: list[str] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    tls_server_name: str | None = None
    proxy: str | None = None
    refreshed: int = 0

    async def config(self) -> ClientConfig:
        headers = {"Authorization": f"Bearer {self.tokens[0]}"} if self.tokens else {}
        return ClientConfig(self.server, headers, self.tls, self.tls_server_name, self.proxy)

    async def refresh(self) -> None:
        self.refreshed += 1
        if len(self.tokens) > 1:
            self.tokens.pop(0)
