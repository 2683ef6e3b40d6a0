"""The same for DynamoDeployments: what they create, change and remove ends the same whenever it is killed."""

from collections.abc import Callable

import pytest

from cluster.legacy.conftest import legacy_kinds, operated, operator_flags
from cluster.legacy.deployments import (
    COMPONENT,
    CONFIG,
    DEPLOYMENT,
    NIM,
    REQUEST,
    TAG,
    disagg,
    graph_config,
    image,
    is_successful,
)
from cluster.world import World
from dynamo_legacy.names import nim_name
from faults.scenarios import Scenario
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Kind, Object

__all__ = ["legacy_kinds", "operated", "operator_flags"]

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

GRAPH = """
service: graphs.agg:Frontend
entry_service: Frontend
services:
- name: Frontend
- name: Worker
  config: {dynamo: {enabled: true, name: Worker}, autoscaling: {min_replicas: 1, max_replicas: 2}}
"""
WITHOUT_WORKER = "service: graphs.agg:Frontend\nservices: [{name: Frontend}]"
BESIDE = ((NIM, image()), (CONFIG, graph_config(GRAPH)))


@pytest.fixture(scope="module")
def compared() -> tuple[Kind, ...]:
    """What there is of the older generation."""
    return DEPLOYMENT, COMPONENT, REQUEST, NIM


def small() -> Object:
    """A deployment of two services."""
    made = disagg()
    made["spec"]["services"] = {"Frontend": {"replicas": 1}}
    return made


def is_over(world: World) -> bool:
    """Whether the deployment says that its newest spec runs."""
    body = world.get(DEPLOYMENT, "disagg")
    return body is not None and is_successful(body)


def is_gone(world: World) -> bool:
    """Whether nothing is left of the deployment."""
    kinds = (DEPLOYMENT, COMPONENT, Deployment.KIND)
    return not any(world.list(kind) for kind in kinds)


def is_without_worker(world: World) -> bool:
    """Whether the service that left the graph is gone, and the rest runs."""
    return is_over(world) and world.get(COMPONENT, "disagg-worker") is None


def edit(world: World) -> None:
    """Have the user change a service and a variable of all."""
    services = {"Frontend": {"replicas": 2, "labels": {"team": "a"}}}
    spec = {"services": services, "envs": [{"name": "A", "value": "b"}]}
    world.patch(DEPLOYMENT, "disagg", {"spec": spec})


def remove_worker(world: World) -> None:
    """Have the user take a service out of the graph."""
    world.patch(CONFIG, nim_name(TAG), {"data": {"bento.yaml": WITHOUT_WORKER}})


def scenario(
    name: str,
    before: Object | None,
    act: Callable[[World], object],
    end: Callable[[World], bool] = is_over,
) -> Scenario:
    """A scenario of a deployment whose graph and image are there."""
    return Scenario(name, before, act, end, is_over, kind=DEPLOYMENT, beside=BESIDE)


SCENARIOS = (
    scenario("create", None, lambda world: world.create(DEPLOYMENT, small())),
    scenario("edit", small(), edit),
    scenario("take a service out of the graph", small(), remove_worker, is_without_worker),
    scenario("delete", small(), lambda world: world.delete(DEPLOYMENT, "disagg"), is_gone),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_deployment_ends_the_same_whenever_it_is_killed(
    scenario: Scenario, survives: Callable[[Scenario], None]
) -> None:
    survives(scenario)
