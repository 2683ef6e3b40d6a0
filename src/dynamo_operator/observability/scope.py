"""How many namespaces a cluster-wide operator leaves to others."""

from collections.abc import Callable

from prometheus_client import Gauge
from prometheus_client.registry import CollectorRegistry


def register(registry: CollectorRegistry, excluded: Callable[[], int]) -> None:
    """Adds the gauge of excluded namespaces; 0 in a restricted operator."""
    Gauge(
        "dynamo_operator_excluded_namespaces",
        "Namespaces that a restricted operator has marked as its own; nothing is done in them.",
        registry=registry,
    ).set_function(excluded)
