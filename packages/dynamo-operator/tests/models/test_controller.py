"""A model is loaded into the pods of its base model, whatever they answer, and nothing is asked too often."""

import asyncio

from structlog.testing import capture_logs

from dynamo_operator import labels
from dynamo_operator.models.plan import Call, Ending, LoraVerb, Reply
from kube_runtime.types.meta import Key
from simulated.clock import on_simulated_clock
from simulated.models import BASE, MODELS, NAMESPACE, PODS, SLICES, UNABLE, URI, Cluster, Worker, loaded
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
        with capture_logs() as logs:
            await asyncio.sleep(300)
        assert "Failed to load LoRA" in {entry["event"] for entry in logs}, "as the guide says"
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
async def test_pods_that_hang_do_not_delay_other_pods() -> None:
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
async def test_new_weights_reach_a_quarter_at_a_time_and_a_bad_address_stops_there() -> None:
    async with loaded(pods=8) as (cluster, workers):
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
async def test_a_new_name_is_loaded_the_old_one_goes_and_a_deleted_model_is_unloaded() -> None:
    async with loaded(pods=3) as (cluster, workers):
        cluster.edit(modelName="legal-v3")
        await asyncio.sleep(5)
        assert [{"legal-v3": URI}] * 3 == [each.loaded for each in workers]
        assert ["load legal-v2", "load legal-v3", "unload legal-v2"] == workers[0].asked
        assert "leftovers" not in cluster.status()["endpoints"][0]
        cluster.delete()
        await asyncio.sleep(2)
        assert cluster.model() is None
        await asyncio.sleep(600)
        assert ([{}] * 3, 12) == ([each.loaded for each in workers], cluster.asked())
    assert ("LoRAUnloaded", "Unloaded LoRA from 3 endpoint(s)") in cluster.events()


@on_simulated_clock
async def test_a_restarted_operator_lists_once_and_loads_nothing_again() -> None:
    async with loaded(pods=3) as (cluster, workers):
        pass
    written = cluster.writes()
    async with cluster.operator():
        await asyncio.sleep(60)
    assert [["load legal-v2", "list"]] * 3 == [each.asked for each in workers]
    assert written == cluster.writes(MODELS)


@on_simulated_clock
async def test_a_deletion_calls_every_pod_and_waits_for_none_that_hangs() -> None:
    async with loaded(pods=100) as (cluster, workers):
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


@on_simulated_clock
async def test_of_two_models_with_one_name_the_first_has_it_until_it_gives_it_up_or_goes() -> None:
    async with loaded("one") as (cluster, (worker,)):
        source = {"uri": "s3://vault/two"}
        cluster.has_model("two", source=source)
        await asyncio.sleep(60)
        text = f"LoRA legal-v2 of {BASE} belongs to DynamoModel one"
        assert ("False", "AdapterNameTaken", text) == cluster.condition(name="two")
        cluster.delete("two")
        await asyncio.sleep(30)
        assert ({"legal-v2": URI}, ["load legal-v2"]) == (worker.loaded, worker.asked)
        assert "True" == cluster.condition(name="one")[0]
        cluster.has_model("two", source=source)
        await asyncio.sleep(5)
        cluster.edit("one", modelName="other")
        await asyncio.sleep(20)
        assert {"other": URI, "legal-v2": "s3://vault/two"} == worker.loaded
        assert ["True"] * 2 == [cluster.condition(name=name)[0] for name in ("one", "two")]
        cluster.edit("one", modelName="legal-v2")
        await asyncio.sleep(5)
        assert {"legal-v2": "s3://vault/two"} == worker.loaded
        cluster.delete("two")
        await asyncio.sleep(10)
        assert {"legal-v2": URI} == worker.loaded
        assert "True" == cluster.condition(name="one")[0]


@on_simulated_clock
async def test_a_name_that_a_paused_or_new_model_wants_is_unloaded_by_the_one_that_had_it() -> None:
    async with loaded("one") as (cluster, (worker,)):
        for name, wanted in (("two", "legal-v2"), ("three", "other")):
            cluster.has_model(name, modelName=wanted, source={"uri": f"s3://vault/{name}"})
            await asyncio.sleep(5 if name == "two" else 0)  # until it waits for the name
            cluster.annotate({labels.PAUSED: "true"}, name)
        cluster.edit("one", modelName="other")
        await asyncio.sleep(10)
        assert {"other": URI} == worker.loaded
        cluster.delete("one")
        await asyncio.sleep(10)
        assert {} == worker.loaded
        for name in ("two", "three"):
            cluster.annotate({labels.PAUSED: None}, name)
        await asyncio.sleep(10)
        assert {"legal-v2": "s3://vault/two", "other": "s3://vault/three"} == worker.loaded
        worker.takes_seconds = 5
        cluster.delete("two")
        await asyncio.sleep(1)
        cluster.has_model("four")
        await asyncio.sleep(30)
        assert {"legal-v2": URI, "other": "s3://vault/three"} == worker.loaded


class WithoutList(Worker):
    """A worker of an image that cannot list its adapters."""

    async def call(self, call: Call) -> Reply:
        reply = await super().call(call)
        return UNABLE if call.verb is LoraVerb.LIST else reply


class Stubborn(Worker):
    """A worker that fails to unload one adapter, and unloads all others."""

    kept = "legal-v2"

    async def call(self, call: Call) -> Reply:
        if (call.verb, call.name) == (LoraVerb.UNLOAD, self.kept):
            self.asked.append(f"unload {call.name}")
            return FAILED
        return await super().call(call)


@on_simulated_clock
async def test_a_worker_that_cannot_list_has_its_adapter_again_after_its_container_was() -> None:
    cluster = Cluster()
    cluster.has_pods(1)
    worker = cluster.workers["http://10.8.0.1:9090"] = WithoutList()
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        worker.loaded.clear()
        cluster.set_pods(range(1), ready=False)
        await asyncio.sleep(5)
        cluster.set_pods(range(1), restarts=1)
        await asyncio.sleep(5)
        assert {"legal-v2": URI} == worker.loaded
        assert "True" == cluster.condition()[0]
        await asyncio.sleep(3600)
        assert 2 == worker.asked.count("load legal-v2"), "only a new container is doubted"


@on_simulated_clock
async def test_a_worker_that_lost_its_adapter_is_not_ready_and_gets_it_again() -> None:
    async with loaded() as (cluster, (worker,)):
        worker.loaded.clear()
        worker.takes_seconds = 30
        cluster.set_pods(range(1), restarts=1)
        await asyncio.sleep(5)
        assert ("False", "NoReadyEndpoints") == cluster.condition()[:2]
        assert "a container restarted" in cluster.status()["endpoints"][0]["message"]
        await asyncio.sleep(70)
        assert ("True", {"legal-v2": URI}) == (cluster.condition()[0], worker.loaded)
        worker.takes_seconds = 0.1
        worker.loaded.clear()
        await asyncio.sleep(310)
        assert {"legal-v2": URI} == worker.loaded, "the check has found it"


@on_simulated_clock
async def test_at_the_end_one_name_that_cannot_be_unloaded_keeps_no_other() -> None:
    cluster = Cluster()
    cluster.has_pods(1)
    worker = cluster.workers["http://10.8.0.1:9090"] = Stubborn()
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        cluster.edit(modelName="legal-v3")
        await asyncio.sleep(5)
        assert {"legal-v2", "legal-v3"} == set(worker.loaded)
        worker.kept = "legal-v3"
        cluster.delete()
        await cluster.until(lambda: cluster.model() is None, 30)
        assert {"legal-v3"} == set(worker.loaded)
    text = "Failed to unload LoRA from some endpoints: 1 task(s) failed"
    assert ("LoRAUnloadFailed", text) in cluster.events()


@on_simulated_clock
async def test_calls_to_deleted_pods_release_their_concurrency() -> None:
    cluster = Cluster()
    for each in cluster.has_pods(20):
        each.hangs = True
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        assert 20 == cluster.at_once
        for number in range(20):
            cluster.storage.delete(PODS, Key(NAMESPACE, f"w-{number}"), {})
        (late,) = cluster.has_pods(1, first=30)
        await asyncio.sleep(5)
        assert {"legal-v2": URI} == late.loaded
        assert 0 == cluster.at_once


@on_simulated_clock
async def test_a_paused_model_is_left_alone_and_can_be_deleted() -> None:
    async with loaded() as (cluster, (worker,)):
        cluster.annotate({labels.PAUSED: "true"})
        cluster.edit(modelName="legal-v3")
        (other,) = cluster.has_pods(1, first=1)
        await asyncio.sleep(700)
        assert "load legal-v3" not in worker.asked
        assert [] == other.asked
        assert ("True", "Paused") == cluster.condition("Paused")[:2]
        cluster.annotate({labels.PAUSED: None})
        await asyncio.sleep(10)
        assert [{"legal-v3": URI}] * 2 == [worker.loaded, other.loaded]
        assert ("False", "NotPaused") == cluster.condition("Paused")[:2]
        cluster.annotate({labels.PAUSED: "true"})
        await asyncio.sleep(5)
        cluster.delete()
        await asyncio.sleep(5)
        assert cluster.model() is None
        assert [{}] * 2 == [worker.loaded, other.loaded]


@on_simulated_clock
async def test_a_target_without_uid_is_the_pod_of_that_name() -> None:
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    body = next(iter(cluster.storage.objects[SLICES].values()))
    del body["endpoints"][0]["targetRef"]["uid"]
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        assert ["load legal-v2"] == worker.asked
        assert cluster.status()["endpoints"][0]["podUID"]


@on_simulated_clock
async def test_many_pods_that_cannot_load_do_not_have_a_large_status_written_all_the_time() -> None:
    cluster = Cluster()
    for each in cluster.has_pods(201):
        each.answer = UNABLE
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(60)
        before, asked = cluster.writes(), cluster.asked()
        await asyncio.sleep(300)
        assert asked + 201 <= cluster.asked(), "each of them is asked again every five minutes"
        assert cluster.writes() - before <= 7, "about once a minute"


@on_simulated_clock
async def test_a_deletion_that_another_operator_cut_off_still_unloads_when_the_namespace_is_ours() -> None:
    async with loaded() as (cluster, (worker,)):
        cluster.may_call = False
        cluster.delete()
        await asyncio.sleep(60)
        assert {"legal-v2": URI} == worker.loaded
        cluster.may_call = True
        await cluster.until(lambda: cluster.model() is None, 10)
        assert {} == worker.loaded
