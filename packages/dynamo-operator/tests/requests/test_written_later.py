"""A request that was written in v1beta1, whichever version is stored."""

import json
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from dynamo_operator import names
from dynamo_operator.requests.extras import in_v1beta1, last_in_v1beta1
from dynamo_operator.requests.validate import request_update_problems
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Object
from simulated.killing import Killed, Killing
from simulated.requests import LATER, REQUEST, WrittenLater

SETTINGS = RenderSettings(operator_image="o:1", restricted_namespace=REQUEST.namespace)
FOUND: Object = {"gpuSku": "h200_sxm", "vramMb": 143771, "numGpusPerNode": 8, "totalGpus": 8}
FOUND |= {"interconnect": "nvlink", "rdma": False}


def profiler(world: WrittenLater) -> Any:
    """The container of the profiler."""
    job = world.stored(Job.KIND, REQUEST.namespace, names.profiling_job(REQUEST.name))
    return job["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("is_stored_later", [True, False])
async def test_the_name_of_a_model_is_enough(*, is_stored_later: bool) -> None:
    world = WrittenLater({"model": "m"}, SETTINGS, is_stored_later=is_stored_later)
    world.has_gpu_node()
    request = await world.after(3)
    assert "Profiling" == request.status.state, request.status.message
    assert in_v1beta1(request)
    assert FOUND == world.later()["spec"]["hardware"]
    container = profiler(world)
    assert ("o:1", ["python", "-m", "dynamo.profiler"]) == (container["image"], container["command"])
    option, text, *folder = container["args"]
    assert ["--config", "--output-dir", "/data"] == [option, *folder]
    expected = {"model": "m", "backend": "auto", "image": "o:1", "searchStrategy": "rapid", "autoApply": True}
    assert {**expected, "hardware": FOUND} == json.loads(text)


@pytest.mark.parametrize(("given", "image"), [({}, "d:1"), ({"image": "mine:1"}, "mine:1")])
async def test_the_profiler_has_the_default_image_of_the_operator(given: Object, image: str) -> None:
    world = WrittenLater({"model": "m", **given}, replace(SETTINGS, dgdr_default_image="d:1"))
    world.has_gpu_node()
    await world.after(3)
    container = profiler(world)
    assert image == container["image"] == json.loads(container["args"][1])["image"]


def test_the_version_is_that_of_the_last_write_of_the_model() -> None:
    def write(version: str, time: str, *fields: str) -> Object:
        return {"apiVersion": version, "time": time, "fieldsV1": {"f:spec": {name: {} for name in fields}}}

    status = {"apiVersion": LATER, "time": "5", "fieldsV1": {"f:status": {}}}
    old, new = write("nvidia.com/v1alpha1", "1", "f:model"), write(LATER, "2", "f:model")
    assert last_in_v1beta1([new, old, status])
    assert not last_in_v1beta1([{**new, "time": "0"}, old, status, write(LATER, "9", "f:hardware")])
    assert not last_in_v1beta1([status, {}])


LIST_NODES = "GET /api/v1/nodes"


def asked(world: WrittenLater) -> list[str]:
    """The requests of the operator, in order."""
    return [f"{request.method} {request.path}" for request in world.server.requests]


async def test_without_hardware_a_request_says_what_to_do() -> None:
    world = WrittenLater({"model": "m", "hardware": {"numGpusPerNode": 4}}, SETTINGS)
    request = await world.reconciled()
    assert "Failed" == request.status.state
    assert "nvidia.com/gpu.product" in (request.status.message or "")
    assert "spec.hardware.{gpuSku,vramMb,numGpusPerNode}" in (request.status.message or "")
    world.has_gpu_node()
    request = await world.after(3)
    assert "Profiling" == request.status.state
    assert {**FOUND, "numGpusPerNode": 4, "totalGpus": 4} == world.later()["spec"]["hardware"]


async def test_nodes_that_may_not_be_read_are_none() -> None:
    world = WrittenLater({"model": "m"}, SETTINGS)
    denied = {"code": 403, "reason": "Forbidden", "message": "no"}
    world.server.refuse = lambda request, _: denied if request.path.endswith("/nodes") else None
    assert "GPU hardware info required" in ((await world.reconciled()).status.message or "")


@pytest.mark.parametrize("is_stored_later", [True, False])
async def test_hardware_is_written_once(*, is_stored_later: bool) -> None:
    world = WrittenLater({"model": "m"}, SETTINGS, is_stored_later=is_stored_later)
    world.has_gpu_node()
    await world.reconciled()
    generation = world.later()["metadata"]["generation"]
    assert FOUND == world.later()["spec"]["hardware"]
    assert "acceptedSpec" not in world.later().get("status", {}), "it is validated again"
    await world.after(4)
    assert generation == world.later()["metadata"]["generation"]
    patched = [request for request in asked(world) if request.startswith("PATCH") and request.endswith("/r")]
    assert 3 == len(patched), "hardware, the accepted spec, the Job"


async def test_nodes_are_read_only_for_a_request_that_lacks_hardware() -> None:
    complete = {"gpuSku": "l4", "vramMb": 1.0, "numGpusPerNode": 1, "totalGpus": 1}
    complete |= {"interconnect": "pcie", "rdma": False}
    for hardware, is_read in ((complete, False), ({}, True)):
        world = WrittenLater({"model": "m", "hardware": hardware}, SETTINGS)
        world.has_gpu_node()
        request = await world.after(3)
        assert "Profiling" == request.status.state
        assert is_read == (LIST_NODES in asked(world))


@pytest.mark.parametrize("is_stored_later", [True, False])
async def test_a_write_of_v1alpha1_is_carried_out_as_such(*, is_stored_later: bool) -> None:
    spec = {
        "model": "m",
        "backend": "vllm",
        "image": "p:1",
        "overrides": {"profilingJob": {"backoffLimit": 1}},
    }
    world = WrittenLater(spec, SETTINGS, is_stored_later=is_stored_later)
    write = {"apiVersion": "nvidia.com/v1alpha1", "time": "2026-02-01T00:00:00Z"}
    world.edit({"metadata": {"managedFields": [{**write, "fieldsV1": {"f:spec": {"f:model": {}}}}]}})
    request = await world.after(2)
    assert "Profiling" == request.status.state
    assert not in_v1beta1(request)
    assert "--profile-config" == profiler(world)["args"][0]
    assert LIST_NODES not in asked(world)


async def test_a_problem_has_the_path_of_the_version() -> None:
    world = WrittenLater({"model": "m", "modelCache": {"pvcName": "No"}}, SETTINGS)
    assert "spec.modelCache.pvcName" in ((await world.reconciled()).status.message or "")


async def test_a_thorough_search_needs_a_backend_also_without_webhooks() -> None:
    world = WrittenLater({"model": "m", "searchStrategy": "thorough"}, SETTINGS)
    world.has_gpu_node()
    assert "is incompatible with spec.backend" in ((await world.reconciled()).status.message or "")


def words(world: WrittenLater) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition, as a client of v1beta1 reads them."""
    conditions = world.later()["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in conditions}


COMPONENTS = [
    {"name": "Frontend", "type": "frontend", "podTemplate": {"spec": {"containers": [{"name": "main"}]}}},
    {"name": "W", "type": "worker", "podTemplate": {"spec": {"containers": [{"name": "main"}]}}},
]
RESULT: Object = {
    "apiVersion": LATER,
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "generated"},
    "spec": {"components": COMPONENTS},
}


@pytest.mark.parametrize("is_stored_later", [True, False])
async def test_a_request_is_followed_in_the_words_of_its_version(*, is_stored_later: bool) -> None:
    spec = {"model": "m", "runtimeVersionOverride": "1.5.0"}
    world = WrittenLater(spec, SETTINGS, is_stored_later=is_stored_later)
    await world.reconciled()
    assert ("False", "ValidationFailed") == words(world)["Succeeded"] == words(world)["Validation"]
    assert world.later()["status"]["conditions"][-1]["message"].startswith("Validation failed: GPU hardware")
    world.has_gpu_node()
    await world.reconciled()
    await world.reconciled()
    assert {"Validation": ("True", "ValidationPassed"), "Succeeded": ("False", "Pending")} == words(world)
    await world.reconciled()
    assert ("Profiling", "Initializing") == tuple(
        world.later()["status"][field] for field in ("phase", "profilingPhase")
    )
    assert ("False", "ProfilingRunning") == words(world)["Profiling"]
    assert ("False", "Profiling") == words(world)["Succeeded"]
    await world.profiler_writes(
        profiler_status__yaml="status: running\nphase: SweepingDecode\nmessage: 2 of 5\n"
    )
    await world.reconciled()
    assert ("False", "SweepingDecode") == words(world)["Profiling"]
    await world.profiler_writes(final_config__yaml=json.dumps(RESULT))
    await world.job_ends()
    await world.reconciled()
    status = world.later()["status"]
    assert "Deploying" == status["phase"]
    assert "profilingPhase" not in status
    assert ("True", "ProfilingCompleted") == words(world)["Profiling"]
    assert LATER == status["profilingResults"]["selectedConfig"]["apiVersion"]
    await world.reconciled()
    graph = await world.graph()
    assert {"1.5.0"} == {service.runtime_version_override for service in graph.spec.services.values()}
    await world.reconciled()
    assert ("False", "DeploymentInProgress") == words(world)["DeploymentReady"]
    await world.graph_is("successful")
    await world.reconciled()
    assert "Deployed" == world.later()["status"]["phase"]
    assert {("True", "Deployed"), ("True", "DeploymentReady")} < {*words(world).values()}
    written = len(world.server.requests)
    await world.reconciled()
    assert [] == [each for each in asked(world)[written:] if not each.startswith("GET")]
    await world.graph_is("pending")
    await world.reconciled()
    assert "Deploying" == world.later()["status"]["phase"]
    assert ("False", "DeploymentDegraded") == words(world)["DeploymentReady"]
    await world.graph_is_gone()
    await world.after(2)
    status = world.later()["status"]
    assert ("Failed", None) == (status["phase"], status.get("dgdName"))
    assert ("False", "DeploymentDeleted") == words(world)["DeploymentReady"] == words(world)["Succeeded"]
    written = len(world.server.requests)
    await world.reconciled()
    assert [] == [each for each in asked(world)[written:] if not each.startswith("GET")]


async def test_a_failure_names_the_phase_in_which_it_happened() -> None:
    world = WrittenLater({"model": "m"}, SETTINGS)
    world.has_gpu_node()
    await world.after(3)
    text = "status: failed\nphase: SweepingPrefill\nmessage: sweeping\nerror: out of memory\n"
    await world.profiler_writes(profiler_status__yaml=text)
    await world.job_ends()
    await world.reconciled()
    assert ("False", "SweepingPrefillFailed") == words(world)["Profiling"] == words(world)["Succeeded"]
    status = world.later()["status"]
    assert ("Failed", "SweepingPrefill") == (status["phase"], status["profilingPhase"])
    (message,) = (it["message"] for it in status["conditions"] if it["type"] == "Succeeded")
    assert "Profiling failed: the profiler reports a failure: out of memory" == message


async def ready(world: WrittenLater) -> None:
    """Bring a request that creates no graph to its end."""
    world.has_gpu_node()
    await world.after(3)
    await world.profiler_writes(final_config__yaml=json.dumps(RESULT))
    await world.job_ends()
    await world.reconciled()
    assert ("True", "SpecGenerated") == words(world)["Succeeded"]


async def test_a_result_is_deployed_when_that_is_switched_on() -> None:
    world = WrittenLater({"model": "m", "autoApply": False}, SETTINGS)
    await ready(world)
    old = await world.request()
    world.edit({"spec": {"autoApply": True}})
    assert [] == [*request_update_problems(old, await world.request())]
    with capture_logs() as logs:
        await world.after(2)
    assert "generated" != (await world.graph()).metadata.name
    status = world.later()["status"]
    assert ("Deploying", "r") == (status["phase"], status["dgdName"])
    assert world.later()["metadata"]["generation"] == status["observedGeneration"]
    assert "SpecChangeRejected" not in {log.get("reason") for log in logs}


async def test_no_other_change_of_a_result_is_carried_out() -> None:
    world = WrittenLater({"model": "m", "autoApply": False}, SETTINGS)
    await ready(world)
    old = await world.request()
    world.edit({"spec": {"autoApply": True, "model": "other"}})
    assert ["spec"] == [it.path for it in request_update_problems(old, await world.request())]
    with capture_logs() as logs:
        await world.after(2)
    assert "Ready" == world.later()["status"]["phase"]
    assert "SpecChangeRejected" in {log.get("reason") for log in logs}


async def survived(world: WrittenLater) -> bool:
    """Reconcile, again in a new process if it is killed, which is returned."""
    try:
        await world.reconciled()
    except Killed:
        await world.starts()
        await world.reconciled()
        return True
    return False


@pytest.mark.parametrize("is_stored_later", [True, False])
@pytest.mark.parametrize("has_effect", [True, False])
async def test_a_process_that_is_killed_at_any_write_changes_no_result(
    *, is_stored_later: bool, has_effect: bool
) -> None:
    ends, killed, count = set[tuple[Any, ...]](), [True], 0
    while any(killed):
        world = WrittenLater({"model": "m"}, SETTINGS, is_stored_later=is_stored_later)
        world.has_gpu_node()
        await world.starts(Killing(world.server, count, has_effect))
        killed = [await survived(world) for _ in range(4)]
        await world.profiler_writes(final_config__yaml=json.dumps(RESULT))
        await world.job_ends()
        killed += [await survived(world) for _ in range(6)]
        status, count = world.later()["status"], count + 1
        assert FOUND == world.later()["spec"]["hardware"]
        ends.add((status["phase"], status["dgdName"], *sorted(words(world).items())))
    assert 1 == len(ends), ends
    assert count > 9, "writes"
