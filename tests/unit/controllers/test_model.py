"""A model is loaded into the pods of its base model, whatever they answer, and nothing is asked too often."""

import asyncio

import pytest

from dynamo_operator.lifecycle.adapter_calls import Ending, Reply
from simulated.clock import on_simulated_clock
from simulated.models import BASE, MODELS, UNABLE, URI, Cluster, Worker

FAILED = Reply(Ending.FAILED, "status 500: download failed")


def has(worker: Worker) -> dict[str, str]:
    return worker.loaded


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
        assert (2, 2, 2) == tuple(
            status[each] for each in ("readyEndpoints", "totalEndpoints", "readyPods")
        )
        assert ["load legal-v2"] == cluster.workers["http://10.8.0.1:9090"].asked
        assert (
            "EndpointsReady",
            f"All 2 endpoints ready for base model {BASE}",
        ) in cluster.events()
        written = cluster.writes()
        await asyncio.sleep(3600)
        assert 2 == cluster.asked("load")
        assert 24 == cluster.asked("list"), "each of two pods every five minutes"
        assert 0 == cluster.asked("unload")
        assert written == cluster.writes()


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
        assert (0, 2, 2) == tuple(
            status[each] for each in ("readyEndpoints", "totalEndpoints", "readyPods")
        )
        assert 0 == cluster.asked()
        body = cluster.model()
        assert body is not None
        assert "finalizers" not in body["metadata"]
        cluster.delete()
        await asyncio.sleep(1)
        assert cluster.model() is None


@on_simulated_clock
async def test_a_pod_is_asked_when_it_is_ready_and_not_before() -> None:
    cluster = Cluster()
    cluster.has_model()
    (worker,) = cluster.has_pods(1, ready=False)
    async with cluster.operator():
        await asyncio.sleep(300)
        assert [] == worker.asked
        status, reason, message = cluster.condition()
        assert ("False", "NoReadyEndpoints") == (status, reason)
        assert "waiting for pod" in message
        cluster.set_pods(range(1))
        await asyncio.sleep(5)
        assert ["load legal-v2"] == worker.asked
        assert "True" == cluster.condition()[0]


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
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
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
        assert [{"legal-v2": "s3://vault/new"}] * 8 == [has(each) for each in workers]
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
    cluster = Cluster()
    workers = cluster.has_pods(3)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        cluster.edit(modelName="legal-v3")
        await asyncio.sleep(5)
        assert [{"legal-v3": URI}] * 3 == [has(each) for each in workers]
        assert ["load legal-v2", "load legal-v3", "unload legal-v2"] == workers[0].asked
        assert "leftovers" not in cluster.status()["endpoints"][0]


@on_simulated_clock
async def test_another_base_model_takes_the_adapter_from_the_old_pods() -> None:
    cluster = Cluster()
    old = cluster.has_pods(2)
    new = cluster.has_pods(2, first=10, base="orion/other")
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        cluster.edit(baseModelName="orion/other")
        await asyncio.sleep(10)
        assert [{}, {}] == [has(each) for each in old]
        assert [{"legal-v2": URI}] * 2 == [has(each) for each in new]
        assert [] == cluster.status().get("formerEndpoints") or []


@on_simulated_clock
async def test_slices_that_are_made_anew_take_nothing_from_pods() -> None:
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        (slice_,) = [*cluster.storage.objects["/apis/discovery.k8s.io/v1/endpointslices"].items()]
        key, body = slice_
        cluster.storage.delete("/apis/discovery.k8s.io/v1/endpointslices", key, {})
        await asyncio.sleep(60)
        assert "NoEndpoints" == cluster.condition()[1]
        cluster.has_slice(
            "again",
            body["metadata"]["labels"]["kubernetes.io/service-name"],
            BASE,
            body["endpoints"],
        )
        await asyncio.sleep(5)
        assert "True" == cluster.condition()[0]
        assert ["load legal-v2", "list"] == worker.asked


@on_simulated_clock
async def test_a_deleted_model_is_unloaded_and_goes() -> None:
    cluster = Cluster()
    workers = cluster.has_pods(3)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        cluster.delete()
        await asyncio.sleep(2)
        assert cluster.model() is None
        assert [{}] * 3 == [has(each) for each in workers]
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
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        cluster.edit(source={"uri": "http://elsewhere"})
        await asyncio.sleep(5)
        assert ("False", "ValidationFailed") == cluster.condition("Valid")[:2]
        assert {"legal-v2": URI} == worker.loaded
        cluster.delete()
        await asyncio.sleep(5)
        assert cluster.model() is None
        assert {} == worker.loaded


@on_simulated_clock
async def test_a_prefill_worker_without_the_api_is_covered_by_the_others() -> None:
    cluster = Cluster()
    cluster.has_pods(2)
    prefill = {"nvidia.com/dynamo-sub-component-type": "prefill"}
    (worker,) = cluster.has_pods(1, first=10, more=prefill)
    worker.answer = UNABLE
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(10)
        text = "All 2 endpoint(s) are ready; 1 prefill worker(s) cannot manage adapters"
        assert ("True", "AllEndpointsReady", text) == cluster.condition()
        status = cluster.status()
        assert (2, 3) == (status["readyEndpoints"], status["totalEndpoints"])
        (covered,) = [each for each in status["endpoints"] if each.get("fallbackCovered")]
        assert "w-10" == covered["podName"]
        assert "PartialEndpointFailure" not in [reason for reason, _ in cluster.events()]


@on_simulated_clock
async def test_a_prefill_worker_alone_is_covered_by_nobody() -> None:
    cluster = Cluster()
    prefill = {"nvidia.com/dynamo-component-type": "prefill"}
    (worker,) = cluster.has_pods(1, more=prefill)
    worker.answer = UNABLE
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(10)
        assert ("False", "NoReadyEndpoints") == cluster.condition()[:2]


@on_simulated_clock
async def test_followers_of_a_group_are_no_endpoints() -> None:
    cluster = Cluster()
    name = {"leaderworkerset.sigs.k8s.io/name": "chat-worker-0"}
    (leader,) = cluster.has_pods(1, more={**name, "role": "leader"})
    (follower,) = cluster.has_pods(1, first=1, more={**name, "role": "worker"})
    group = {"grove.io/podcliquescalinggroup-replica-index": "0"}
    (first,) = cluster.has_pods(1, first=2, more={**group, "grove.io/podclique": "g-0-w-0-w-ldr"})
    (second,) = cluster.has_pods(1, first=3, more={**group, "grove.io/podclique": "g-0-w-0-w-wkr"})
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(10)
        assert "All 2 endpoint(s) are ready" == cluster.condition()[2]
        assert [1, 0, 1, 0] == [len(each.asked) for each in (leader, follower, first, second)]


@on_simulated_clock
async def test_several_models_on_one_base_do_not_meet() -> None:
    cluster = Cluster()
    workers = cluster.has_pods(2)
    cluster.has_model("one", modelName="a")
    cluster.has_model("two", modelName="b", source={"uri": "hf://org/b@v1"})
    cluster.has_model("three", modelName="c", source={"uri": "file:///weights/c"})
    async with cluster.operator():
        await asyncio.sleep(10)
        loaded = {"a": URI, "b": "hf://org/b@v1", "c": "file:///weights/c"}
        assert [loaded] * 2 == [has(each) for each in workers]
        cluster.delete("two")
        await asyncio.sleep(5)
        assert [{"a": URI, "c": "file:///weights/c"}] * 2 == [has(each) for each in workers]


@on_simulated_clock
async def test_of_two_models_with_one_name_the_first_has_it_and_the_other_follows() -> None:
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    cluster.has_model("one")
    async with cluster.operator():
        await asyncio.sleep(5)
        cluster.has_model("two", source={"uri": "s3://vault/two"})
        await asyncio.sleep(60)
        assert {"legal-v2": URI} == worker.loaded
        text = f"Adapter legal-v2 of {BASE} is that of DynamoModel one"
        assert ("False", "AdapterNameTaken", text) == cluster.condition(name="two")
        assert "True" == cluster.condition(name="one")[0]
        cluster.delete("one")
        await asyncio.sleep(10)
        assert {"legal-v2": "s3://vault/two"} == worker.loaded
        assert "True" == cluster.condition(name="two")[0]
        cluster.delete("two")
        await asyncio.sleep(10)
        assert {} == worker.loaded


@on_simulated_clock
async def test_a_name_that_is_given_up_goes_to_the_one_that_waits() -> None:
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    cluster.has_model("one")
    async with cluster.operator():
        await asyncio.sleep(5)
        cluster.has_model("two", source={"uri": "s3://vault/two"})
        await asyncio.sleep(5)
        cluster.edit("one", modelName="other")
        await asyncio.sleep(20)
        assert {"other": URI, "legal-v2": "s3://vault/two"} == worker.loaded
        assert "True" == cluster.condition(name="one")[0]
        assert "True" == cluster.condition(name="two")[0]


@on_simulated_clock
async def test_the_deletion_of_one_that_waits_takes_nothing_from_the_other() -> None:
    cluster = Cluster()
    (worker,) = cluster.has_pods(1)
    cluster.has_model("one")
    async with cluster.operator():
        await asyncio.sleep(5)
        cluster.has_model("two", source={"uri": "s3://vault/two"})
        await asyncio.sleep(5)
        cluster.delete("two")
        await asyncio.sleep(30)
        assert {"legal-v2": URI} == worker.loaded
        assert ["load legal-v2"] == worker.asked


@pytest.mark.parametrize("addresses", [["10.8.0.77"], ["169.254.169.254"], ["10.8.0.1"]])
@on_simulated_clock
async def test_an_address_that_is_not_the_pods_own_is_never_called(addresses: list[str]) -> None:
    cluster = Cluster()
    cluster.has_pods(1, base="orion/other")
    other = cluster.workers["http://10.8.0.1:9090"]
    aim = cluster.workers["http://10.8.0.77:9090"] = Worker()
    uid = cluster.storage.read("/api/v1/pods", next(iter(cluster.storage.objects["/api/v1/pods"])))
    target = {"kind": "Pod", "name": "w-0", "uid": uid["metadata"]["uid"]}
    end = {"addresses": addresses, "conditions": {"ready": True}, "targetRef": target}
    cluster.has_slice("forged", "dynamo-model-52e17085", BASE, [end])
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(600)
        assert [] == other.asked
        assert [] == aim.asked
        assert ("False", "NoReadyEndpoints") == cluster.condition()[:2]


@on_simulated_clock
async def test_why_there_are_no_endpoints_is_told() -> None:
    cluster = Cluster()
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        nothing = f"No endpoint slices found for base model {BASE}"
        none = "no component in this namespace has a modelRef"
        assert ("False", "NoEndpoints", f"{nothing}; {none}") == cluster.condition()
        cluster.has_service("orion/other")
        await asyncio.sleep(5)
        other = "no component in this namespace has that modelRef.name; there is: orion/other"
        assert f"{nothing}; {other}" == cluster.condition()[2]
        cluster.has_service()
        await asyncio.sleep(5)
        assert f"{nothing}; its components have no pods" == cluster.condition()[2]
        assert ("False", "NoServicesFound", nothing) == cluster.condition("ServicesFound")
        cluster.has_pods(1)
        await asyncio.sleep(5)
        assert "True" == cluster.condition()[0]


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
    worker.loaded["legal-v2"] = URI  # it got through, and nobody was there to hear of it
    cluster.edit(source={"uri": "s3://vault/new"})
    worker.takes_seconds = 0.1
    async with cluster.operator():
        await asyncio.sleep(10)
    assert {"legal-v2": "s3://vault/new"} == worker.loaded


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
