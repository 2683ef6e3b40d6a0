"""Models are counted by state, their endpoints too, and each call to a worker."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from dynamo_operator.models.api import DynamoModel, DynamoModelStatus, EndpointInfo
from dynamo_operator.models.plan import Call, Ending, LoraVerb, Reply
from dynamo_operator.observability import CallMetrics, register
from kube_runtime.types.meta import Condition, Metadata, R


class Objects:
    """A cache with one model."""

    def __init__(self, model: DynamoModel) -> None:
        self.model = model

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:  # noqa: ARG002  the cache's
        """The model, if that is asked for."""
        return iter([self.model] if isinstance(self.model, type_) else [])


def test_the_endpoints_of_a_model_are_counted_by_state() -> None:
    ends = (
        EndpointInfo(address="a", ready=True),
        EndpointInfo(address="b", ready=False, failures=2),
        EndpointInfo(address="c", ready=False, failures=2, fallback_covered=True),
        EndpointInfo(address="d", ready=False),
    )
    status = DynamoModelStatus(endpoints=ends, conditions=(Condition("EndpointsReady", "False"),))
    model = DynamoModel(metadata=Metadata(name="m", namespace="n"), status=status)
    registry = CollectorRegistry()
    register(registry, Objects(model))
    for state in ("ready", "failing", "covered", "waiting"):
        labels = {"namespace": "n", "model": "m", "state": state}
        assert 1 == registry.get_sample_value("dynamo_operator_model_endpoints", labels)
    labels = {"resource_type": "DynamoModel", "namespace": "n", "status": "not_ready"}
    assert 1 == registry.get_sample_value("dynamo_operator_resources_total", labels)


def test_a_call_is_counted_with_its_result_and_its_time() -> None:
    registry = CollectorRegistry()
    metrics = CallMetrics(registry)
    metrics.called(Call(LoraVerb.LOAD, "a", "s3://a"), Reply(Ending.FAILED), 3.0)
    labels = {"verb": "load", "result": "failed"}
    assert 1 == registry.get_sample_value("dynamo_operator_adapter_calls_total", labels)
    sum_ = registry.get_sample_value("dynamo_operator_adapter_call_seconds_sum", {"verb": "load"})
    assert 3.0 == sum_
