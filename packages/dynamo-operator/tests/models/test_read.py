"""Which pods a model is loaded into, and which of them are never asked."""

import asyncio

import pytest

from simulated.clock import on_simulated_clock
from simulated.models import BASE, SLICES, UNABLE, Cluster, Worker, loaded


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
async def test_slices_that_are_made_anew_take_nothing_from_pods() -> None:
    async with loaded() as (cluster, (worker,)):
        ((key, body),) = [*cluster.storage.objects[SLICES].items()]
        cluster.storage.delete(SLICES, key, {})
        await asyncio.sleep(60)
        assert "NoEndpoints" == cluster.condition()[1]
        cluster.has_slice(
            "again", body["metadata"]["labels"]["kubernetes.io/service-name"], BASE, body["endpoints"]
        )
        await asyncio.sleep(5)
        assert "True" == cluster.condition()[0]
        assert ["load legal-v2", "list"] == worker.asked


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
        text = "All 2 endpoint(s) are ready; 1 prefill worker(s) cannot manage LoRAs"
        assert ("True", "AllEndpointsReady", text) == cluster.condition()
        status = cluster.status()
        assert (2, 3) == (status["readyEndpoints"], status["totalEndpoints"])
        (covered,) = [each for each in status["endpoints"] if each.get("fallbackCovered")]
        assert "w-10" == covered["podName"]
        assert "PartialEndpointFailure" not in [reason for reason, _ in cluster.events()]


@on_simulated_clock
async def test_a_prefill_worker_alone_is_not_ready_without_its_lora() -> None:
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
async def test_a_model_without_endpoints_reports_the_cause() -> None:
    cluster = Cluster()
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(5)
        nothing = f"No endpoint slices found for base model {BASE}"
        none = "no component in this namespace has a modelRef"
        assert ("False", "NoEndpoints", f"{nothing}; {none}") == cluster.condition()
        cluster.has_service("orion/other")
        await asyncio.sleep(5)
        other = "no component in this namespace has that modelRef.name (found: orion/other)"
        assert f"{nothing}; {other}" == cluster.condition()[2]
        cluster.has_service()
        await asyncio.sleep(5)
        assert f"{nothing}; its components have no pods" == cluster.condition()[2]
        assert ("False", "NoServicesFound", nothing) == cluster.condition("ServicesFound")
        cluster.has_pods(1)
        await asyncio.sleep(5)
        assert "True" == cluster.condition()[0]
