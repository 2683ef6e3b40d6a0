"""The running calls to workers, for each model, and their results.

A call may take minutes, and a reconcile must not. So the controller starts calls, continues, and is woken
when one has ended. Capacity is shared fairly: each model has its own slots, of which endpoints that failed
before get half at most; and all models of a namespace share a part of all slots, so hanging workers delay
no other namespace.
"""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final, TypeAlias, TypeVar
from urllib.parse import quote

import aiohttp
import structlog

from dynamo_operator.models import plan
from dynamo_operator.models.api import DynamoModel, EndpointInfo
from dynamo_operator.models.plan import Call, Ending, Endpoint, EndpointId, LoraVerb, Reply, Work
from dynamo_operator.models.status import listed, remembered
from dynamo_operator.shared.problems import without_credentials
from kube_runtime.times import FairSemaphore
from kube_runtime.types.meta import Key

BODY_LIMIT: Final = 1 << 16
"""Bytes of a response. A list of some hundred LoRAs fits."""

_READ_BYTES: Final = 1 << 14
_MESSAGE_LIMIT: Final = 256
_CONNECT_SECONDS: Final = 10.0
_METHODS: Final = {LoraVerb.LOAD: "POST", LoraVerb.UNLOAD: "DELETE", LoraVerb.LIST: "GET"}
_UNABLE: Final = frozenset((HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED))
_NOT_ENABLED: Final = "; check that this worker has DYN_LORA_ENABLED=true and, if it runs vLLM, --enable-lora"


@dataclass(frozen=True, slots=True)
class LoraApi:
    """The LoRA API of all workers. `dial` maps an endpoint's base URL to the one to connect to, for tests."""

    session: aiohttp.ClientSession
    timeout_seconds: float
    dial: Callable[[str], str]

    async def __call__(self, address: str, call: Call, timeout_seconds: float | None = None) -> Reply:
        """Call the endpoint at that base URL, and return the outcome. Without a timeout: the usual limit."""
        limit = timeout_seconds or self.timeout_seconds
        if {".", ".."} & set(call.name.split("/")):
            # Clients and servers normalize such a path, so the LoRA could not be unloaded.
            return Reply(
                Ending.FAILED, _short(f"invalid LoRA name {call.name} (a part of it is one or two dots)")
            )
        try:
            async with asyncio.timeout(limit):
                return await self._send(self.dial(address), call)
        except aiohttp.ServerTimeoutError:
            text = "connection refused or unreachable"
        except TimeoutError:
            text = f"no answer within {limit:g} seconds"
        except (aiohttp.ClientError, OSError) as error:
            text = f"no answer: {error}" if str(error) else "the connection was dropped"
        return Reply(Ending.FAILED, _short(text))

    async def _send(self, base: str, call: Call) -> Reply:
        # A slash in a name stays a slash.
        path = f"/{quote(call.name)}" if call.verb is LoraVerb.UNLOAD else ""
        load = {"lora_name": call.name, "source": {"uri": call.uri}}
        body = load if call.verb is LoraVerb.LOAD else None
        async with self.session.request(
            _METHODS[call.verb], f"{base}/v1/loras{path}", json=body, allow_redirects=False
        ) as answer:
            received = bytearray()
            async for chunk in answer.content.iter_any():
                received += chunk
                if len(received) > BODY_LIMIT:
                    return Reply(Ending.FAILED, f"the answer is longer than {BODY_LIMIT} bytes")
            return understood(call.verb, answer.status, bytes(received))


@asynccontextmanager
async def worker_api(timeout_seconds: float, dial: Callable[[str], str] = str) -> AsyncIterator[LoraApi]:
    """The LoRA API of all workers, open during the block, without cookies, connection reuse or proxies."""
    # Connections are not reused: calls to one worker are minutes apart, and pods are replaced in between.
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        auto_decompress=False,
        read_bufsize=_READ_BYTES,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        trust_env=False,
    ) as session:
        yield LoraApi(session, timeout_seconds, dial)


# A worker responds with 200 even if the engine could not load a LoRA, and with 404, 405 or 501 if
# it has no such API, which is not a failure of the LoRA. No response raises an exception: each call
# ends in a `Reply`.
def understood(verb: LoraVerb, status: int, body: bytes) -> Reply:
    """Interpret the response to a call."""
    answer: object = None
    with suppress(ValueError, RecursionError):
        answer = json.loads(body)
    answer = answer if isinstance(answer, dict) else {}
    text = answer.get("message")
    message = _short(text if isinstance(text, str) else body.decode(errors="replace"))
    if verb is LoraVerb.UNLOAD and (status == HTTPStatus.NOT_FOUND or "not found" in message.lower()):
        return Reply(Ending.DONE)
    if status in _UNABLE:
        is_route = "route not found" in message.lower()
        hint = _NOT_ENABLED if is_route else f": {message}" if message else ""
        return Reply(Ending.UNABLE, _short(f"cannot manage LoRAs: status {status}{hint}"))
    if status // 100 != 2:  # noqa: PLR2004  # the class of all successes
        return Reply(Ending.FAILED, f"status {status}: {message}" if message else f"status {status}")
    outcome = answer.get("status")
    if isinstance(outcome, str) and outcome.lower() != "success":
        return Reply(Ending.FAILED, message or f"the worker reports: {_short(outcome)}")
    loras = answer.get("loras") if verb is LoraVerb.LIST else None
    if isinstance(loras, (dict, list)) and all(isinstance(name, str) for name in loras):
        return Reply(Ending.DONE, loaded=frozenset(loras))
    return Reply(Ending.DONE)


def _short(text: str) -> str:
    """Shorten a text for a status: one line without control characters and credentials."""
    text = without_credentials(text)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _MESSAGE_LIMIT else f"{line[: _MESSAGE_LIMIT - 1]}…"


T = TypeVar("T")

_log = structlog.get_logger(__name__)

_MODELS_AT_ONCE = 20
"""Number of models that may use all of their slots at the same time."""

_PARTS = 4
"""The number of shares: one namespace gets one at most, and one is reserved for those without a call."""

UNLOADING_SECONDS = 28.0
"""Seconds that the final unloading may take; with the writes before and after, deletion takes under 30 s."""

_UNLOAD_SECONDS = 8.0
_LOADING_SECONDS = 12.0


Caller: TypeAlias = Callable[[str, Call, float | None], Awaitable[Reply]]
"""Makes one call to the endpoint at that base URL with that timeout, such as `LoraApi`; never raises."""


@dataclass(slots=True)
class Run:
    """The running calls at one endpoint: its known state, and the calls that have not ended."""

    endpoint: Endpoint
    calls: tuple[Call, ...]
    was_failing: bool
    task: asyncio.Task[None] = field(init=False)
    """Its result is that of the calls; the next `update` after its end collects what they did."""

    @property
    def view(self) -> Endpoint:
        """The state of the endpoint before they have ended."""
        return plan.pending(self.endpoint, self.calls)


@dataclass(slots=True)
class KnownEndpoints:
    """The known state of the endpoints of the model with that uid.

    `written` is the state in the status, None before that was read. `unloading` is the unloading of a deleted
    model.
    """

    uid: str
    endpoints: dict[EndpointId, Endpoint] = field(default_factory=dict[EndpointId, Endpoint])
    written: tuple[EndpointInfo, ...] | None = None
    runs: dict[EndpointId, Run] = field(default_factory=dict[EndpointId, Run])
    unloading: "asyncio.Task[int | None] | None" = None

    def record(self, endpoints: Iterable[Endpoint]) -> None:
        """Replace the known endpoints by these and those with running calls."""
        running = {place: run.endpoint for place, run in self.runs.items()}
        self.endpoints = running | {endpoint.id: endpoint for endpoint in endpoints}


@dataclass(eq=False, slots=True)
class ModelCalls:
    """Runs the calls of all models; a server of the manager.

    `may_call` returns, before each call, whether this process may act in the model's namespace. `wake`
    requeues a model. `silence` is why no worker is called at all; "" if they are.
    """

    connect: Callable[[], AbstractAsyncContextManager[Caller]]
    at_once: int = plan.MAX_CONCURRENT_CALLS
    may_call: Callable[[str], bool] = lambda _: True
    observe: Callable[[Call, Reply, float], None] = lambda *_: None
    """Receives each call that ended, with its duration in seconds."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    silence: str = ""
    wake: Callable[[Key], None] = lambda _: None
    _slots: FairSemaphore = field(init=False)
    _caller: Caller | None = None
    _opened: asyncio.Event = field(default_factory=asyncio.Event)
    _models: dict[Key, KnownEndpoints] = field(default_factory=dict[Key, KnownEndpoints])

    def __post_init__(self) -> None:
        # Each call holds a connection and the memory of a response, so all of them together are limited; a
        # tenant whose workers hang must not exhaust that limit.
        total = _MODELS_AT_ONCE * self.at_once
        self._slots = FairSemaphore(total, most_each=max(1, total // _PARTS), reserved=total // _PARTS)

    async def run(self) -> None:
        """Keep the HTTP session open until cancelled; then cancel every call."""
        async with self.connect() as caller:
            self._caller = caller
            self._opened.set()
            try:
                await asyncio.Event().wait()
            finally:
                for key in list(self._models):
                    self.forget(key)

    async def call(
        self, namespace: str, address: str, call: Call, timeout_seconds: float | None = None
    ) -> Reply:
        """Make one call when a slot is free, and return its outcome. The timeout does not cover the wait."""
        if self.silence:
            return Reply(Ending.FAILED, self.silence)
        await self._opened.wait()
        async with self._slots.slot(namespace):
            if self._caller is None or not self.may_call(namespace):
                return Reply(Ending.FAILED, "this operator may no longer act")
            loop = asyncio.get_running_loop()
            started = loop.time()
            reply = await self._caller(address, call, timeout_seconds)
            self.observe(call, reply, loop.time() - started)
            return reply

    def state_of(self, key: Key, uid: str) -> KnownEndpoints:
        """The known state of the model; empty at its first reconcile."""
        state = self._models.get(key)
        if state is None or state.uid != uid:
            self.forget(key)  # another object of the same name
            state = self._models[key] = KnownEndpoints(uid)
        return state

    def forget(self, key: Key) -> None:
        """Cancel all calls of the deleted model."""
        state = self._models.pop(key, None)
        if state is None:
            return
        for run in state.runs.values():
            run.task.cancel()
        if state.unloading is not None:
            state.unloading.cancel()

    def update(self, model: DynamoModel) -> KnownEndpoints:
        """Return the known state of the model's endpoints, with the results of ended calls.

        Raises:
            Exception: a bug; the calls of that endpoint become due again.
        """
        state = self.state_of(model.key, model.metadata.uid)
        if state.written != listed(model.status):  # another client wrote the status
            state.endpoints, state.written = remembered(model), listed(model.status)
        for place, run in list(state.runs.items()):
            if run.task.done():
                del state.runs[place]
                state.endpoints[place] = run.endpoint
                if not run.task.cancelled():
                    run.task.result()
        return state

    def start(self, key: Key, state: KnownEndpoints, due: Iterable[Work]) -> None:
        """Start these calls."""
        for work in due:
            run = Run(work.endpoint, work.calls, work.endpoint.failures > 0)
            run.task = self.begin(key, self._run_calls(key, run))
            state.runs[work.endpoint.id] = run

    def unload(self, key: Key, state: KnownEndpoints, endpoints: Sequence[Endpoint]) -> None:
        """Start the final unloading of a deleted model at these endpoints."""
        state.endpoints = {endpoint.id: endpoint for endpoint in endpoints}
        state.unloading = self.begin(key, unload_all(self, key.namespace, state, endpoints))

    def begin(self, key: Key, work: Coroutine[object, None, T]) -> asyncio.Task[T]:
        """Run `work` as a task that wakes the model at its end."""
        task = asyncio.create_task(work, name=f"calls of model {key}")
        task.add_done_callback(lambda _: self.wake(key) if key in self._models else None)
        return task

    async def _run_calls(self, key: Key, run: Run) -> None:
        while run.calls:
            call = run.calls[0]
            reply = await self.call(key.namespace, run.endpoint.address, call)
            log = _log.bind(verb=call.verb, pod=run.endpoint.pod_name, model=str(key))
            if reply.ending is Ending.DONE:
                log.info("LoRA call done")
            elif call.verb is LoraVerb.LOAD:  # users search the log for this line
                log.warning("Failed to load LoRA", error=reply.message)
            else:
                log.warning("LoRA call failed", error=reply.message)
            run.endpoint = plan.after(run.endpoint, call, reply, now=self.now())
            run.calls = run.calls[1:] if reply.ending is Ending.DONE else ()


async def unload_all(
    calls: ModelCalls, namespace: str, state: KnownEndpoints, endpoints: Sequence[Endpoint]
) -> int | None:
    """Unload the LoRAs of a deleted model; return the number of endpoints where that failed or timed out.

    Each worker gets one attempt, however many hang. Returns None if another process was responsible for the
    model meanwhile.
    """
    # With fewer slots, hanging workers could keep the others from their attempt.
    longest = _UNLOAD_SECONDS * max((len(endpoint.names) for endpoint in endpoints), default=1)
    rounds = max(1, UNLOADING_SECONDS // (longest + 1))
    slots = asyncio.Semaphore(max(calls.at_once, math.ceil(len(endpoints) / rounds)))
    failed = len(endpoints)

    async def at(endpoint: Endpoint) -> None:
        nonlocal failed
        run = state.runs.get(endpoint.id)
        if run is not None:
            # An unload that overtakes a running load has no effect.
            await asyncio.wait([run.task], timeout=_LOADING_SECONDS)
            run.task.cancel()
        unloads = [Call(LoraVerb.UNLOAD, name) for name in endpoint.names]
        async with slots:  # try every name, even after a failure
            replies = [
                await calls.call(namespace, endpoint.address, unload, _UNLOAD_SECONDS) for unload in unloads
            ]
        failed -= all(reply.ending is Ending.DONE for reply in replies)

    try:
        async with asyncio.timeout(UNLOADING_SECONDS), asyncio.TaskGroup() as group:
            for endpoint in endpoints:
                group.create_task(at(endpoint))
    except TimeoutError:
        pass  # unfinished endpoints count as failed
    return failed if calls.may_call(namespace) else None
