"""What the product counts of each graph: is it ready, how much of it, how many GPUs, for how long.

As with all counts of objects, they are read from the cache at each scrape. The label values are names of
graphs and services, of which there are as many as users write; pods and messages are never labels.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.pause import is_paused
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.status.reasons import GraphReason
from dynamo_operator.observability.listing import Listing
from kube_runtime.types.meta import Resource, condition

_PREFIX = "dynamo_operator"
_GRAPH = ("namespace", "graph")
_SERVICE = (*_GRAPH, "service")
_PAUSABLE: tuple[type[Resource], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentRequest,
    DynamoModel,
)


def _now() -> datetime:
    return datetime.now(UTC)


class Graphs(Collector):
    """The gauges `dynamo_operator_graph_*` and `dynamo_operator_paused_objects`."""

    def __init__(self, cache: Listing, *, now: Callable[[], datetime] = _now) -> None:
        self._cache = cache
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """What is so at this moment."""
        graphs = list(self._cache.list(DynamoGraphDeployment))
        yield _gauge("graph_ready", "1 while the graph is ready, else 0.", _GRAPH, _ready(graphs))
        yield _gauge(
            "graph_state_seconds",
            "Time since the graph became ready or not ready; absent for suspended graphs.",
            (*_GRAPH, "ready"),
            _seconds(graphs, self._now()),
        )
        yield _gauge("graph_gpus_desired", "GPUs that the graph requests.", _GRAPH, _gpus(graphs))
        yield _gauge(
            "graph_replicas_desired",
            "Desired replicas of the service.",
            _SERVICE,
            _desired(graphs),
        )
        yield _gauge(
            "graph_replicas_ready",
            "Ready replicas of the service.",
            _SERVICE,
            _serving(graphs),
        )
        yield _gauge(
            "paused_objects",
            "Paused objects, which the operator does not reconcile.",
            ("resource_type", "namespace"),
            self._paused(),
        )

    def _paused(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for type_ in _PAUSABLE:
            counts = Counter(
                each.metadata.namespace for each in self._cache.list(type_) if is_paused(each)
            )
            for namespace, count in counts.items():
                yield (type_.KIND.name, namespace), count


def _gauge(
    name: str,
    text: str,
    names: tuple[str, ...],
    values: Iterator[tuple[tuple[str, ...], float]],
) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=names)
    for label_values, value in values:
        gauge.add_metric(label_values, value)
    return gauge


def _ready(graphs: list[DynamoGraphDeployment]) -> Iterator[tuple[tuple[str, ...], float]]:
    for each in graphs:
        ready = condition(each.status.conditions, "Ready")
        yield each.key, float(ready is not None and ready.status == "True")


def _seconds(
    graphs: list[DynamoGraphDeployment], now: datetime
) -> Iterator[tuple[tuple[str, ...], float]]:
    for each in graphs:
        ready = condition(each.status.conditions, "Ready")
        if ready is None or ready.reason == GraphReason.SUSPENDED:
            continue  # no user waits for it, so no alert may fire for it
        if ready.last_transition_time:
            since = datetime.fromisoformat(ready.last_transition_time)
            yield (*each.key, ready.status.lower()), max(0.0, (now - since).total_seconds())


def _gpus(graphs: list[DynamoGraphDeployment]) -> Iterator[tuple[tuple[str, ...], float]]:
    for each in graphs:
        if each.status.gpus is not None:
            yield each.key, each.status.gpus


def _desired(graphs: list[DynamoGraphDeployment]) -> Iterator[tuple[tuple[str, ...], float]]:
    for each in graphs:
        for key, service in each.spec.services.items():
            yield (*each.key, key), 1 if service.replicas is None else service.replicas


def _serving(graphs: list[DynamoGraphDeployment]) -> Iterator[tuple[tuple[str, ...], float]]:
    for each in graphs:
        for key, status in each.status.services.items():
            found = status.ready_replicas
            counted = status.available_replicas if found is None else found
            if counted is not None:
                yield (*each.key, key), counted
