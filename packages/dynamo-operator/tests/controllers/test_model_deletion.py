"""A deleted model is unloaded from all workers that may have it, and no worker blocks the deletion."""

import asyncio

from simulated.clock import on_simulated_clock
from simulated.models import MODELS, URI, Cluster, loaded


@on_simulated_clock
async def test_a_deleted_model_is_unloaded_and_goes() -> None:
    async with loaded(pods=3) as (cluster, workers):
        cluster.delete()
        await asyncio.sleep(2)
        assert cluster.model() is None
        assert [{}] * 3 == [each.loaded for each in workers]
        await asyncio.sleep(600)
        assert 6 == cluster.asked()
    assert ("LoRAUnloaded", "Unloaded LoRA from 3 endpoint(s)") in cluster.events()


@on_simulated_clock
async def test_a_deletion_waits_for_nobody_and_everybody_has_a_try() -> None:
    cluster = Cluster()
    workers = cluster.has_pods(100)
    cluster.has_model()
    async with cluster.operator():
        await cluster.until(lambda: cluster.status().get("readyEndpoints") == 100)
        for each in workers[::2]:
            each.hangs = True
        cluster.delete()
        await cluster.until(lambda: cluster.model() is None, 30)
        assert all(not each.loaded for each in workers[1::2])
    text = "Failed to unload LoRA from some endpoints: 50 task(s) failed"
    assert ("LoRAUnloadFailed", text) in cluster.events()


@on_simulated_clock
async def test_a_deletion_lets_a_load_end_before_it_unloads() -> None:
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    worker.takes_seconds = 5
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(1)
        cluster.delete()
        await cluster.until(lambda: cluster.model() is None, 30)
        assert {} == worker.loaded
        assert ["load legal-v2", "unload legal-v2"] == worker.asked


@on_simulated_clock
async def test_a_model_that_was_made_invalid_keeps_what_it_has_and_can_be_deleted() -> None:
    async with loaded() as (cluster, (worker,)):
        cluster.edit(source={"uri": "http://elsewhere"})
        await asyncio.sleep(5)
        assert ("False", "ValidationFailed") == cluster.condition("Valid")[:2]
        assert {"legal-v2": URI} == worker.loaded
        cluster.delete()
        await asyncio.sleep(5)
        assert cluster.model() is None
        assert {} == worker.loaded


@on_simulated_clock
async def test_what_an_earlier_operator_loaded_is_taken_over_and_unloaded_at_the_end() -> None:
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    worker.loaded["legal-v2"] = URI
    cluster.has_model()
    ends = [{"address": "http://10.8.0.1:9090", "podName": "w-0", "ready": True}]
    status = {"endpoints": ends, "readyEndpoints": 1, "totalEndpoints": 1}
    key = next(iter(cluster.storage.objects[MODELS]))
    cluster.storage.merge(MODELS, key, {"metadata": {"finalizers": ["nvidia.com/finalizer"]}})
    cluster.storage.merge(MODELS, key, {"status": status}, "status")
    cluster.delete()
    async with cluster.operator():
        await asyncio.sleep(10)
    assert cluster.model() is None
    assert {} == worker.loaded
