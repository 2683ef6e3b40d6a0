"""A model is loaded into the pods of its base model, whatever they answer, and nothing is asked too often."""

import asyncio

from dynamo_operator.models.plan import Ending, Reply
from simulated.clock import on_simulated_clock
from simulated.models import BASE, MODELS, URI, Cluster, loaded
from simulated.server import Fault

FAILED = Reply(Ending.FAILED, "status 500: download failed")


@on_simulated_clock
async def test_a_lora_is_loaded_into_every_pod_and_then_left_alone() -> None:
    cluster = Cluster()
    cluster.has_service()
    cluster.has_pods(2)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        assert ("True", "AllEndpointsReady", "All 2 endpoint(s) are ready") == cluster.condition()
        status = cluster.status()
        assert (2, 2, 2) == tuple(status[each] for each in ("readyEndpoints", "totalEndpoints", "readyPods"))
        assert ["load legal-v2"] == cluster.workers["http://10.8.0.1:9090"].asked
        assert ("EndpointsReady", f"All 2 endpoints ready for base model {BASE}") in cluster.events()
        written = cluster.writes()
        await asyncio.sleep(3600)
        assert 2 == cluster.asked("load")
        assert 24 == cluster.asked("list"), "each of two pods every five minutes"
        assert 0 == cluster.asked("unload")
        assert written == cluster.writes()


@on_simulated_clock
async def test_no_pod_gets_a_lora_that_no_status_records() -> None:
    async with loaded() as (cluster, workers):
        before = cluster.asked("load")
        cluster.server.faults.append(Fault(500, times=10**6, method="PATCH", collection=MODELS))
        cluster.edit(modelName="legal-v3")
        await asyncio.sleep(30)
        assert before == cluster.asked("load")
        cluster.server.faults.clear()
        await asyncio.sleep(60)
        assert [{"legal-v3": URI}] == [worker.loaded for worker in workers]


@on_simulated_clock
async def test_a_base_model_asks_nothing_and_has_no_finalizer() -> None:
    cluster = Cluster()
    cluster.has_pods(2)
    cluster.has_model(type_="base")
    async with cluster.operator():
        await asyncio.sleep(600)
        text = "Found 2 endpoint(s) for base model"
        assert ("True", "EndpointsDiscovered", text) == cluster.condition()
        status = cluster.status()
        assert (0, 2, 2) == tuple(status[each] for each in ("readyEndpoints", "totalEndpoints", "readyPods"))
        assert 0 == cluster.asked()
        body = cluster.model()
        assert body is not None
        assert "finalizers" not in body["metadata"]
        cluster.delete()
        await asyncio.sleep(1)
        assert cluster.model() is None


@on_simulated_clock
async def test_a_failing_pod_is_retried_alone_first_often_then_seldom() -> None:
    cluster = Cluster()
    good, bad = cluster.has_pods(2)
    bad.answer = FAILED
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(300)
        text = "Found 1 ready endpoint(s) out of 2 total; 1 of them: status 500: download failed"
        assert ("False", "NotReady", text) == cluster.condition()
        assert 9 <= len(bad.asked) <= 16, "about every 30 seconds, as the guide says"
        assert 1 == good.asked.count("load legal-v2")
        await asyncio.sleep(3600)
        before = len(bad.asked)
        await asyncio.sleep(3600)
        assert 11 <= len(bad.asked) - before <= 16, "every five minutes at last"
        bad.answer = None
        await asyncio.sleep(310)
        assert "True" == cluster.condition()[0]
    reasons = [reason for reason, _ in cluster.events()]
    assert ["EndpointsReady", "NotReady", "PartialEndpointFailure"] == reasons


@on_simulated_clock
async def test_pods_that_hang_hold_up_nobody() -> None:
    cluster = Cluster()
    workers = cluster.has_pods(100)
    for each in workers[:30]:
        each.hangs = True
    cluster.has_model()
    async with cluster.operator():
        await cluster.until(lambda: cluster.status().get("readyEndpoints") == 70, 300)
        assert cluster.most_at_once <= 20
        cluster.has_pods(20, first=200)
        await cluster.until(lambda: cluster.status().get("readyEndpoints") == 90, 20)


@on_simulated_clock
async def test_a_worker_that_lost_its_adapter_gets_it_again() -> None:
    async with loaded() as (cluster, (worker,)):
        worker.loaded.clear()
        cluster.set_pods(range(1), restarts=1)
        await asyncio.sleep(5)
        assert {"legal-v2": URI} == worker.loaded, "its container was started again"
        worker.loaded.clear()
        await asyncio.sleep(310)
        assert {"legal-v2": URI} == worker.loaded, "the check has found it"


@on_simulated_clock
async def test_new_weights_reach_a_quarter_at_a_time_and_a_bad_address_stops_there() -> None:
    cluster = Cluster()
    workers = cluster.has_pods(8)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(10)
        for each in workers:
            each.takes_seconds = 10
        cluster.edit(source={"uri": "s3://vault/new"})
        await asyncio.sleep(5)
        assert 6 <= sum(bool(each.loaded) for each in workers)
        await asyncio.sleep(200)
        assert [{"legal-v2": "s3://vault/new"}] * 8 == [each.loaded for each in workers]
        assert "True" == cluster.condition()[0]
        for each in workers:
            each.takes_seconds = 0.1
        cluster.edit(source={"uri": "s3://vault/bad"})
        await asyncio.sleep(0.15)
        for each in workers:
            each.answer = FAILED
        await asyncio.sleep(120)
        assert 6 == sum(each.loaded == {"legal-v2": "s3://vault/new"} for each in workers)


@on_simulated_clock
async def test_a_new_name_is_loaded_and_the_old_one_goes() -> None:
    async with loaded(pods=3) as (cluster, workers):
        cluster.edit(modelName="legal-v3")
        await asyncio.sleep(5)
        assert [{"legal-v3": URI}] * 3 == [each.loaded for each in workers]
        assert ["load legal-v2", "load legal-v3", "unload legal-v2"] == workers[0].asked
        assert "leftovers" not in cluster.status()["endpoints"][0]


@on_simulated_clock
async def test_a_restarted_operator_lists_once_and_loads_nothing_again() -> None:
    cluster = Cluster()
    workers = cluster.has_pods(3)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
    written = cluster.writes()
    async with cluster.operator():
        await asyncio.sleep(60)
    assert [["load legal-v2", "list"]] * 3 == [each.asked for each in workers]
    assert written == cluster.writes(MODELS)


@on_simulated_clock
async def test_weights_that_changed_while_a_load_was_cut_off_are_the_new_ones() -> None:
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    worker.takes_seconds = 20
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(2)
        assert ["load legal-v2"] == worker.asked
    worker.loaded["legal-v2"] = URI  # it took effect, and the operator did not learn of it
    cluster.edit(source={"uri": "s3://vault/new"})
    worker.takes_seconds = 0.1
    async with cluster.operator():
        await asyncio.sleep(10)
    assert {"legal-v2": "s3://vault/new"} == worker.loaded


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
