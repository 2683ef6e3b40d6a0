"""What is counted of models: their endpoints, and the calls to workers.

Label values are names of models, of which there are as many as users write; pods and messages are never
labels.
"""

from collections.abc import Iterator

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from dynamo_graphs.api.model import DynamoModel, EndpointInfo
from dynamo_graphs.plan.lora_calls import Call, Reply
from dynamo_operator.observability.listing import Listing
from kube_runtime.types.meta import condition

_PREFIX = "dynamo_operator"
_STATES = ("ready", "failing", "covered", "waiting")
_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


def model_state(model: DynamoModel) -> str:
    """`ready` while its endpoints are as they should be, else `not_ready`."""
    found = condition(model.status.conditions, "EndpointsReady")
    return "ready" if found and found.status == "True" else "not_ready"


class Models(Collector):
    """The gauge `dynamo_operator_model_endpoints`."""

    def __init__(self, cache: Listing) -> None:
        self._cache = cache

    def collect(self) -> Iterator[Metric]:
        """The endpoints of each model by state, now."""
        gauge = GaugeMetricFamily(
            f"{_PREFIX}_model_endpoints",
            "Endpoints of the model: `ready`, `failing`, `covered` by others, or `waiting`.",
            labels=("namespace", "model", "state"),
        )
        for model in self._cache.list(DynamoModel):
            counts: dict[str, int] = dict.fromkeys(_STATES, 0)
            for each in model.status.endpoints:
                counts[_state(each)] += 1
            for state, count in counts.items():
                gauge.add_metric((*model.key, state), count)
        yield gauge


def _state(endpoint: EndpointInfo) -> str:
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
            buckets=_BUCKETS,
            registry=registry,
        )

    def called(self, call: Call, reply: Reply, seconds: float) -> None:
        """Count a call that has ended."""
        self._calls.labels(call.verb.value, reply.ending.value).inc()
        self._seconds.labels(call.verb.value).observe(seconds)
