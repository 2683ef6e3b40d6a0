"""Who decides how many replicas a service has."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.api import ComponentSpec, ScalingAdapterSwitch
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
from dynamo_operator.graph.service import ServiceObserved, effective_replicas, graph_scale
from kube_runtime.types.meta import Condition, Metadata

SWITCH = ScalingAdapterSwitch(enabled=True)
SERVICES = {
    "Frontend": ComponentSpec(component_type="frontend", replicas=2),
    "prefill": ComponentSpec(component_type="worker", sub_component_type="prefill", replicas=3),
    "decode": ComponentSpec(component_type="decode"),
    "scaled": ComponentSpec(component_type="worker", replicas=1, scaling_adapter=SWITCH),
    "off": ComponentSpec(component_type="worker", replicas=0),
}


def a_graph(factor: int | None = None) -> DynamoGraphDeployment:
    spec = DynamoGraphDeploymentSpec(services=SERVICES, replicas=factor)
    return DynamoGraphDeployment(Metadata("g"), spec=spec)


def test_by_default_the_spec_decides() -> None:
    wanted = {"Frontend": 2, "prefill": 3, "decode": None, "scaled": 1, "off": 0}
    assert wanted == effective_replicas(a_graph(), {}, ())
    assert wanted | {"decode": 1} == effective_replicas(a_graph(1), {}, ())


def test_a_service_that_had_to_go_to_zero_comes_back_although_nobody_says_a_number() -> None:
    resumed = DynamoGraphDeploymentStatus(conditions=(Condition("Suspended", "Unknown"),))
    graph = msgspec.structs.replace(a_graph(), status=resumed)
    assert 1 == effective_replicas(graph, {}, ())["decode"]
    assert 0 == effective_replicas(a_graph(0), {}, ())["decode"]
    assert 1 == effective_replicas(a_graph(1), {}, ())["decode"]


def test_the_number_of_the_deployment_config_counts_as_the_users() -> None:
    config = json.dumps({"w": {"ServiceArgs": {"workers": 3}}})
    services = {"w": ComponentSpec(component_type="worker")}
    envs = ({"name": "DYN_DEPLOYMENT_CONFIG", "value": config},)
    spec = DynamoGraphDeploymentSpec(services=services, envs=envs, replicas=2)
    graph = DynamoGraphDeployment(Metadata("g"), spec=spec)
    assert {"w": 6} == effective_replicas(graph, {}, ())
    assert 2 == graph_scale(graph, {"w": ServiceObserved(replicas=6)})[0]


def test_the_factor_multiplies_workers_without_an_adapter() -> None:
    wanted = {"Frontend": 2, "prefill": 6, "decode": 2, "scaled": 1, "off": 0}
    assert wanted == effective_replicas(a_graph(2), {}, ())


def test_a_factor_of_zero_leaves_the_frontend() -> None:
    wanted = {"Frontend": 2, "prefill": 0, "decode": 0, "scaled": 7, "off": 0}
    assert wanted == effective_replicas(a_graph(0), {"scaled": 7}, ())


def test_an_adapter_wins_over_the_spec_and_a_suspended_graph_over_both() -> None:
    assert 7 == effective_replicas(a_graph(3), {"scaled": 7}, ())["scaled"]
    assert 0 == effective_replicas(a_graph(3), {"scaled": 7}, ("scaled",))["scaled"]


def test_the_scale_is_the_factor_that_all_services_have_reached() -> None:
    observed = {"prefill": ServiceObserved(replicas=6), "decode": ServiceObserved(replicas=1)}
    assert 1 == graph_scale(a_graph(2), observed)[0]
    observed["decode"] = ServiceObserved(replicas=2)
    assert 2 == graph_scale(a_graph(2), observed)[0]


def test_the_services_under_the_factor_are_named_with_the_most_replicas_they_may_have() -> None:
    observed = {"prefill": ServiceObserved(replicas=9)}
    assert {"decode": 2, "off": 0, "prefill": 9} == graph_scale(a_graph(2), observed)[1]


def test_a_graph_without_such_services_has_the_scale_that_it_asks_for() -> None:
    spec = DynamoGraphDeploymentSpec(services={"Frontend": SERVICES["Frontend"]}, replicas=3)
    assert (3, {}) == graph_scale(DynamoGraphDeployment(Metadata("g"), spec=spec), {})


@given(st.integers(0, 50))
def test_once_everything_runs_the_scale_is_the_factor(factor: int) -> None:
    graph = a_graph(factor)
    wanted = effective_replicas(graph, {}, ())
    observed = {key: ServiceObserved(replicas=number or 0) for key, number in wanted.items()}
    observed["decode"] = ServiceObserved(replicas=factor)
    assert factor == graph_scale(graph, observed)[0]
