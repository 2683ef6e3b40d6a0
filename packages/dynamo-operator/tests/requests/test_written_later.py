"""A request that was written in v1beta1, whichever version is stored."""

import json
from typing import Any

import pytest

from dynamo_operator import names
from dynamo_operator.requests.extras import in_v1beta1, last_in_v1beta1
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Object
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
    for _ in range(3):
        request = await world.reconciled()
    assert "Profiling" == request.status.state, request.status.message
    assert in_v1beta1(request)
    assert FOUND == world.later()["spec"]["hardware"]
    container = profiler(world)
    assert ("o:1", ["python", "-m", "dynamo.profiler"]) == (container["image"], container["command"])
    option, text, *folder = container["args"]
    assert ["--config", "--output-dir", "/data"] == [option, *folder]
    expected = {"model": "m", "backend": "auto", "image": "o:1", "searchStrategy": "rapid", "autoApply": True}
    assert {**expected, "hardware": FOUND} == json.loads(text)


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
    for _ in range(3):
        request = await world.reconciled()
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
    for _ in range(4):
        await world.reconciled()
    assert generation == world.later()["metadata"]["generation"]
    patched = [request for request in asked(world) if request.startswith("PATCH") and request.endswith("/r")]
    assert 3 == len(patched), "hardware, the accepted spec, the Job"


async def test_nodes_are_read_only_for_a_request_that_lacks_hardware() -> None:
    complete = {"gpuSku": "l4", "vramMb": 1.0, "numGpusPerNode": 1, "totalGpus": 1}
    complete |= {"interconnect": "pcie", "rdma": False}
    for hardware, is_read in ((complete, False), ({}, True)):
        world = WrittenLater({"model": "m", "hardware": hardware}, SETTINGS)
        world.has_gpu_node()
        for _ in range(3):
            request = await world.reconciled()
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
    for _ in range(2):
        request = await world.reconciled()
    assert "Profiling" == request.status.state
    assert not in_v1beta1(request)
    assert "--profile-config" == profiler(world)["args"][0]
    assert LIST_NODES not in asked(world)


async def test_a_thorough_search_needs_a_backend_also_without_webhooks() -> None:
    world = WrittenLater({"model": "m", "searchStrategy": "thorough"}, SETTINGS)
    world.has_gpu_node()
    assert "is incompatible with spec.backend" in ((await world.reconciled()).status.message or "")
