"""A model whose pods, workers and users do what they rarely do: none of it loses an adapter, or a place."""

import asyncio

from dynamo_operator import labels
from dynamo_operator.models.plan import Call, Ending, LoraVerb, Reply
from kube_runtime.types.meta import Key
from simulated.clock import on_simulated_clock
from simulated.models import NAMESPACE, PODS, SLICES, UNABLE, URI, Cluster, Worker, loaded

FAILED = Reply(Ending.FAILED, "status 500: download failed")


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
async def test_a_new_container_is_not_ready_before_it_has_said_what_it_has() -> None:
    async with loaded() as (cluster, (worker,)):
        worker.loaded.clear()
        worker.takes_seconds = 30
        cluster.set_pods(range(1), restarts=1)
        await asyncio.sleep(5)
        assert ("False", "NoReadyEndpoints") == cluster.condition()[:2]
        (told,) = cluster.status()["endpoints"]
        assert "a container restarted" in told["message"]
        await asyncio.sleep(70)
        assert "True" == cluster.condition()[0]
        assert {"legal-v2": URI} == worker.loaded


@on_simulated_clock
async def test_at_the_end_one_name_that_cannot_be_unloaded_keeps_no_other() -> None:
    cluster = Cluster()
    cluster.has_pods(1)
    worker = Stubborn()
    cluster.workers["http://10.8.0.1:9090"] = worker
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
async def test_pods_that_have_gone_hold_no_place() -> None:
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
        (told,) = cluster.status()["endpoints"]
        assert told["podUID"]


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
