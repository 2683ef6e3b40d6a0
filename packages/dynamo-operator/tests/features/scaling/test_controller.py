"""A service with an adapter has the number that the adapter says, whatever else happens to the graph."""

import os
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_operator.features.scaling.api import FIELD_MANAGER
from kube_runtime.types.meta import Key
from simulated.clock import on_simulated_clock, run
from simulated.graphs import ADAPTER, ADAPTERS, GRAPH, GRAPHS, NAMESPACE, Cluster, operating, scaled, settle
from simulated.server import NO_ANSWER, Fault

SECOND = Key(NAMESPACE, "by-hand")


@on_simulated_clock
async def test_a_scale_is_written_to_the_graph_at_once_with_an_event() -> None:
    async with operating(decode=scaled(1, unknown={"kept": True})) as cluster:
        cluster.edit_graph({"metadata": {"labels": {"team": "a"}}})
        cluster.scale(4)
        await settle(0.05)
        service = cluster.graph()["spec"]["services"]["decode"]
        assert {**scaled(4), "unknown": {"kept": True}} == service
        await settle()
        assert (4, 4, 4) == cluster.numbers()
        status = cluster.adapter()["status"]
        assert (4, 4, 2) == tuple(
            status[each] for each in ("replicas", "desiredReplicas", "observedGeneration")
        )
        assert "lastScaleTime" in status
        assert {
            ("chat", "Scaled", "Scaled service decode from 1 to 4 replicas"),
            ("chat-decode", "Scaled", "Scaled service decode from 1 to 4 replicas"),
        } <= cluster.events()
    (patch,) = [each for each in cluster.server.requests if each.path.endswith("/chat")]
    assert FIELD_MANAGER == patch.query["fieldManager"]


@on_simulated_clock
async def test_several_changes_within_a_second_are_two_writes_and_two_sizes() -> None:
    async with operating() as cluster:
        for replicas in range(2, 12):
            cluster.scale(replicas)
            await settle(0.09)
        await settle()
        assert (11, 11, 11) == cluster.numbers()
        assert 2 == cluster.writes(GRAPHS), "the first at once, the rest together"
        assert [1, 2, 11] == [each["decode"] for each in cluster.asked]


async def an_edit_by_hand(cluster: Cluster) -> None:
    cluster.edit(replicas=1)


async def an_edit_of_the_image(cluster: Cluster) -> None:
    cluster.edit(image="b")


async def an_apply_of_the_old_manifest(cluster: Cluster) -> None:
    metadata = {"name": GRAPH.name, "namespace": GRAPH.namespace}
    body = {"metadata": metadata, "spec": {"services": {"decode": scaled(1)}}}
    for _ in range(3):
        cluster.storage.apply(GRAPHS, body, "gitops")
        await settle(0.4)


async def a_wrong_reference(cluster: Cluster) -> None:
    reference = {"dgdRef": {"name": "other", "serviceName": "x"}}
    cluster.storage.merge(ADAPTERS, ADAPTER, {"spec": reference})


async def labels_that_are_taken_off(cluster: Cluster) -> None:
    cluster.storage.merge(ADAPTERS, ADAPTER, {"metadata": {"labels": None}})


@pytest.mark.parametrize(
    "event",
    [
        an_edit_by_hand,
        an_edit_of_the_image,
        an_apply_of_the_old_manifest,
        a_wrong_reference,
        labels_that_are_taken_off,
    ],
)
@on_simulated_clock
async def test_the_adapter_wins(event: Callable[[Cluster], Awaitable[None]]) -> None:
    async with operating(decode=scaled(4)) as cluster:
        await event(cluster)
        await settle(20)
        assert (4, 4, 4) == cluster.numbers()
        assert ("True", "scaled") == cluster.ready()
        adapter = cluster.adapter()
        assert {"name": "chat", "serviceName": "decode"} == adapter["spec"]["dgdRef"]
        assert "decode" == adapter["metadata"]["labels"]["nvidia.com/dynamo-component"]
        if event in (an_edit_by_hand, an_apply_of_the_old_manifest):
            assert [4] == [each["decode"] for each in cluster.asked], "no pod was in danger"
            text = (
                "Scaled service decode from 1 to 4 replicas: DynamoGraphDeploymentScalingAdapter "
                "chat-decode owns its number; scale that instead"
            )
            assert ("chat", "Scaled", text) in cluster.events()


@on_simulated_clock
async def test_a_rejected_scale_is_reported_and_retried_with_backoff() -> None:
    async with operating() as cluster:
        refusal = Fault(403, method="PATCH", collection=GRAPHS, times=1000)
        cluster.server.faults.append(refusal)
        cluster.scale(4)
        await settle(60)
        assert ("False", "rejected_by_api_server") == cluster.ready()
        assert [1] == [each["decode"] for each in cluster.asked], "what the graph says"
        (text,) = [text for _, reason, text in cluster.events() if reason == "UpdateFailed"]
        assert text.startswith("Failed to update DGD chat: ")
        assert 1 == cluster.writes(GRAPHS)
        refusal.times = 0
        await settle(120)
        assert (4, 4, 4) == cluster.numbers()


@pytest.mark.parametrize("is_scaled_first", [False, True])
@on_simulated_clock
async def test_a_scale_never_makes_a_service_that_is_taken_out(*, is_scaled_first: bool) -> None:
    async with operating(decode=scaled(1), other={}) as cluster:
        cluster.server.lag_seconds = 0.5  # the operator knows of the first change only
        if is_scaled_first:
            cluster.scale(4)
            await settle(0.3)
        cluster.edit_graph({"spec": {"services": {"decode": None}}})
        if not is_scaled_first:
            cluster.scale(4)
        await settle(20)
        assert ["other"] == list(cluster.graph()["spec"]["services"])
        assert [] == cluster.adapters()
    text = "Deleted orphaned scaling adapter chat-decode for removed service decode"
    assert ("chat", "AdapterDeleted", text) in cluster.events()


@on_simulated_clock
async def test_an_adapter_without_a_graph_waits_quietly_and_is_woken() -> None:
    cluster = Cluster()
    cluster.has_adapter("by-hand", 3)
    async with cluster.operator():
        assert ("False", "dgd_not_found") == cluster.ready(SECOND)
        await settle(3600)
        assert 1 == cluster.writes(ADAPTERS, "status")
        cluster.has_graph(other={})
        await settle()
        assert ("False", "service_not_found") == cluster.ready(SECOND)
        cluster.edit(replicas=1)
        await settle()
        assert ("False", "disabled") == cluster.ready(SECOND)
        cluster.edit(scalingAdapter={"enabled": True})
        await settle()
        assert ("False", "superseded") == cluster.ready(SECOND)
        assert (1, 1, 1) == cluster.numbers()


@on_simulated_clock
async def test_an_undecodable_adapter_reports_decode_failed() -> None:
    async with operating() as cluster:
        cluster.storage.merge(ADAPTERS, ADAPTER, {"spec": {"replicas": "many"}})
        await settle()
        assert ("False", "decode_failed") == cluster.ready()
        cluster.scale(2)
        await settle()
        assert (2, 2, 2) == cluster.numbers()
        assert ("True", "scaled") == cluster.ready()


_numbers = st.integers(0, 5)
_steps = st.one_of(
    st.tuples(st.just("scale"), _numbers),
    st.tuples(st.just("edit"), _numbers),
    st.tuples(st.just("unset"), st.none()),
    st.tuples(st.just("gitops"), _numbers),
    st.tuples(st.just("label"), _numbers),
    st.tuples(st.just("wait"), st.sampled_from((0.0, 0.01, 0.2, 1.5))),
    st.tuples(st.just("fault"), st.sampled_from((NO_ANSWER, 409, 500))),
    st.tuples(st.just("restart"), st.none()),
)


def _take(cluster: Cluster, what: str, value: object) -> None:
    metadata = {"name": GRAPH.name, "namespace": GRAPH.namespace}
    match what, value:
        case "scale", int(number):
            cluster.scale(number)
        case "edit", int(number):
            cluster.edit(replicas=number)
        case "unset", _:
            cluster.edit(replicas=None)
        case "gitops", int(number):
            body = {"metadata": metadata, "spec": {"services": {"decode": scaled(number)}}}
            cluster.storage.apply(GRAPHS, body, "gitops")
        case "label", int(number):
            cluster.edit_graph({"metadata": {"labels": {"number": str(number)}}})
        case "fault", int(code):
            cluster.server.faults.append(Fault(code, method="PATCH", after=code == NO_ANSWER))


async def _play(steps: list[tuple[str, object]], seed: int) -> None:
    cluster = Cluster(seed)
    cluster.server.is_jittered = True
    cluster.server.lag_seconds = cluster.server.request_seconds = 0.05
    cluster.has_graph(decode=scaled(2))
    rest, wanted = iter(steps), 2
    done = False
    while not done:
        done = True
        async with cluster.operator():
            for what, value in rest:
                if what == "wait":
                    assert isinstance(value, float)
                    await settle(value)
                if what == "scale":
                    assert isinstance(value, int)
                    wanted = value
                _take(cluster, what, value)
                if what == "restart":
                    done = False
                    break
            else:
                cluster.server.faults.clear()
                await settle(400)
                assert (wanted, wanted, wanted) == cluster.numbers()
                assert ("True", "scaled") == cluster.ready()
                status = cluster.adapter()["status"]
                assert (wanted, wanted) == (status["replicas"], status["desiredReplicas"])
                before = cluster.storage.revision
                await settle(2000)
                assert before == cluster.storage.revision, "quiet"


@settings(max_examples=int(os.environ.get("SIMULATED_WORLDS", "40")), deadline=None)
@given(st.lists(_steps, max_size=12), st.integers(0, 10**6))
def test_whatever_happens_the_last_scale_holds_and_then_it_is_quiet(
    steps: list[tuple[str, object]], seed: int
) -> None:
    run(_play(steps, seed))
