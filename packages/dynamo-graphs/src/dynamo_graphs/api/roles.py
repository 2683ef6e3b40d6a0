"""Properties of a graph's services: whether one is a worker, and whether autoscalers may scale it."""

from dynamo_graphs.api.component import ComponentSpec

WORKER_TYPES = frozenset(("worker", "prefill", "decode"))
"""The values of `componentType` that load a model."""


def is_worker(service: ComponentSpec) -> bool:
    """Whether the service loads a model."""
    return service.component_type in WORKER_TYPES


def has_adapter(service: ComponentSpec) -> bool:
    """Whether a scaling adapter owns the service's replicas."""
    return service.scaling_adapter is not None and service.scaling_adapter.enabled


def is_under_factor(service: ComponentSpec) -> bool:
    """Whether the graph's `spec.replicas` multiplies the service's own."""
    return is_worker(service) and not has_adapter(service)
