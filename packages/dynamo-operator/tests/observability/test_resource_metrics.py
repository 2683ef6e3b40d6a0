"""The gauge of objects by state is what the cache holds now."""

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from dynamo_operator import version
from dynamo_operator.component.api import DynamoComponentDeployment, DynamoComponentDeploymentStatus
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.observability import component_state, register, reported_state
from kube_runtime.types.meta import Condition, Metadata, R, Resource


class Objects:
    """A cache of some objects."""

    def __init__(self) -> None:
        self.held: list[Resource] = []

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:  # noqa: ARG002  the cache's
        return (each for each in self.held if isinstance(each, type_))


def a_graph(name: str, state: str | None, namespace: str = "team") -> DynamoGraphDeployment:
    return DynamoGraphDeployment(
        metadata=Metadata(name=name, namespace=namespace),
        status=DynamoGraphDeploymentStatus(state=state),
    )


def a_component(*conditions: Condition) -> DynamoComponentDeployment:
    return DynamoComponentDeployment(
        metadata=Metadata(name="c", namespace="team"),
        status=DynamoComponentDeploymentStatus(conditions=conditions),
    )


def count(registry: CollectorRegistry, kind: str, status: str, namespace: str = "team") -> float:
    labels = {"resource_type": kind, "namespace": namespace, "status": status}
    return registry.get_sample_value("dynamo_operator_resources_total", labels) or 0


def test_objects_are_counted_by_kind_namespace_and_state() -> None:
    registry, cache = CollectorRegistry(), Objects()
    register(registry, cache)
    cache.held = [
        a_graph("a", "pending"),
        a_graph("b", "pending"),
        a_graph("c", "pending", namespace="other"),
        a_component(),
    ]
    assert 2 == count(registry, "DynamoGraphDeployment", "pending")
    assert 1 == count(registry, "DynamoGraphDeployment", "pending", "other")
    assert 1 == count(registry, "DynamoComponentDeployment", "not_ready")


def test_what_is_gone_is_not_counted() -> None:
    registry, cache = CollectorRegistry(), Objects()
    register(registry, cache)
    cache.held = [a_graph("a", "pending")]
    assert 1 == count(registry, "DynamoGraphDeployment", "pending")
    cache.held = [a_graph("a", "successful")]
    assert 0 == count(registry, "DynamoGraphDeployment", "pending")
    assert 1 == count(registry, "DynamoGraphDeployment", "successful")


@pytest.mark.parametrize(
    ("state", "expected"), [("failed", "failed"), ("", "unknown"), (None, "unknown")]
)
def test_a_graph_without_a_state_is_unknown(state: str | None, expected: str) -> None:
    assert expected == reported_state(a_graph("a", state))


@pytest.mark.parametrize(
    ("status", "expected"), [("True", "ready"), ("False", "not_ready"), ("Unknown", "not_ready")]
)
def test_a_component_is_ready_while_it_is_available(status: str, expected: str) -> None:
    assert expected == component_state(a_component(Condition("Available", status)))


def test_the_version_and_the_process_are_there() -> None:
    registry = CollectorRegistry()
    register(registry, Objects())
    assert 1 == registry.get_sample_value("dynamo_operator_build_info", {"version": version()})
    assert (registry.get_sample_value("process_resident_memory_bytes") or 0) > 0
