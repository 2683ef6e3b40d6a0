"""Logs, probes and metrics of the operator."""

import asyncio
import hashlib
import json
import logging
import re
import time
from collections import Counter as Counts
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Final, NoReturn, TextIO, TypeAlias

import structlog
from aiohttp import web
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from dynamo_operator import METRICS_PREFIX, labels, version
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.service import base_replicas, effective_replicas
from dynamo_operator.features.rollouts.status import RolloutResult, rollout_results
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel, EndpointInfo
from dynamo_operator.models.plan import Call, Reply
from dynamo_operator.process.scope import RECONCILED
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.settings import Address, LoggingSettings, TimeFormat
from dynamo_operator.shared.conditions import GraphReason
from kube_runtime.apply.suppression import Recent
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.manager import Health
from kube_runtime.errors import OperatorError, visible
from kube_runtime.server import ConnectionLimit, Limits
from kube_runtime.times import TokenBucket, loop_time, seconds_between
from kube_runtime.tls import Certificate
from kube_runtime.types.kinds import SubjectAccessReview, TokenReview, question, subject
from kube_runtime.types.meta import Resource, condition, cut

OK: Final = 200
UNKNOWN: Final = 401
FORBIDDEN: Final = 403
UNAVAILABLE: Final = 503
_ACCEPTED_SECONDS: Final = 60.0
_REFUSED_SECONDS: Final = 10.0
_MOST: Final = 1024
_AT_ONCE: Final = 4
_WAITING: Final = 32
_LONGEST_TOKEN: Final = 16 * 1024
_log = structlog.get_logger(__name__)


# Outsiders send requests as well. Each new token costs requests to the API server, so results are
# cached, refusals too, and only a few reviews run concurrently. Outsiders may evict each other from
# that cache, but never a scraper: permitted readers have a cache and a semaphore of their own. The
# caches hold digests, never tokens.
class Access:
    """Authorizes a bearer token to `get` a path."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._path = path
        self._readers: Recent[float] = Recent(_MOST)
        """The time at which each permitted reader was last accepted, by digest."""
        self._refused: Recent[tuple[int, float]] = Recent(_MOST)
        self._reviews = asyncio.Semaphore(_AT_ONCE)
        self._reader_reviews = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def status(self, authorization: str) -> int:
        """The HTTP status for a client with that header: 200, 401, 403, or 503 if no review is possible."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        is_token = bool(token) and token.isascii() and len(token) <= _LONGEST_TOKEN
        if scheme.lower() != "bearer" or not is_token:
            return UNKNOWN
        digest = hashlib.sha256(token.encode()).digest()
        accepted_at = self._readers.get(digest)
        is_reader = accepted_at is not None
        if accepted_at is not None and accepted_at + _ACCEPTED_SECONDS > loop_time():
            return OK
        refusal, until = self._refused.get(digest) or (0, 0.0)
        if not is_reader and until > loop_time():
            return refusal
        if not is_reader and self._waiting >= _WAITING:
            return UNAVAILABLE
        self._waiting += not is_reader
        try:
            async with self._reader_reviews if is_reader else self._reviews:
                status = await self._review(token)
        except OperatorError as error:
            _log.warning("failed to authorize a reader of metrics", error=str(error))
            return UNAVAILABLE
        finally:
            self._waiting -= not is_reader
        if status == OK:
            self._refused.forget(digest)
            self._readers.put(digest, loop_time())
        else:
            self._readers.forget(digest)
            self._refused.put(digest, (status, loop_time() + _REFUSED_SECONDS))
        return status

    async def _review(self, token: str) -> int:
        body = question(TokenReview.KIND, {"token": token})
        token_review = await self._client.create(TokenReview, body)
        if not token_review.status.authenticated:
            return UNKNOWN
        attributes = {"path": self._path, "verb": "get"}
        spec = {**subject(token_review.status.user), "nonResourceAttributes": attributes}
        body = question(SubjectAccessReview.KIND, spec)
        access_review = await self._client.create(SubjectAccessReview, body)
        return OK if access_review.status.allowed else FORBIDDEN


_ENDPOINT_STATES = ("ready", "failing", "covered", "waiting")
_CALL_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


def state_of(resource: Resource) -> str:
    """The state in a status, `unknown` before there is one; `ready` or `not_ready` where a kind has none."""
    match resource:
        case DynamoGraphDeployment() | DynamoGraphDeploymentRequest():
            return resource.status.state or "unknown"
        case DynamoGraphDeploymentScalingAdapter():
            return "ready" if resource.status.selector and resource.status.replicas else "not_ready"
        case DynamoComponentDeployment() | DynamoModel():
            type_ = "EndpointsReady" if isinstance(resource, DynamoModel) else "Available"
            reported = condition(resource.status.conditions, type_)
            return "ready" if reported is not None and reported.status == "True" else "not_ready"
        case _:
            raise TypeError(resource)


_OF_A_GRAPH = ("namespace", "graph")
_GAUGES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "resources_total": ("Objects by kind, namespace and state.", ("resource_type", "namespace", "status")),
    "graph_ready": ("1 while the graph is ready, else 0.", _OF_A_GRAPH),
    "graph_state_seconds": (
        "Time since the graph became ready or not ready; absent for suspended graphs.",
        (*_OF_A_GRAPH, "ready"),
    ),
    "graph_gpus_desired": ("GPUs that the graph requests.", _OF_A_GRAPH),
    "graph_replicas_desired": ("Desired replicas of the service.", (*_OF_A_GRAPH, "service")),
    "graph_replicas_ready": ("Ready replicas of the service.", (*_OF_A_GRAPH, "service")),
    "paused_objects": (
        "Paused objects, which the operator does not reconcile.",
        ("resource_type", "namespace"),
    ),
    "model_endpoints": (
        "Endpoints of the model: `ready`, `failing`, `covered` by others, or `waiting`.",
        ("namespace", "model", "state"),
    ),
}
"""The text and the labels of each gauge of objects."""

_Samples: TypeAlias = Iterator[tuple[str, tuple[str, ...], float]]
"""Gauges, each with label values and a value."""


def _graph_samples(graph: DynamoGraphDeployment, now: datetime) -> _Samples:
    ready = condition(graph.status.conditions, "Ready")
    yield "graph_ready", graph.key, float(ready is not None and ready.status == "True")
    if ready is not None and ready.reason != GraphReason.SUSPENDED:  # on purpose, so no alert may fire
        passed = seconds_between(ready.last_transition_time, now)
        if passed is not None:
            yield "graph_state_seconds", (*graph.key, ready.status.lower()), max(0.0, passed)
    if graph.status.gpus is not None:
        yield "graph_gpus_desired", graph.key, graph.status.gpus
    for name, number in effective_replicas(graph, {}, ()).items():
        replicas = base_replicas(graph, name) if number is None else number
        yield "graph_replicas_desired", (*graph.key, name), replicas
    for name, status in graph.status.services.items():
        ready_replicas, available = status.ready_replicas, status.available_replicas
        counted = available if ready_replicas is None else ready_replicas
        if counted is not None:
            yield "graph_replicas_ready", (*graph.key, name), counted


# Gauges of objects are computed from the cache at each scrape: a gauge that is set by events would
# keep counting deleted objects. Label values are names of graphs, services and models, as many as
# users create; never pods or messages.
class ObjectGauges(Collector):
    """The gauges of cached objects: their number by state, and the state of graphs and models."""

    def __init__(self, cache: Cache, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._cache = cache
        self._now = now

    def collect(self) -> Iterable[Metric]:
        """Compute all gauges from the cache."""
        gauges = {
            name: GaugeMetricFamily(f"{METRICS_PREFIX}_{name}", text, labels=labels)
            for name, (text, labels) in _GAUGES.items()
        }
        for name, label_values, value in self._samples():
            gauges[name].add_metric(label_values, value)
        return gauges.values()

    def _samples(self) -> _Samples:
        counts: Counts[tuple[str, tuple[str, ...]]] = Counts()
        now = self._now()
        for type_ in RECONCILED:
            for resource in self._cache.list(type_):
                owner = type_.KIND.name, resource.metadata.namespace
                counts["resources_total", (*owner, state_of(resource))] += 1
                counts["paused_objects", owner] += resource.metadata.is_true(labels.PAUSED)
                if isinstance(resource, DynamoGraphDeployment):
                    yield from _graph_samples(resource, now)
                elif isinstance(resource, DynamoModel):
                    states = Counts(map(_endpoint_state, resource.status.endpoints))
                    for state in _ENDPOINT_STATES:
                        yield "model_endpoints", (*resource.key, state), states[state]
        yield from ((name, values, count) for (name, values), count in counts.items() if count)


def _endpoint_state(endpoint: EndpointInfo) -> str:
    if endpoint.ready:
        return "ready"
    if endpoint.fallback_covered:
        return "covered"
    return "failing" if endpoint.failures else "waiting"


class CallMetrics:
    """Counts calls to workers, in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        text = "Calls to workers by verb (`load`, `unload`, `list`) and result (`done`, `unable`, `failed`)."
        name = f"{METRICS_PREFIX}_adapter_call"
        self._calls = Counter(f"{name}s", text, ("verb", "result"), registry=registry)
        text, buckets = "Duration of calls to workers.", _CALL_BUCKETS
        self._seconds = Histogram(f"{name}_seconds", text, ("verb",), buckets=buckets, registry=registry)

    def called(self, call: Call, reply: Reply, seconds: float) -> None:
        """Count a call that has ended."""
        self._calls.labels(call.verb.value, reply.ending.value).inc()
        self._seconds.labels(call.verb.value).observe(seconds)


class RolloutMetrics:
    """The counter `dynamo_operator_rollouts_total`, in `registry`: started rollouts, and their results.

    The leader counts when it has written the status. A new process counts from 0, without what the status
    contains already. At most one step is lost: that of a status write whose response did not arrive.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        text = (
            "Managed rollouts of workers: `started`, then `completed` or `superseded` by another "
            "change. `deadline_exceeded` ends none."
        )
        counter = Counter(f"{METRICS_PREFIX}_rollouts", text, ("result",), registry=registry)
        # All series exist from the start: Prometheus sees no increase from an absent series to 1.
        self._counts = {result: counter.labels(result.value) for result in RolloutResult}

    def written(self, before: DynamoGraphDeployment, after: DynamoGraphDeployment) -> None:
        """Count what is new in the status of `after`, which was just written onto `before`."""
        for result in rollout_results(before, after):
            self._counts[result].inc()


def register(registry: CollectorRegistry, cache: Cache) -> None:
    """Register the metrics of objects and of the process."""
    registry.register(ObjectGauges(cache))
    Info(f"{METRICS_PREFIX}_build", "The running version.", registry=registry).info({"version": version()})
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)


def register_scope(
    registry: CollectorRegistry, excluded: Callable[[], int], has_rival: Callable[[], bool]
) -> None:
    """Register the gauges of excluded namespaces, 0 in a restricted operator, and of another installation."""
    text = "Namespaces claimed by restricted operators, in which this one does nothing."
    Gauge(f"{METRICS_PREFIX}_excluded_namespaces", text, registry=registry).set_function(excluded)
    text = "1 while another installation holds the leader Lease, so that this one never acts."
    Gauge(f"{METRICS_PREFIX}_other_installation_leads", text, registry=registry).set_function(has_rival)


Check: TypeAlias = Callable[[], Health]
_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
METRICS = "/metrics"
_LIMITS = Limits(connections=64)
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class HttpServer:
    """Serves GET requests for some paths until it is cancelled; over TLS, with a `certificate`."""

    def __init__(
        self, address: Address, routes: Mapping[str, _Handler], *, certificate: Certificate | None = None
    ) -> None:
        self._address = address
        self._routes = routes
        self._certificate = certificate
        self.listening = asyncio.Event()
        self.port = address.port

    async def run(self) -> NoReturn:
        """Serve until cancelled.

        Raises: ConfigError if the address cannot be bound.
        """
        app = web.Application()
        app.add_routes([web.get(path, handler) for path, handler in self._routes.items()])
        context = self._certificate.listener if self._certificate else None
        listener = ConnectionLimit(app, _LIMITS)
        try:
            self.port = await listener.listen(self._address, context)
            self.listening.set()
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            await listener.close()


# A probe must prove progress, not that this server runs: the manager provides the checks.
def health_server(address: Address, *, alive: Check, ready: Check) -> HttpServer:
    """A server of `/healthz` and `/readyz`, with the responses of Kubernetes components."""
    routes: dict[str, _Handler] = {}
    for name, check in (("healthz", alive), ("readyz", ready)):
        routes[f"/{name}"] = routes[f"/{name}/{name}"] = _probe(name, check)
    return HttpServer(address, routes)


def metrics_server(
    address: Address,
    registry: CollectorRegistry,
    *,
    certificate: Certificate | None = None,
    access: Access | None = None,
) -> HttpServer:
    """A server of `/metrics`, in the format that the scraper requests; without `access` for any client."""

    async def metrics(request: web.Request) -> web.Response:
        if access is not None:
            status = await access.status(request.headers.get("Authorization", ""))
            if status != OK:
                return web.Response(status=status, headers=_CHALLENGE if status == UNKNOWN else {})
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.Response(body=encode(registry), headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    return HttpServer(address, {METRICS: metrics}, certificate=certificate)


def _probe(name: str, check: Check) -> _Handler:
    async def probe(request: web.Request) -> web.Response:
        health = check()
        if health and "verbose" not in request.query:
            return web.Response(text="ok")
        verdict = "passed" if health else "failed"
        lines = [*(f"[-]{problem}" for problem in health.problems), f"{name} check {verdict}"]
        return web.Response(text="\n".join(lines) + "\n", status=200 if health else 500)

    return probe


REDACTED = "[redacted]"
TEXT_LIMIT = 2048
"""Most characters of a field: the relevant part of the API server's longest messages."""
BURST, REFILL_SECONDS = 200, 1.0
"""Lines about one object, and the seconds until one more is allowed: creating a graph of fifty
services logs fewer than 200."""
REMEMBERED_LIMIT = 16_384
"""Most objects whose lines are counted: those that were logged about last."""
_SECRET = re.compile(r"(?i)(token|secret|passw(or)?d|authorization|credential|api[-_]?key|private[-_]?key)")
_SHORT = 128
_FIRST = (
    *("timestamp", "level", "logger", "message", "reason", "cause"),
    *("controller", "namespace", "graph", "key"),
)
_HARMLESS = re.compile(r"(?i)(name|names|namespace|ref|count|from[-_]?secret|from)$")


# Libraries log through `logging`, the operator through structlog; both produce the same lines.
def configure(settings: LoggingSettings, stream: TextIO) -> None:
    """Send every entry of structlog and of `logging` to the stream. Called once, at start."""
    is_terminal = stream.isatty()
    is_console = settings.format == "console" or (settings.format == "auto" and is_terminal)

    def with_time(_: WrappedLogger, __: str, entry: EventDict) -> EventDict:
        entry["timestamp"] = written(time.time_ns(), settings.time_format)
        return entry

    before: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        with_time,
        redacted,
    ]
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    about: Processor = structlog.contextvars.merge_contextvars
    last = _FOR_MACHINES
    if is_console:
        plain = structlog.dev.plain_traceback
        last = (structlog.dev.ConsoleRenderer(colors=is_terminal, exception_formatter=plain),)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[about, structlog.stdlib.ExtraAdder(), *before],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    structlog.configure(
        processors=[about, LinesPerObject(), *before, *last],
        logger_factory=partial(_Lines, stream),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )


# Not by way of `logging`: half of what a line costs, of which a new graph writes twenty.
class _Lines(structlog.WriteLogger):
    """Writes the lines of one module. A stream that takes none, such as of a full disk, ends no reconcile."""

    def __init__(self, stream: TextIO, name: str = "") -> None:
        super().__init__(stream)
        self.name = name

    def msg(self, message: str) -> None:
        """Write a line."""
        with suppress(OSError, ValueError):  # the second: the stream is closed
            super().msg(message)

    log = debug = info = warn = warning = error = critical = fatal = exception = failure = err = msg


# Values of environment variables and of keys that may be secret are redacted, and tracebacks have no
# local variables. Texts are cut and lose their control characters, since users and other programs
# write parts of them. Code that raises an error keeps secrets out of its message.
def redacted(_: WrappedLogger, __: str, entry: EventDict) -> EventDict:
    """Redact values that may be secret. A structlog processor."""
    return {key: _value(key, value) for key, value in entry.items()}


_JSON = json.JSONEncoder(default=str)  # one for all lines


def _in_json(_: WrappedLogger, __: str, entry: EventDict) -> str:
    entry["message"] = entry.pop("event")
    return _JSON.encode({key: entry[key] for key in (*_FIRST, *entry) if key in entry})


_FOR_MACHINES: tuple[Processor, ...] = (
    structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
    _in_json,
)


@lru_cache(maxsize=1024)  # most keys are those of the lines themselves
def _is_secret(key: str) -> bool:
    return _SECRET.search(key) is not None and _HARMLESS.search(key) is None


def _value(key: str, value: object) -> object:
    if value is not None and _is_secret(key):
        return REDACTED
    if isinstance(value, str):
        is_plain = len(value) <= _SHORT and value.isprintable()
        return value if is_plain else visible(cut(value, TEXT_LIMIT))
    if isinstance(value, Mapping):
        if "name" in value and "value" in value:  # an environment variable of a container
            return {**value, "value": REDACTED}
        return {name: _value(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_value("", inner) for inner in value]
    return value


# Lines about one object are rate-limited, so that an object that fails repeatedly leaves the log
# readable.
@dataclass(slots=True)
class LinesPerObject:
    """A structlog processor that drops lines about an object above its rate limit; `debug` lines are exempt.

    The next line that is written has the number of dropped lines in `dropped`. If the object is forgotten
    before, because it was quiet or others are many, a line of its own has the number.
    """

    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[tuple[object, object], TokenBucket] = field(default_factory=OrderedDict)
    _dropped: Counts[tuple[object, object]] = field(default_factory=Counts)

    def __call__(self, _: WrappedLogger, method: str, entry: EventDict) -> EventDict:
        """Return the entry.

        Raises:
            DropEvent: the object exceeded its limit.
        """
        about = (entry.get("namespace"), entry.get("key") or entry.get("name"))
        if method == "debug" or about[1] is None:
            return entry
        now = self.clock()
        bucket = self._buckets.get(about)
        if bucket is None:
            bucket = self._buckets[about] = TokenBucket(BURST, now)
        self._buckets.move_to_end(about)
        is_written = bucket.take(BURST, REFILL_SECONDS, now)
        self._forget(now)
        if not is_written:
            self._dropped[about] += 1
            raise structlog.DropEvent
        if dropped := self._dropped.pop(about, 0):
            entry["dropped"] = dropped
        return entry

    def _forget(self, now: float) -> None:
        """Forget the objects whose limit is whole again, which most are, and the oldest of too many."""
        while True:
            oldest, bucket = next(iter(self._buckets.items()))
            is_whole = now - bucket.at >= BURST * REFILL_SECONDS
            if not is_whole and len(self._buckets) <= REMEMBERED_LIMIT:
                return
            del self._buckets[oldest]
            if dropped := self._dropped.pop(oldest, 0):
                _log.warning("dropped lines about an object", object=oldest[1], dropped=dropped)


_DIVISORS = {"epoch": 1e9, "millis": 1e6}
_FRACTION_LENGTHS = {"rfc3339": 0, "iso8601": 4, "rfc3339nano": 10}


def written(nanoseconds: int, form: TimeFormat) -> str | float | int:
    """A time since 1970 in one of zap's formats."""
    if form == "nano":
        return nanoseconds
    if form in _DIVISORS:
        return nanoseconds / _DIVISORS[form]
    seconds, rest = divmod(nanoseconds, 10**9)
    return _second(seconds) + f".{rest:09}"[: _FRACTION_LENGTHS[form]] + "Z"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
