"""Requests to a frontend whose answers are timed as their tokens come in.

They arrive at a constant rate whether or not earlier ones are answered, as users do: a client that waits for
answers would ask a slow graph less.
"""

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

import aiohttp
import msgspec
from aiohttp.http import HttpProcessingError

from dynamo_profiler.configuration import Targets
from dynamo_profiler.measurement import Answered, Load, load_of
from kube_runtime.errors import OperatorError
from kube_runtime.text import cut

MOST_REQUESTS = 600
"""Of one load. More would take long, or be more tokens than one process in Python can time."""
FEWEST_REQUESTS = 10
_LEAST_TOKENS = 2
"""Of an answer: the time between two needs as many."""
_ERRORS = 400
_MOST_WORDS = 4.0
"""For a token, whatever a frontend counts."""
_SLOWER = 10.0
"""Times the targets, after which an answer is given up."""
_GRACE_SECONDS = 30.0
_TEXT = (
    "the of and to in a is that for it as was with be by on not but at are this have from or had an they "
    "one you were all there would their we been has when who will no more if out so up into than them can"
)
_WORDS = tuple(_TEXT.split())
"""Each is one token to most models."""


class Unanswered(OperatorError):
    """A request that got no complete answer; the text is why."""


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Part(msgspec.Struct, frozen=True):
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    """A part of an answer, or an error in its place."""

    choices: tuple[_Part, ...] = ()
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


class _Model(msgspec.Struct, frozen=True):
    id: str


class _Models(msgspec.Struct, frozen=True):
    data: tuple[_Model, ...] = ()


@dataclass(slots=True)
class Frontend:
    """The frontend of one graph. `words_per_token` is of our prompts, as its answers count them."""

    session: aiohttp.ClientSession
    url: str
    targets: Targets
    words_per_token: float = 1.0
    _random: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311  # no secret

    async def warm_up(self, seconds: float) -> str:
        """Wait until it answers, and return the model that it serves.

        The first requests are slow, and are not measured. Their answers say how many tokens a prompt has.

        Raises:
            Unanswered: it does not answer within that time.
        """
        deadline = monotonic() + seconds
        while True:
            try:
                model = await self._model()
                for _ in range(2):
                    answer = await self._ask(model)
                    if answer.prompt_tokens:
                        words = self.words_per_token * self.targets.isl / answer.prompt_tokens
                        self.words_per_token = min(max(words, 1 / _MOST_WORDS), _MOST_WORDS)
            except Unanswered:
                if monotonic() > deadline:
                    raise
                await asyncio.sleep(2)
            else:
                return model

    async def load(self, model: str, rate: float, seconds: float) -> Load:
        """What comes of requests at a rate, for about that time."""
        count = min(MOST_REQUESTS, max(FEWEST_REQUESTS, math.ceil(rate * seconds)))
        answered: list[Answered] = []
        failures: list[str] = []

        async def one() -> None:
            try:
                answered.append(await self._ask(model))
            except Unanswered as error:
                failures.append(str(error))

        async with asyncio.TaskGroup() as group:
            begun = monotonic()
            for number in range(count):
                await asyncio.sleep(begun + number / rate - monotonic())
                group.create_task(one())
        return load_of(rate, answered, failures)

    async def _model(self) -> str:
        async with self._answer("GET", "/v1/models") as answer:
            try:
                models = msgspec.json.decode(await answer.read(), type=_Models).data
            except msgspec.DecodeError as error:
                raise Unanswered(f"/v1/models: {error}") from error
        if not models:
            raise Unanswered("no model is served yet")
        return models[0].id

    async def _ask(self, model: str) -> Answered:
        """The times of one answer. A chunk is a token, also one without text.

        Raises:
            Unanswered: there is none, or it ends early.
        """
        words = max(1, round(self.targets.isl * self.words_per_token))
        body = {
            "model": model,
            "messages": [
                {"role": "user", "content": " ".join(self._random.choices(_WORDS, k=words))}
            ],
            "max_tokens": self.targets.osl,
            "min_tokens": self.targets.osl,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        times: list[float] = []
        usage = _Usage()
        asked = monotonic()
        async with self._answer("POST", "/v1/chat/completions", body) as answer:
            async for line in answer.content:
                if (chunk := _chunk(line)) is not None:
                    times += [monotonic() for part in chunk.choices if part.finish_reason is None]
                    usage = chunk.usage or usage
        if len(times) < _LEAST_TOKENS:
            raise Unanswered(f"an answer of {len(times)} tokens")
        between = (times[-1] - times[0]) / (len(times) - 1)
        tokens = usage.completion_tokens or len(times)
        return Answered(times[0] - asked, between, tokens, usage.prompt_tokens)

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, body: object = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A successful answer.

        Raises:
            Unanswered: there is none.
        """
        targets = self.targets
        total = _SLOWER * (targets.ttft + targets.osl * targets.itl) + _GRACE_SECONDS
        try:
            async with self.session.request(
                method, f"{self.url}{path}", json=body, timeout=aiohttp.ClientTimeout(total=total)
            ) as answer:
                if answer.status >= _ERRORS:
                    text = (await answer.content.read(500)).decode(errors="replace")
                    raise Unanswered(f"HTTP {answer.status}: {cut(text, 200)}")
                yield answer
        except TimeoutError:
            raise Unanswered(f"no complete answer within {total:.3g} s") from None
        except (
            aiohttp.ClientError,
            HttpProcessingError,
        ) as error:  # the latter: a line without an end
            raise Unanswered(cut(f"{type(error).__name__}: {error}", 200)) from error


@asynccontextmanager
async def frontend(url: str, targets: Targets) -> AsyncIterator[Frontend]:
    """The frontend at a URL, with connections of its own, as many as there are requests."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield Frontend(session, url, targets)


def _chunk(line: bytes) -> _Chunk | None:
    """The chunk in a line of a stream of events. None means: the line has none.

    Raises:
        Unanswered: it reports an error, or is unreadable.
    """
    prefix, _, data = line.strip().partition(b":")
    data = data.strip()
    if prefix != b"data" or not data or data == b"[DONE]":
        return None
    try:
        chunk = msgspec.json.decode(data, type=_Chunk)
    except msgspec.DecodeError as error:
        raise Unanswered(f"an unreadable chunk: {error}") from error
    if chunk.error:
        raise Unanswered(cut(bytes(chunk.error).decode(errors="replace"), 200))
    return chunk
