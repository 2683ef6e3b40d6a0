"""The frontend of a graph, through the API server's proxy of Services, and answers of its model."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from dynamo_graphs.ages import counted
from dynamo_graphs.logs import bounded_lines, pod_selector
from dynamo_graphs.reader import Missing, Target
from dynamo_operator import labels, names
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.client.client import (
    MOST_ANSWER_BYTES,
    MOST_ERROR_BYTES,
    Answer,
    Request,
    Transport,
    error_of_answer,
)
from kube_runtime.errors import ApiError, ServerFailure
from kube_runtime.types.kinds import Ingress, Service
from kube_runtime.types.meta import Object
from kube_runtime.wire import UNREADABLE, UrlPath, path_of, proxied

_OK = range(200, 300)


# This needs the permissions `get` and `create` for `services/proxy`, and no network route to the pods.
@dataclass(frozen=True, slots=True)
class Frontend:
    """The Service of a frontend, and the path of its proxy in the API server."""

    transport: Transport
    service: str
    port: int
    path: UrlPath

    async def send(
        self, method: str, path: str, *, body: bytes | None = None, content_type: str = "application/json"
    ) -> Answer:
        """Send a request; the answer, whatever its status, may still be arriving.

        The query in `path` is sent as it is written.

        Raises: Invalid if the path leads out of the Service; Unreachable if the API server does not answer.
        """
        request = Request(
            method,
            proxied(self.path, path),
            body=body,
            content_type=content_type,
            timeout_seconds=None,
            accept="*/*",
        )
        return await self.transport.send(request)

    async def json(self, path: str) -> object:
        """The JSON at a path of the frontend.

        Raises:
            ApiError: the frontend, or the API server in front of it, answers with an error.
            Missing: the answer is not JSON.
        """
        async with self.answered("GET", path) as answer:
            body = await answer.read(MOST_ANSWER_BYTES)
        try:
            return msgspec.json.decode(body)
        except UNREADABLE as error:
            raise Missing(f"{self.service}{path} is not JSON: {error}") from error

    @asynccontextmanager
    async def answered(self, method: str, path: str, body: bytes | None = None) -> AsyncIterator[Answer]:
        """A successful answer, closed afterwards.

        Raises: ApiError if the frontend, or the API server in front of it, answers with an error.
        """
        answer = await self.send(method, path, body=body)
        try:
            if answer.status not in _OK:
                text = await answer.read(MOST_ERROR_BYTES)
                raise error_of_answer(answer.status, answer.headers, text)
            yield answer
        finally:
            await answer.aclose()


async def frontend_of(at: Target[DynamoGraphDeployment]) -> Frontend:
    """The frontend of a graph.

    Raises: Missing if the graph does not exist, or has no frontend, or that has no Service yet.
    """
    graph = await at.get()
    keys = [key for key, it in graph.spec.services.items() if it.component_type == "frontend"]
    if not keys:
        raise Missing(f"graph {graph.key} has no frontend")
    selector = pod_selector(graph, min(keys))  # the Service has the labels of its pods
    for service in await at.reading.all(Service, namespace=at.key.namespace, labels=selector):
        ports = msgspec.json.decode(service.spec).get("ports", [])
        if named := [port for port in ports if port.get("name") == "http"] or ports:
            name, port = service.metadata.name, named[0]["port"]
            path = path_of(Service.KIND, at.key.namespace, f"http:{name}:{port}", "proxy")
            return Frontend(at.reading.transport, name, port, path)
    raise Missing(
        f"the frontend of graph {graph.key} has no Service yet; see `dynamoctl why {graph.metadata.name}`"
    )


async def url_of(at: Target[DynamoGraphDeployment]) -> str:
    """The URL of the frontend: that of its Ingress, else the one inside the cluster. Raises: Missing."""
    frontend = await frontend_of(at)
    of_graph = f"{labels.GRAPH}={names.label_value(at.key.name)}"
    for ingress in await at.reading.all_raw(Ingress.KIND, at.key.namespace, labels=of_graph):
        for rule in ingress["spec"].get("rules", ()):
            if host := rule.get("host"):
                return f"http{'s' if ingress['spec'].get('tls') else ''}://{host}"
    return f"http://{frontend.service}.{at.key.namespace}:{frontend.port}"


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
    names = [str(entry["id"]) for entry in entries or () if isinstance(entry, dict) and "id" in entry]
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

    Raises: ApiError if the frontend answers with an error; Unreachable if the connection was cut.
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
            choices = chunk.get("choices")  # none at the end of the answer, which may have the usage only
            choice = _mapping(choices[0] if isinstance(choices, list) and choices else None)
            delta = _mapping(choice.get("delta"))
            text = delta.get("content") or delta.get("reasoning_content")
            if text and isinstance(text, str):
                last = clock()
                first = last - begun if first is None else first
                pieces.append(text)
                write(text)
            elif choice and not choice.get("finish_reason"):
                silent.append(clock() - begun)
    if first is None and counted and silent:
        return Completion("", counted, silent[0], silent[-1])
    return Completion("".join(pieces), counted or len(pieces), first, last - begun)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Prompts to one model and its answers, which it is sent with each further prompt."""

    frontend: Frontend
    model: str
    messages: list[Object] = field(default_factory=list[Object])

    async def ask(self, prompt: str, *, max_tokens: int, write: Callable[[str], None]) -> Completion:
        """The answer; `write` gets each piece of text as it arrives. A prompt that fails is forgotten.

        An answer that its first token ends is asked for once more: of a simulated engine, every 64th is one.

        Raises: as `completion`.
        """
        self.messages.append({"role": "user", "content": prompt})
        ask = partial(
            completion, self.frontend, self.model, self.messages, max_tokens=max_tokens, write=write
        )
        try:
            answer = await ask()
            if not answer.text and answer.tokens <= 1:
                answer = await ask()
        except ApiError:
            self.messages.pop()
            raise
        self.messages.append({"role": "assistant", "content": answer.text})
        return answer


async def conversation(at: Target[DynamoGraphDeployment], model: str) -> Conversation:
    """A conversation with a model of a graph, by default the first one that is served.

    Raises: as `frontend_of` and `served_model`.
    """
    frontend = await frontend_of(at)
    return Conversation(frontend, await served_model(frontend, model))


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
                raise ServerFailure(200, "", f"the frontend sent unreadable data: {error}") from error
            if isinstance(chunk, dict):
                if "error" in chunk:
                    raise ServerFailure(500, "", f"the frontend reports: {chunk['error']}")
                yield chunk


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}
