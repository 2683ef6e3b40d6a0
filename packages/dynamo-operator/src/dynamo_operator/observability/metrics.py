"""Prometheus metrics of the product: objects by state, graphs, models, rollouts, calls and reviews.

Gauges of objects are computed from the cache at each scrape: a gauge that is set by events would keep
counting deleted objects. Label values are names of graphs, services and models, as many as users create;
never pods or messages.
"""

from collections import Counter as Counts
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

from prometheus_client import (
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel, EndpointInfo
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.plan.lora_calls import Call, Reply
from dynamo_graphs.product import version
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.status.rollout import RolloutResult, rollout_results
from kube_runtime.times import seconds_between
from kube_runtime.types.meta import Condition, R, Resource, condition

_PREFIX = "dynamo_operator"
_GRAPH = ("namespace", "graph")
_SERVICE = (*_GRAPH, "service")
_ENDPOINT_STATES = ("ready", "failing", "covered", "waiting")
_CALL_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_REVIEW_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE"})
_Samples: TypeAlias = Iterator[tuple[tuple[str, ...], float]]
"""Label values, each with the value of a gauge."""


class Listing(Protocol):
    """The part of the cache that counting needs."""

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:
        """The objects of a type."""
        ...


def reported_state(resource: DynamoGraphDeployment | DynamoGraphDeploymentRequest) -> str:
    """The state in the status; `unknown` before there is one."""
    return resource.status.state or "unknown"


def component_state(component: DynamoComponentDeployment) -> str:
    """`ready` while the component is available, else `not_ready`."""
    return "ready" if _is_true(component.status.conditions, "Available") else "not_ready"


def adapter_state(adapter: DynamoGraphDeploymentScalingAdapter) -> str:
    """`ready` while the adapter has replicas to scale, else `not_ready`."""
    return "ready" if adapter.status.selector and adapter.status.replicas else "not_ready"


def model_state(model: DynamoModel) -> str:
    """`ready` while all endpoints of the model are ready, else `not_ready`."""
    return "ready" if _is_true(model.status.conditions, "EndpointsReady") else "not_ready"


def _is_true(conditions: tuple[Condition, ...], type_: str) -> bool:
    reported = condition(conditions, type_)
    return reported is not None and reported.status == "True"


_STATES: tuple[tuple[type[Resource], Callable[[Any], str]], ...] = (
    (DynamoGraphDeployment, reported_state),
    (DynamoComponentDeployment, component_state),
    (DynamoGraphDeploymentScalingAdapter, adapter_state),
    (DynamoGraphDeploymentRequest, reported_state),
    (DynamoModel, model_state),
)


class ObjectGauges(Collector):
    """The gauges of cached objects: their number by state, and the state of graphs and models."""

    def __init__(
        self, cache: Listing, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._cache = cache
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Compute all gauges from the cache."""
        text = "Objects by kind, namespace and state."
        labels: tuple[str, ...] = ("resource_type", "namespace", "status")
        yield _gauge("resources_total", text, labels, self._states())
        yield from self._graphs(list(self._cache.list(DynamoGraphDeployment)))
        text = "Paused objects, which the operator does not reconcile."
        yield _gauge("paused_objects", text, ("resource_type", "namespace"), self._paused())
        text = "Endpoints of the model: `ready`, `failing`, `covered` by others, or `waiting`."
        labels = ("namespace", "model", "state")
        yield _gauge("model_endpoints", text, labels, self._endpoints())

    def _states(self) -> _Samples:
        for type_, state in _STATES:
            yield from Counts(
                (type_.KIND.name, resource.metadata.namespace, state(resource))
                for resource in self._cache.list(type_)
            ).items()

    def _graphs(self, graphs: list[DynamoGraphDeployment]) -> Iterator[Metric]:
        """Readiness, its duration, GPUs and replicas of graphs."""
        yield _gauge("graph_ready", "1 while the graph is ready, else 0.", _GRAPH, _ready(graphs))
        text = "Time since the graph became ready or not ready; absent for suspended graphs."
        seconds = _seconds(graphs, self._now())
        yield _gauge("graph_state_seconds", text, (*_GRAPH, "ready"), seconds)
        yield _gauge("graph_gpus_desired", "GPUs that the graph requests.", _GRAPH, _gpus(graphs))
        text = "Desired replicas of the service."
        yield _gauge("graph_replicas_desired", text, _SERVICE, _desired(graphs))
        text = "Ready replicas of the service."
        yield _gauge("graph_replicas_ready", text, _SERVICE, _serving(graphs))

    def _paused(self) -> _Samples:
        for type_, _ in _STATES:
            yield from Counts(
                (type_.KIND.name, resource.metadata.namespace)
                for resource in self._cache.list(type_)
                if is_paused(resource)
            ).items()

    def _endpoints(self) -> _Samples:
        for model in self._cache.list(DynamoModel):
            counts = Counts(map(_endpoint_state, model.status.endpoints))
            for state in _ENDPOINT_STATES:
                yield (*model.key, state), counts[state]


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: _Samples) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=labels)
    for label_values, value in samples:
        gauge.add_metric(label_values, value)
    return gauge


def _ready(graphs: list[DynamoGraphDeployment]) -> _Samples:
    for graph in graphs:
        yield graph.key, float(_is_true(graph.status.conditions, "Ready"))


def _seconds(graphs: list[DynamoGraphDeployment], now: datetime) -> _Samples:
    for graph in graphs:
        ready = condition(graph.status.conditions, "Ready")
        if ready is None or ready.reason == GraphReason.SUSPENDED:
            continue  # suspended on purpose, so no alert may fire
        passed = seconds_between(ready.last_transition_time, now)
        if passed is not None:
            yield (*graph.key, ready.status.lower()), max(0.0, passed)


def _gpus(graphs: list[DynamoGraphDeployment]) -> _Samples:
    for graph in graphs:
        if graph.status.gpus is not None:
            yield graph.key, graph.status.gpus


def _desired(graphs: list[DynamoGraphDeployment]) -> _Samples:
    for graph in graphs:
        for key, service in graph.spec.services.items():
            yield (*graph.key, key), service.desired_replicas


def _serving(graphs: list[DynamoGraphDeployment]) -> _Samples:
    for graph in graphs:
        for key, status in graph.status.services.items():
            ready, available = status.ready_replicas, status.available_replicas
            counted = available if ready is None else ready
            if counted is not None:
                yield (*graph.key, key), counted


def _endpoint_state(endpoint: EndpointInfo) -> str:
    if endpoint.ready:
        return "ready"
    if endpoint.fallback_covered:
        return "covered"
    return "failing" if endpoint.failures else "waiting"


class CallMetrics:
    """Counts calls to workers, in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            f"{_PREFIX}_adapter_calls",
            "Calls to workers by verb (`load`, `unload`, `list`) and result (`done`, `unable`, `failed`).",
            ("verb", "result"),
            registry=registry,
        )
        self._seconds = Histogram(
            f"{_PREFIX}_adapter_call_seconds",
            "Duration of calls to workers.",
            ("verb",),
            buckets=_CALL_BUCKETS,
            registry=registry,
        )

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
        counter = Counter(
            "dynamo_operator_rollouts",
            "Managed rollouts of workers: `started`, then `completed` or `superseded` by another "
            "change. `deadline_exceeded` ends none.",
            ("result",),
            registry=registry,
        )
        # All series exist from the start: Prometheus sees no increase from an absent series to 1.
        self._counts = {result: counter.labels(result.value) for result in RolloutResult}

    def written(self, before: DynamoGraphDeployment, after: DynamoGraphDeployment) -> None:
        """Count what is new in the status of `after`, which was just written onto `before`."""
        for result in rollout_results(before, after):
            self._counts[result].inc()


class WebhookMetrics:
    """Reviews by kind, operation and outcome, in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("resource_type", "operation")
        self._seconds = Histogram(
            "dynamo_operator_webhook_duration_seconds",
            "Duration of admission reviews.",
            labels,
            buckets=_REVIEW_BUCKETS,
            registry=registry,
        )
        self._requests = Counter(
            "dynamo_operator_webhook_requests_total",
            "Completed admission reviews; result is allowed or denied.",
            (*labels, "result"),
            registry=registry,
        )
        self._denials = Counter(
            "dynamo_operator_webhook_denials_total",
            "Refused objects, by the reason of the first problem.",
            (*labels, "reason"),
            registry=registry,
        )

    def reviewed(self, kind: str, operation: str, *, reason: str, seconds: float) -> None:
        """Count one review; `reason` "" means: allowed."""
        # Any client that reaches the port may send any word; it must not become a label value.
        label = operation if operation in _OPERATIONS else "other"
        self._seconds.labels(kind, label).observe(seconds)
        self._requests.labels(kind, label, "denied" if reason else "allowed").inc()
        if reason:
            self._denials.labels(kind, label, reason).inc()


def register(registry: CollectorRegistry, cache: Listing) -> None:
    """Register the metrics of objects and of the process."""
    registry.register(ObjectGauges(cache))
    Info("dynamo_operator_build", "The running version.", registry=registry).info(
        {"version": version()}
    )
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)


def register_scope(
    registry: CollectorRegistry, excluded: Callable[[], int], has_rival: Callable[[], bool]
) -> None:
    """Register the gauges of excluded namespaces, 0 in a restricted operator, and of another installation."""
    Gauge(
        "dynamo_operator_excluded_namespaces",
        "Namespaces claimed by restricted operators, in which this one does nothing.",
        registry=registry,
    ).set_function(excluded)
    Gauge(
        "dynamo_operator_other_installation_leads",
        "1 while another installation holds the leader Lease, so that this one never acts.",
        registry=registry,
    ).set_function(has_rival)
