"""Prometheus metrics of the runtime.

Other modules do not depend on Prometheus: they call one method of `RuntimeMetrics` per event. Each instance
has its own registry by default, so that two managers in one process, as in tests, stay separate.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube_runtime.client.client import Answer, Request, Transport
from kube_runtime.errors import ApiError, Unreachable
from kube_runtime.times import loop_time

Reading: TypeAlias = Callable[[], float]
Family: TypeAlias = type[CounterMetricFamily] | type[GaugeMetricFamily]


class CallbackMetrics(Collector):
    """A metric with one label, read at each scrape, so that counting costs nothing.

    Readings with the same label value are added: one kind may have several watches.
    """

    def __init__(self, family: Family, name: str, text: str, label: str) -> None:
        self._family = family
        self._name = name
        self._text = text
        self._label = label
        self._readings: dict[str, list[Reading]] = {}

    def add(self, value: str, reading: Reading) -> None:
        """Add a reading for a value of the label."""
        self._readings.setdefault(value, []).append(reading)

    def collect(self) -> Iterator[Metric]:
        """Read the values."""
        family = self._family(self._name, self._text, labels=(self._label,))
        for value, readings in self._readings.items():
            family.add_metric((value,), sum(reading() for reading in readings))
        yield family


_RECONCILE_BUCKETS: Final = (*(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5), *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0))
_REQUEST_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_BY_REASON: Final = {
    "NotFound": "not_found",
    "AlreadyExists": "already_exists",
    "Conflict": "conflict",
    "Invalid": "validation",
    "BadRequest": "bad_request",
    "Unauthorized": "unauthorized",
    "Forbidden": "forbidden",
    "Timeout": "timeout",
    "ServerTimeout": "server_timeout",
    "ServiceUnavailable": "unavailable",
    "TooManyRequests": "rate_limited",
}
_BY_CODE: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    422: "validation",
    429: "rate_limited",
    503: "unavailable",
    504: "timeout",
}


def error_label(error: BaseException) -> str:
    """The `error_type` label of an error; `internal` for all that have no label of their own.

    The reason of the API server takes precedence over the code: 409 and 504 each have two reasons.
    """
    if isinstance(error, ApiError):
        return _BY_REASON.get(error.reason) or _BY_CODE.get(error.code, "internal")
    if isinstance(error, Unreachable):
        return "unavailable"
    if isinstance(error, TimeoutError):
        return "timeout"
    return "internal"


class RuntimeMetrics:
    """The metrics, in `registry`; all names begin with `prefix`."""

    def __init__(self, registry: CollectorRegistry | None = None, *, prefix: str = "kube_runtime") -> None:
        self.registry = registry or CollectorRegistry()
        self._prefix = prefix
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        labels = ("resource_type", "namespace", "result")
        self._reconcile_seconds = self._histogram(
            "reconcile_duration_seconds", "Duration of reconciles.", _RECONCILE_BUCKETS, *labels
        )
        self._reconciles = self._counter("reconcile", "Completed reconciles.", *labels)
        self._reconcile_errors = self._counter(
            "reconcile_errors", "Failed reconciles.", *("resource_type", "namespace", "error_type")
        )
        self._depth = self._gauge("queue_depth", "Keys that are due and waiting.", "resource_type")
        self._added = self._read(CounterMetricFamily, "queue_adds", "Keys added, retries included.")
        self._retried = self._read(
            CounterMetricFamily, "queue_retries", "Keys added after a failed reconcile."
        )
        self._queue_seconds = self._histogram(
            "queue_wait_seconds", "Time a due key waited for a worker.", _RECONCILE_BUCKETS, "resource_type"
        )
        self._active = self._gauge("reconciles_active", "Running reconciles.", "resource_type")

        self._requests = self._counter(
            "api_requests", "Requests to the API server.", "verb", "resource", "code"
        )
        self._request_seconds = self._histogram(
            "api_request_duration_seconds",
            "Response time of the API server.",
            _REQUEST_BUCKETS,
            "verb",
            "resource",
        )
        self._broken = self._read(
            GaugeMetricFamily, "undecodable_objects", "Watched objects that do not match their schema."
        )
        self._held = self._read(GaugeMetricFamily, "cache_objects", "Cached objects.")
        self._interruptions = self._read(
            CounterMetricFamily, "watch_restarts", "Watches restarted after an error."
        )
        self._events_dropped = self._counter(
            "events_dropped",
            "Kubernetes Events dropped without being written; `cause` is unreachable, refused, queue_full, "
            "budget (25 for an object, then one in 300 s), namespace_gone or stopped.",
            "cause",
        )

        self._lag = self._gauge("loop_lag_seconds", "Lag of the event loop's last timer.")
        self._expires = self._read(
            GaugeMetricFamily,
            "certificate_expiry_timestamp_seconds",
            "Expiry of the served certificate.",
            "certificate",
        )
        self._leader = self._gauge("leader", "1 while this process leads, else 0.")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{self._prefix}_{name}_total", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{self._prefix}_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        name = f"{self._prefix}_{name}"
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def _read(self, family: Family, name: str, text: str, label: str = "resource_type") -> CallbackMetrics:
        metric = CallbackMetrics(family, f"{self._prefix}_{name}", text, label)
        self.registry.register(metric)
        return metric

    def reconciled(self, kind: str, namespace: str, result: str, seconds: float) -> None:
        """Count one reconcile; `result` is `success`, `requeue` or `error`."""
        self._reconciles.labels(kind, namespace, result).inc()
        self._reconcile_seconds.labels(kind, namespace, result).observe(seconds)

    def forget(self, kind: str, namespace: str) -> None:
        """Remove the series of a kind in a namespace without objects."""
        labels = {"resource_type": kind, "namespace": namespace}
        for metric in (self._reconciles, self._reconcile_seconds, self._reconcile_errors):
            metric.remove_by_labels(labels)

    def reconcile_failed(self, kind: str, namespace: str, error: BaseException) -> None:
        """Count the error of a failed reconcile."""
        self._reconcile_errors.labels(kind, namespace, error_label(error)).inc()

    def observe_queue(
        self, kind: str, *, depth: Reading, active: Reading, added: Reading, retried: Reading
    ) -> None:
        """Read a controller's queue and its running reconciles at each scrape."""
        self._depth.labels(kind).set_function(depth)
        self._active.labels(kind).set_function(active)
        self._added.add(kind, added)
        self._retried.add(kind, retried)

    def observe_certificate(self, use: str, expires: Reading) -> None:
        """Read the expiry of a certificate at each scrape: seconds since 1970, NaN without a certificate."""
        self._expires.add(use, expires)

    def waited(self, kind: str, seconds: float) -> None:
        """Observe how long a due key waited for a worker."""
        self._queue_seconds.labels(kind).observe(seconds)

    def requested(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count one request; code 0: no response."""
        series = self._series.get((verb, resource, code))
        if series is None:  # cached, because a lookup by labels costs more than counting
            counter = self._requests.labels(verb, resource, str(code))
            series = counter, self._request_seconds.labels(verb, resource)
            self._series[verb, resource, code] = series
        requests, durations = series
        requests.inc()
        durations.observe(seconds)

    def observe_watch(self, kind: str, *, broken: Reading, held: Reading, interruptions: Reading) -> None:
        """Read the objects and the restarts of a watch at each scrape."""
        self._broken.add(kind, broken)
        self._held.add(kind, held)
        self._interruptions.add(kind, interruptions)

    def event_dropped(self, cause: str) -> None:
        """Count one Kubernetes Event that is dropped."""
        self._events_dropped.labels(cause).inc()

    def lagged(self, seconds: float) -> None:
        """Set the lag of the last timer of the event loop."""
        self._lag.set(seconds)

    def leadership(self, *, is_leader: bool) -> None:
        """Set whether this process leads."""
        self._leader.set(is_leader)


_CONTENT_VERBS = {"application/apply-patch+yaml": "apply", "application/merge-patch+json": "patch"}


_METHOD_VERBS = {"POST": "create", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class InstrumentedTransport:
    """Wraps a transport, and counts its requests by verb, resource and status code."""

    transport: Transport
    metrics: RuntimeMetrics

    async def send(self, request: Request) -> Answer:
        """Send a request.

        Raises:
            Unreachable: no response; counted as code 0.
        """
        verb, resource = verb_and_resource(request)
        started = loop_time()
        try:
            answer = await self.transport.send(request)
        except Unreachable:
            self.metrics.requested(verb, resource, 0, loop_time() - started)
            raise
        self.metrics.requested(verb, resource, answer.status, loop_time() - started)
        return answer


def verb_and_resource(request: Request) -> tuple[str, str]:
    """The verb, as in audit logs, and the resource with its subresource."""
    parts = request.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:  # noqa: PLR2004 - a namespace's contents
        rest = rest[2:]
    named = len(rest) > 1
    resource = "/".join((rest[0], *rest[2:])) if rest else "discovery"
    if request.method == "GET":
        verb = "get" if named else "watch" if request.query.get("watch") else "list"
        return ("get" if not rest else verb), resource
    content = _CONTENT_VERBS.get(request.content_type) if request.method == "PATCH" else None
    return content or _METHOD_VERBS.get(request.method, request.method.lower()), resource
