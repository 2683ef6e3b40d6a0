"""The scaling adapters of a graph are created, reconciled and deleted, and own their replicas."""

import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from kube_runtime.types.meta import Key
from kube_runtime.wire import path_of
from simulated.clock import on_simulated_clock
from simulated.graphs import ADAPTER, ADAPTERS, GRAPH, GRAPHS, NAMESPACE, Cluster, operating, scaled, settle


@on_simulated_clock
async def test_an_adapter_starts_with_the_number_of_its_service() -> None:
    async with operating(decode=scaled(3), unset=scaled(None), off={"replicas": 2}) as cluster:
        assert ["chat-decode", "chat-unset"] == cluster.adapters()
        adapter = cluster.adapter()
        assert 3 == adapter["spec"]["replicas"]
        assert {"name": "chat", "serviceName": "decode"} == adapter["spec"]["dgdRef"]
        assert {
            "nvidia.com/dynamo-graph-deployment-name": "chat",
            "nvidia.com/dynamo-component": "decode",
        } == adapter["metadata"]["labels"]
        (owner,) = adapter["metadata"]["ownerReferences"]
        assert owner["controller"]
        assert cluster.graph()["metadata"]["uid"] == owner["uid"]
        assert 1 == cluster.adapter(Key(NAMESPACE, "chat-unset"))["spec"]["replicas"]
        assert ("True", "scaled") == cluster.ready()
        assert 0 == cluster.writes(GRAPHS), "nothing was to be said to the graph"


@on_simulated_clock
async def test_too_many_replicas_are_reported_by_the_adapter_and_reach_no_graph() -> None:
    async with operating() as cluster:
        cluster.scale(2**31 - 1)
        await settle()
        assert (2**31 - 1, 1, 1) == cluster.numbers()
        assert ("False", "rejected_by_api_server") == cluster.ready()


@on_simulated_clock
async def test_a_disabled_adapter_is_deleted_and_its_replicas_stay() -> None:
    async with operating() as cluster:
        cluster.scale(4)
        await settle()
        cluster.edit(scalingAdapter={"enabled": False})
        await settle()
        assert [] == cluster.adapters()
        assert 4 == cluster.graph()["spec"]["services"]["decode"]["replicas"]
        cluster.edit(replicas=2)
        await settle()
        assert [1, 4, 2] == [each["decode"] for each in cluster.asked]
    reasons = {reason for _, reason, _ in cluster.events()}
    assert "DeleteDynamoGraphDeploymentScalingAdapter" in reasons


@on_simulated_clock
async def test_an_adapter_of_another_owner_is_not_changed() -> None:
    cluster = Cluster()
    cluster.has_adapter("chat-decode", 7)
    cluster.has_graph(decode=scaled(2))
    async with cluster.operator():
        await settle()
        assert (7, 2, 2) == cluster.numbers()
        assert ("False", "superseded") == cluster.ready()
        cluster.storage.delete(ADAPTERS, ADAPTER, {})
        await settle()
        assert (2, 2, 2) == cluster.numbers()
        assert ("True", "scaled") == cluster.ready()


@on_simulated_clock
async def test_an_undecodable_adapter_blocks_no_other_service() -> None:
    cluster = Cluster()
    metadata = {"name": ADAPTER.name, "namespace": NAMESPACE}
    cluster.storage.create(ADAPTERS, {"metadata": metadata, "spec": {"replicas": "many"}})
    cluster.has_graph(decode=scaled(2), prefill=scaled(3))
    async with cluster.operator():
        await settle(60)
        assert [{"decode": 2, "prefill": 3}] == cluster.asked
        assert ["chat-decode", "chat-prefill"] == cluster.adapters()
        assert 1 == cluster.writes(ADAPTERS), "the other one was made"


@on_simulated_clock
async def test_an_adapter_missing_in_the_cache_is_found() -> None:
    cluster = Cluster()
    cluster.server.lag_seconds = 1
    cluster.has_graph()
    async with cluster.operator():
        cluster.storage.delete(ADAPTERS, ADAPTER, {})
        cluster.has_adapter("chat-decode", 7)
        await settle(20)
        assert ["chat-decode"] == cluster.adapters()
        assert ("False", "superseded") == cluster.ready()


@pytest.mark.parametrize(
    ("live", "suspend", "expected"),
    [((6,), "false", 6), ((5, 2), "false", 6), ((0,), "true", 2)],
    ids=["its size stays", "in a managed rollout too", "zero of a suspension is no size"],
)
@on_simulated_clock
async def test_a_new_adapter_of_a_service_under_the_factor(
    live: tuple[int, ...], suspend: str, expected: int
) -> None:
    cluster = Cluster()
    cluster.has_graph(decode=scaled(2, scalingAdapter={"enabled": False}))
    cluster.edit_graph({"metadata": {"annotations": {labels.SUSPEND: suspend}}, "spec": {"replicas": 3}})
    async with cluster.operator():
        owner = {
            "apiVersion": "nvidia.com/v1alpha1",
            "kind": "DynamoGraphDeployment",
            "name": GRAPH.name,
            "uid": cluster.graph()["metadata"]["uid"],
            "controller": True,
        }
        for replicas in live:
            metadata = {"name": f"w{replicas}", "namespace": NAMESPACE, "ownerReferences": [owner]}
            spec = {"serviceName": "decode", "replicas": replicas}
            path = path_of(DynamoComponentDeployment.KIND)
            cluster.storage.create(path, {"metadata": metadata, "spec": spec})
        await settle()
        cluster.edit(scalingAdapter={"enabled": True})
        await settle()
        assert (expected, expected, expected) == cluster.numbers()
        assert {6, expected} == {each["decode"] for each in cluster.asked}
