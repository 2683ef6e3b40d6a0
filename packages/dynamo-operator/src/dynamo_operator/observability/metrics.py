"""What the product counts: how many objects there are, by state.

Read from the cache at each scrape, so that nothing can be left over: a gauge that is set when
something happens keeps counting objects that are gone.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import Gauge, GCCollector, Info, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.product import version
from dynamo_operator.observability.graphs import Graphs
from dynamo_operator.observability.listing import Listing
from dynamo_operator.observability.models import Models, model_state
from kube_runtime.types.meta import Resource, condition

_UNKNOWN = "unknown"


def graph_state(graph: DynamoGraphDeployment) -> str:
    """The state as in the status; `unknown` before there is one."""
    return graph.status.state or _UNKNOWN


def component_state(component: DynamoComponentDeployment) -> str:
    """`ready` while the component is available, else `not_ready`."""
    available = condition(component.status.conditions, "Available")
    return "ready" if available and available.status == "True" else "not_ready"


def adapter_state(adapter: DynamoGraphDeploymentScalingAdapter) -> str:
    """`ready` while there is something to scale, else `not_ready`."""
    return "ready" if adapter.status.selector and adapter.status.replicas else "not_ready"


def request_state(request: DynamoGraphDeploymentRequest) -> str:
    """The state as in the status; `unknown` before there is one."""
    return request.status.state or _UNKNOWN


_STATES: tuple[tuple[type[Resource], Callable[[Any], str]], ...] = (
    (DynamoGraphDeployment, graph_state),
    (DynamoComponentDeployment, component_state),
    (DynamoGraphDeploymentScalingAdapter, adapter_state),
    (DynamoGraphDeploymentRequest, request_state),
    (DynamoModel, model_state),
)


class Resources(Collector):
    """The gauge `dynamo_operator_resources_total`."""

    def __init__(self, cache: Listing) -> None:
        self._cache = cache

    def collect(self) -> Iterator[Metric]:
        """The number of objects of each kind, namespace and state, now."""
        gauge = GaugeMetricFamily(
            "dynamo_operator_resources_total",
            "Objects by kind, namespace and state.",
            labels=("resource_type", "namespace", "status"),
        )
        for type_, state in _STATES:
            counts = Counter(
                (type_.KIND.name, each.metadata.namespace, state(each))
                for each in self._cache.list(type_)
            )
            for labels, count in counts.items():
                gauge.add_metric(labels, count)
        yield gauge


def register(registry: CollectorRegistry, cache: Listing) -> None:
    """Adds to the registry what is counted of the product and of the process."""
    registry.register(Resources(cache))
    registry.register(Graphs(cache))
    registry.register(Models(cache))
    Info("dynamo_operator_build", "The running version.", registry=registry).info(
        {"version": version()}
    )
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)


def register_scope(
    registry: CollectorRegistry, excluded: Callable[[], int], has_rival: Callable[[], bool]
) -> None:
    """Adds the gauges of excluded namespaces, 0 in a restricted operator, and of another installation."""
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
