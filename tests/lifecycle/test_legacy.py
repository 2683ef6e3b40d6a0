"""The whole operator with the kinds of the older generation: it acts once, and then it is quiet."""

import asyncio

import pytest

from cluster.graph.graphs import graph, service, worker
from cluster.legacy.deployments import (
    COMPONENT,
    CONFIG,
    DEPLOYMENT,
    NIM,
    REQUEST,
    condition_of,
    disagg,
    graph_config,
    image,
)
from dynamo_legacy.build.job import FETCHER, FORCE, IS_BUILDER
from dynamo_legacy.names import SharedSecret
from kube_runtime.types.kinds import Deployment, Job, Pod, Service
from lifecycle.running import GRAPH, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock

NAMES = [f"disagg-{entry}" for entry in ("frontend", "prefillworker", "processor", "router", "vllmworker")]


async def a_deployment(operator: Running) -> None:
    """Have a user create a deployment with its graph and image, and all of it run."""
    operator.create(CONFIG, graph_config())
    operator.create(NIM, image())
    operator.create(DEPLOYMENT, disagg())
    await asyncio.sleep(REST_SECONDS)
    await operator.deployments_run()


@on_simulated_clock
async def test_a_deployment_becomes_ready_and_costs_nothing_then() -> None:
    async with running(legacy_kinds=True) as operator:
        await a_deployment(operator)
        assert operator.names(COMPONENT) == NAMES
        assert operator.names(Deployment.KIND) == operator.names(Service.KIND) == NAMES
        assert operator.read(DEPLOYMENT, "disagg")["status"]["state"] == "successful"
        before = operator.writes()
        await asyncio.sleep(10 * REST_SECONDS)
        assert operator.writes() == before


@on_simulated_clock
async def test_five_services_cost_about_as_many_writes_as_in_a_graph() -> None:
    async with running(legacy_kinds=True) as operator:
        await a_deployment(operator)
        ours = len(operator.writes())
    async with running() as operator:
        workers = {f"Worker{number}": worker("decode") for number in range(4)}
        operator.create(GRAPH, graph("chat", Frontend=service("frontend"), **workers))
        await asyncio.sleep(REST_SECONDS)
        await operator.deployments_run()
        assert ours <= 1.2 * len(operator.writes()), operator.writes()


@on_simulated_clock
async def test_an_edit_of_one_service_writes_that_service_only() -> None:
    async with running(legacy_kinds=True) as operator:
        await a_deployment(operator)
        patch = {"spec": {"services": {"Processor": {"replicas": 2}}}}
        _, _, written = await operator.after((DEPLOYMENT, "disagg", patch, ""))
        others = [name for name in NAMES if name != "disagg-processor"]
        assert written
        assert not [entry for entry in written if entry.endswith(tuple(others))]
        assert operator.read(Deployment.KIND, "disagg-processor")["spec"]["replicas"] == 2


@on_simulated_clock
async def test_two_deployments_of_a_tag_own_its_build_together() -> None:
    async with running(legacy_kinds=True) as operator:
        operator.create(CONFIG, graph_config())
        for name in ("one", "two"):
            operator.create(DEPLOYMENT, disagg(name))
        await asyncio.sleep(REST_SECONDS)
        owners = operator.read(REQUEST, "frontend--jh2o6dqzpsgfued4")["metadata"]["ownerReferences"]
        assert {owner["name"] for owner in owners} == {"one", "two"}
        operator.change(DEPLOYMENT, "one", {"spec": {"dynamoNim": "frontend:v2"}})
        await asyncio.sleep(REST_SECONDS)
        assert operator.names(REQUEST) == ["frontend--jh2o6dqzpsgfued4", "frontend--v2"]
        owners = operator.read(REQUEST, "frontend--jh2o6dqzpsgfued4")["metadata"]["ownerReferences"]
        assert {entry["name"] for entry in owners} == {"two"}
        operator.create(DEPLOYMENT, disagg("three", "Frontend:jh2o6dqzpsgfued4"))
        await asyncio.sleep(REST_SECONDS)
        text = condition_of(operator.read(DEPLOYMENT, "three"), "Ready")[2]
        assert 'builds "frontend:jh2o6dqzpsgfued4" of DynamoDeployment two' in text
        before = operator.writes()
        await asyncio.sleep(REST_SECONDS)
        assert operator.writes() == before
        operator.change(DEPLOYMENT, "two", {"spec": {"dynamoNim": "frontend:v2"}})
        await asyncio.sleep(REST_SECONDS)
        tag = operator.read(REQUEST, "frontend--jh2o6dqzpsgfued4")["spec"]["bentoTag"]
        assert tag == "Frontend:jh2o6dqzpsgfued4"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("YATAI_ENDPOINT", "YATAI_API_TOKEN", "INTERNAL_IMAGES_BENTO_DOWNLOADER", "BUILDKIT_URL"):
        monkeypatch.setenv(name, "https://set.example")


async def a_build(operator: Running) -> str:
    """Have an operator build an image; the name of the Job."""
    metadata = {"name": "a", "annotations": {FORCE: "true"}}
    operator.create(REQUEST, {"metadata": metadata, "spec": {"bentoTag": "a:1", "image": "r.example/a"}})
    await asyncio.sleep(REST_SECONDS)
    (job,) = operator.names(Job.KIND)
    return job


@pytest.mark.usefixtures("builds")
@on_simulated_clock
async def test_a_pod_that_only_names_the_build_as_its_owner_decides_no_configuration() -> None:
    async with running(legacy_kinds=True) as operator:
        name = await a_build(operator)
        job = operator.read(Job.KIND, name)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
        spec = job["spec"]["template"]["spec"]
        for text, runs in (("forged", {**spec, "volumes": []}), ("ours", spec)):
            assert operator.names(CONFIG) == []
            owners = [{**owner, "uid": job["metadata"]["uid"]}]
            metadata = {"name": text, "labels": {IS_BUILDER: "true"}, "ownerReferences": owners}
            ended = {"name": FETCHER, "state": {"terminated": {"exitCode": 0, "message": text}}}
            operator.create(
                Pod.KIND, {"metadata": metadata, "spec": runs, "status": {"initContainerStatuses": [ended]}}
            )
            await asyncio.sleep(REST_SECONDS)
        assert operator.read(CONFIG, "a")["data"] == {"bento.yaml": "ours"}


@pytest.mark.usefixtures("builds")
@on_simulated_clock
async def test_the_token_of_the_store_is_gone_after_a_build_that_failed() -> None:
    async with running(legacy_kinds=True) as operator:
        job = await a_build(operator)
        assert operator.names(SharedSecret.KIND) == ["yatai-api-token"]
        failed = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
        operator.change(Job.KIND, job, failed, "status")
        await asyncio.sleep(REST_SECONDS)
        assert condition_of(operator.read(REQUEST, "a"), "ImageBuilding")[1] == "BuildFailed"
        assert operator.names(SharedSecret.KIND) == []
