"""Prometheus metrics of the webhooks."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE"})


class WebhookMetrics:
    """Reviews by kind, operation and outcome, in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("resource_type", "operation")
        self._seconds = Histogram(
            "dynamo_operator_webhook_duration_seconds",
            "Duration of admission reviews.",
            labels,
            buckets=_BUCKETS,
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
