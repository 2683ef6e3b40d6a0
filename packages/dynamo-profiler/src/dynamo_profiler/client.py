"""Send requests to a frontend and time the tokens of the responses.

Requests are sent at a constant rate, as users do, not after earlier responses: otherwise a slow graph would
get fewer requests.
"""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

import aiohttp
import msgspec
from aiohttp.http import HttpProcessingError

from dynamo_profiler.configuration import Targets
from kube_runtime.errors import OperatorError
from kube_runtime.types.meta import Struct, cut, from_json

PERCENTILE = 0.9
"""The percentile of the times that must be within a target."""
MAX_FAILURES = 0.01
"""The share of requests that may fail."""


class Response(Struct, frozen=True):
    """The times of one streamed response. Units: seconds, tokens."""

    ttft: float
    itl: float
    tokens: int
    prompt_tokens: int


class Load(Struct, frozen=True):
    """The results of requests at a constant rate. Units: seconds, requests per second.

    `ttft` and `itl` are the `PERCENTILE` of the successful requests, `median_*` their medians; 0 if all
    failed. `tokens` and `prompt_tokens` are means. `failure` is the first failure.
    """

    rate: float
    requests: int
    failures: int = 0
    failure: str = ""
    ttft: float = 0.0
    itl: float = 0.0
    median_ttft: float = 0.0
    median_itl: float = 0.0
    tokens: float = 0.0
    prompt_tokens: float = 0.0

    def miss(self, targets: Targets) -> str:
        """Why this load misses the targets, as a clause; empty if it meets them."""
        if self.failures > self.requests * MAX_FAILURES:
            return f"{self.failures} of {self.requests} requests failed: {self.failure}"
        for name, value, target in (("ttft", self.ttft, targets.ttft), ("itl", self.itl, targets.itl)):
            if value > target:
                return f"{name} of {value * 1000:.4g} ms is above {target * 1000:g} ms"
        return ""

    def text(self) -> str:
        """The measurements in one line."""
        return (
            f"ttft {self.ttft * 1000:.4g} ms, itl {self.itl * 1000:.4g} ms for {PERCENTILE:.0%} of "
            f"{self.requests} requests, {self.rate:.3g} per second"
        )


class Measured(Struct, frozen=True):
    """A measured candidate: its graph's name, its workers in one line, its GPUs, and its loads.

    `problem` is why loads are missing; empty if none are.
    """

    graph: str
    choice: str
    gpus: int
    loads: tuple[Load, ...] = ()
    problem: str = ""

    def miss(self, targets: Targets) -> str:
        """Why it misses the targets, as a clause; empty if it meets them."""
        missed = (load.miss(targets) for load in self.loads)
        return self.problem or next(filter(None, missed), "")


def load_of(rate: float, responses: Sequence[Response], failures: Sequence[str]) -> Load:
    """Summarize the responses and failures of one load."""
    requests = len(responses) + len(failures)
    failure = failures[0] if failures else ""
    if not responses:
        return Load(rate, requests, len(failures), failure)
    ttfts, itls = ([getattr(response, name) for response in responses] for name in ("ttft", "itl"))
    return Load(
        rate,
        requests,
        len(failures),
        failure,
        ttft=_percentile(ttfts, PERCENTILE),
        itl=_percentile(itls, PERCENTILE),
        median_ttft=_percentile(ttfts, 0.5),
        median_itl=_percentile(itls, 0.5),
        tokens=sum(response.tokens for response in responses) / len(responses),
        prompt_tokens=sum(response.prompt_tokens for response in responses) / len(responses),
    )


def _percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


MAX_REQUESTS = 600
"""Per load. More would take long, or be more tokens than one Python process can time."""
MIN_REQUESTS = 10
_MIN_TOKENS = 2
"""Per response: the time between tokens needs two."""
_ERRORS = 300
"""Status codes from here on are failures: a redirect is not followed."""
_MOST_BYTES = 1024 * 1024
"""Of the list of models."""
_MAX_WORDS = 4.0
"""Per token, whatever a frontend counts."""
_SLOWER = 10.0
"""A request times out after the targets times this, plus the grace period."""
_GRACE_SECONDS = 30.0
_TEXT = (
    "the of and to in a is that for it as was with be by on not but at are this have from or had an they "
    "one you were all there would their we been has when who will no more if out so up into than them can"
)
_WORDS = tuple(_TEXT.split())
"""Each is one token for most models."""


class RequestFailed(OperatorError):
    """A request got no complete response; the message is why."""


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Part(msgspec.Struct, frozen=True):
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    """A chunk of a streamed response, or an error in its place."""

    choices: tuple[_Part, ...] = ()
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


class _Model(msgspec.Struct, frozen=True):
    id: str


class _Models(msgspec.Struct, frozen=True):
    data: tuple[_Model, ...] = ()


@dataclass(slots=True)
class Frontend:
    """The frontend of one graph. `words_per_token` is that of our prompts, by the usage in its responses."""

    session: aiohttp.ClientSession
    url: str
    targets: Targets
    words_per_token: float = 1.0
    _random: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311  # no secret

    async def warm_up(self, seconds: float) -> str:
        """Wait until the frontend responds, and return the model that it serves.

        The first requests are slow and not measured. Their usage calibrates the length of prompts.

        Raises:
            RequestFailed: no response within that time.
        """
        deadline = monotonic() + seconds
        while True:
            try:
                model = await self._model()
                for _ in range(2):
                    response = await self._request(model)
                    if response.prompt_tokens:
                        words = self.words_per_token * self.targets.isl / response.prompt_tokens
                        self.words_per_token = min(max(words, 1 / _MAX_WORDS), _MAX_WORDS)
            except RequestFailed:
                if monotonic() > deadline:
                    raise
                await asyncio.sleep(2)
            else:
                return model

    async def load(self, model: str, rate: float, seconds: float) -> Load:
        """Send requests at a rate (per second) for about that time, and return the measured load."""
        count = min(MAX_REQUESTS, max(MIN_REQUESTS, math.ceil(rate * seconds)))
        responses: list[Response] = []
        failures: list[str] = []

        async def one() -> None:
            try:
                responses.append(await self._request(model))
            except RequestFailed as error:
                failures.append(str(error))

        async with asyncio.TaskGroup() as group:
            started = monotonic()
            for number in range(count):
                await asyncio.sleep(started + number / rate - monotonic())
                group.create_task(one())
        return load_of(rate, responses, failures)

    async def _model(self) -> str:
        async with self._send("GET", "/v1/models") as response:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise RequestFailed(f"/v1/models: more than {_MOST_BYTES} bytes")
            try:
                models = from_json(body, _Models).data
            except msgspec.DecodeError as error:
                raise RequestFailed(f"/v1/models: {error}") from error
        if not models:
            raise RequestFailed("no model is served yet")
        return models[0].id

    async def _request(self, model: str) -> Response:
        # Each chunk is a token, even without text.
        words = max(1, round(self.targets.isl * self.words_per_token))
        body = {
            "model": model,
            "messages": [{"role": "user", "content": " ".join(self._random.choices(_WORDS, k=words))}],
            "max_tokens": self.targets.osl,
            "min_tokens": self.targets.osl,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        times: list[float] = []
        usage = _Usage()
        sent = monotonic()
        async with self._send("POST", "/v1/chat/completions", body) as response:
            async for line in response.content:
                if (chunk := _chunk(line)) is not None:
                    times += [monotonic() for part in chunk.choices if part.finish_reason is None]
                    usage = chunk.usage or usage
        if len(times) < _MIN_TOKENS:
            raise RequestFailed(f"an answer of {len(times)} tokens")
        itl = (times[-1] - times[0]) / (len(times) - 1)
        tokens = usage.completion_tokens or len(times)
        return Response(times[0] - sent, itl, tokens, usage.prompt_tokens)

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: object = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        targets = self.targets
        timeout_seconds = _SLOWER * (targets.ttft + targets.osl * targets.itl) + _GRACE_SECONDS
        try:
            async with self.session.request(
                method,
                f"{self.url}{path}",
                json=body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_seconds),
            ) as response:
                if response.status >= _ERRORS:
                    text = (await response.content.read(500)).decode(errors="replace")
                    raise RequestFailed(f"HTTP {response.status}: {cut(text, 200)}")
                yield response
        except TimeoutError:
            raise RequestFailed(f"no complete answer within {timeout_seconds:.3g} s") from None
        # aiohttp reports a line without an end as HttpProcessingError.
        except (aiohttp.ClientError, HttpProcessingError) as error:
            raise RequestFailed(cut(f"{type(error).__name__}: {error}", 200)) from error


@asynccontextmanager
async def frontend(url: str, targets: Targets) -> AsyncIterator[Frontend]:
    """The frontend at a URL, with as many connections as concurrent requests."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield Frontend(session, url, targets)


def _chunk(line: bytes) -> _Chunk | None:
    """The chunk in a line of an event stream, or None for other lines."""
    prefix, _, data = line.strip().partition(b":")
    data = data.strip()
    if prefix != b"data" or not data or data == b"[DONE]":
        return None
    try:
        chunk = from_json(data, _Chunk)
    except msgspec.DecodeError as error:
        raise RequestFailed(f"an unreadable chunk: {error}") from error
    if chunk.error:
        raise RequestFailed(cut(bytes(chunk.error).decode(errors="replace"), 200))
    return chunk
