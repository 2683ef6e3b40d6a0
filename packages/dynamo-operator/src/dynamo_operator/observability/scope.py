"""What this operator leaves to other installations: namespaces, or everything."""

from collections.abc import Callable

from prometheus_client import Gauge
from prometheus_client.registry import CollectorRegistry


def register(
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
