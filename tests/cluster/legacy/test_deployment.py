"""DynamoDeployments on the real control plane: edits, failures, and requests that are not theirs."""

import pytest

from cluster.legacy.deployments import (
    COMPONENT,
    CONFIG,
    DEPLOYMENT,
    GRAPH,
    REQUEST,
    SERVICES,
    condition_of,
    disagg,
    is_successful,
    with_graph,
    with_image,
)
from cluster.world import World
from kube_runtime.types.kinds import Deployment

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

NAMES = tuple(f"disagg-{each.lower()}" for each in SERVICES)


def test_an_edit_reaches_the_pods_and_a_service_that_left_is_removed(world: World) -> None:
    with_graph(world)
    with_image(world)
    world.create(DEPLOYMENT, disagg())
    world.eventually(DEPLOYMENT, "disagg", is_successful)
    services = {"VllmWorker": {"replicas": 2}, "Processor": {"labels": {"team": "a"}}, "Typo": {}}
    world.patch(DEPLOYMENT, "disagg", {"spec": {"services": services}})
    edited = world.eventually(
        DEPLOYMENT, "disagg", lambda it: is_successful(it) and bool(condition_of(it, "ConfigurationWarning"))
    )
    assert condition_of(edited, "ConfigurationWarning") == (
        *("True", "unknown_services", "spec.services.Typo: not found in the graph; ignored"),
    )
    worker = world.eventually(Deployment.KIND, "disagg-vllmworker", lambda it: it["spec"]["replicas"] == 2)
    world.eventually(
        Deployment.KIND, "disagg-processor", lambda it: it["metadata"]["labels"].get("team") == "a"
    )
    without_router = GRAPH.partition("- name: Router")[0].replace(", {service: Router}", "")
    name = "frontend--jh2o6dqzpsgfued4"
    world.patch(CONFIG, name, {"data": {"bento.yaml": without_router}})
    world.gone(COMPONENT, "disagg-router")
    world.gone(Deployment.KIND, "disagg-router")
    kept = world.read(Deployment.KIND, "disagg-vllmworker")
    assert kept["metadata"]["uid"] == worker["metadata"]["uid"]


NO_REGISTRY = "DynamoNimRequest frontend--jh2o6dqzpsgfued4: spec: no registry: set DOCKER_REGISTRY_SERVER"


def test_without_a_graph_it_says_where_it_has_looked(world: World) -> None:
    world.create(DEPLOYMENT, disagg())
    found = world.eventually(DEPLOYMENT, "disagg", lambda it: it.get("status", {}).get("state") == "failed")
    status, reason, text = condition_of(found, "Ready")
    assert (status, reason) == ("False", "failed_to_get_the_DynamoNIMConfig")
    assert text.startswith("ConfigMap frontend--jh2o6dqzpsgfued4 with the label")
    assert NO_REGISTRY in text
    with_graph(world, GRAPH.replace("service: PrefillWorker", "service: Missing"))
    failed = world.eventually(DEPLOYMENT, "disagg", lambda it: "generate" in condition_of(it, "Ready")[1])
    assert condition_of(failed, "Ready") == (
        "False",
        "failed_to_generate_the_DynamoNimDeployments",
        "dependency Missing not found (service VllmWorker names it)",
    )


def test_an_image_and_services_are_enough(world: World) -> None:
    with_image(world)
    made = disagg()
    made["metadata"]["annotations"] = {"nvidia.com/dynamo-tag": "graphs.agg:Frontend"}
    made["spec"]["services"] = {"Frontend": {"replicas": 1}, "Worker": {"replicas": 0}}
    world.create(DEPLOYMENT, made)
    world.eventually(DEPLOYMENT, "disagg", is_successful)
    found = world.read(Deployment.KIND, "disagg-frontend")
    [container] = found["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["cd src && uv run dynamo serve --service-name Frontend graphs.agg:Frontend"]


def test_a_request_of_a_user_stays_the_users(world: World) -> None:
    name = "frontend--jh2o6dqzpsgfued4"
    spec = {"bentoTag": "frontend:jh2o6dqzpsgfued4", "downloadUrl": "https://example.com/a.tar"}
    world.create(REQUEST, {"metadata": {"name": name}, "spec": spec})
    with_graph(world)
    world.create(DEPLOYMENT, disagg())
    world.eventually(COMPONENT, NAMES[0], lambda it: bool(condition_of(it, "Available")))
    found = world.read(REQUEST, name)
    assert found["spec"] == spec
    assert "ownerReferences" not in found["metadata"]


def test_a_request_over_the_size_limit_says_so(world: World) -> None:
    spec = {"bentoTag": "frontend:1", "buildArgs": [f"A={'x' * 300_000}"]}
    world.create(REQUEST, {"metadata": {"name": "frontend--1"}, "spec": spec})
    found = world.eventually(REQUEST, "frontend--1", lambda it: bool(condition_of(it, "DynamoNimAvailable")))
    assert condition_of(found, "DynamoNimAvailable")[0] == "False"
    assert "bytes" in condition_of(found, "DynamoNimAvailable")[2]
