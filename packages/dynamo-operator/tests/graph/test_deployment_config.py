"""Sizes in `DYN_DEPLOYMENT_CONFIG` count in all places alike, and in none on Grove."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.graph.render import component_object, graph_objects
from dynamo_operator.graph.service import (
    ServiceObserved,
    base_replicas,
    effective_replicas,
    graph_scale,
    sized,
)
from dynamo_operator.graph.status import graph_status
from dynamo_operator.names import COMPONENT, GROVE, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Condition, Object
from specs import a_graph, a_service

SETTINGS = RenderSettings(disruption_budget_max_unavailable="1")


def configured(provider: str = COMPONENT, **service: Any) -> DynamoGraphDeployment:
    """A graph on which the variable gives service W four workers with two GPUs each."""
    arguments = {"workers": 4, "Resources": {"GPU": "2", "cpu": 1, "custom": {"x/y": "1"}}}
    value = json.dumps({"W": {"ServiceArgs": arguments}})
    envs = [{"name": "DYN_DEPLOYMENT_CONFIG", "value": value}]
    return on_provider(a_graph({"W": a_service(**service)}, envs=envs), provider)


def gpus(graph: DynamoGraphDeployment) -> int:
    """What the status says of GPUs."""
    found = graph_status(sized(graph), {}, (), now=datetime(2026, 1, 1, tzinfo=UTC))
    return found.status.gpus or 0


def suspended(graph: DynamoGraphDeployment) -> DynamoGraphDeployment:
    """The graph after it was suspended and has come back."""
    status = DynamoGraphDeploymentStatus(conditions=(Condition("Suspended", "False"),))
    return msgspec.structs.replace(graph, status=status)


def kinds(graph: DynamoGraphDeployment) -> dict[str, Object]:
    """What is rendered of the graph, by kind."""
    return {each["kind"]: each for each in graph_objects(graph, Facts(), SETTINGS)}


def test_without_grove_all_go_by_it() -> None:
    graph = configured()
    rendered = kinds(graph)
    component = rendered["DynamoComponentDeployment"]["spec"]
    assert 4 == component["replicas"]
    assert {"limits", "requests"} == set(component["resources"])
    assert {"gpu": "2", "custom": {"x/y": "1"}} == component["resources"]["limits"]
    assert "PodDisruptionBudget" in rendered
    assert 8 == gpus(graph)
    assert {"W": 4} == effective_replicas(suspended(graph), {}, ())
    assert 1 == graph_scale(graph, {"W": ServiceObserved(replicas=4)})[0]


def test_on_grove_nobody_does() -> None:
    graph = configured(GROVE)
    [clique] = kinds(graph)["PodCliqueSet"]["spec"]["template"]["cliques"]
    assert 1 == clique["spec"]["replicas"]
    assert "nvidia.com/gpu" not in str(clique["spec"]["podSpec"]["containers"])
    assert 0 == gpus(graph)
    assert {"W": 1} == effective_replicas(suspended(graph), {}, ())
    assert 1 == graph_scale(graph, {"W": ServiceObserved(replicas=1)})[0]


@pytest.mark.parametrize("provider", [COMPONENT, GROVE])
def test_the_services_own_number_wins(provider: str) -> None:
    assert 2 == base_replicas(configured(provider, replicas=2), "W")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"W": []}', '{"W": {"ServiceArgs": 1}}'])
def test_without_anything_that_can_be_read_there_is_one(text: str) -> None:
    envs = [{"name": "DYN_DEPLOYMENT_CONFIG", "value": text}]
    assert 1 == base_replicas(a_graph({"W": a_service()}, envs=envs), "W")


def test_its_resources_are_laid_over_the_services_own() -> None:
    own = {"limits": {"gpu": "8", "memory": "9Gi", "gpuType": "a/b"}, "claims": [{"name": "c"}]}
    component = component_object(configured(resources=own), "W", SETTINGS)
    requests = {"gpu": "2", "custom": {"x/y": "1"}}
    limits = {"memory": "9Gi", "gpuType": "a/b", **requests}
    assert {**own, "limits": limits, "requests": requests} == component["spec"]["resources"]
