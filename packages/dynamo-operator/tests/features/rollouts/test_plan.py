"""What a rollout promises, in a world where pods start, die and get stuck, and the operator is killed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.component.service import WorkerRevision
from dynamo_operator.features.rollouts.plan import (
    Budget,
    Rollout,
    RolloutStep,
    budget,
    is_recreated,
    plan_rollout,
    rolling_step,
)
from dynamo_operator.features.rollouts.revisions import NOTHING, Member, Revisions, RevisionScale
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.meta import Object
from specs import a_graph, a_service

budgets = st.builds(Budget, st.integers(0, 4), st.integers(0, 4)).filter(
    lambda each: bool(each.surge or each.unavailable)
)
sides = st.integers(0, 6).flatmap(
    lambda replicas: st.builds(
        RevisionScale, st.just(replicas), st.integers(0, replicas + 1), st.integers(0, replicas + 2)
    )
)


def serving(new: RevisionScale, old: Sequence[RevisionScale]) -> int:
    return new.serving + sum(each.serving for each in old)


def replicas(new: RevisionScale, old: Sequence[RevisionScale]) -> int:
    return new.replicas + sum(each.replicas for each in old)


def left_serving(side: RevisionScale, asked: int) -> int:
    """What still serves when a side is made smaller: pods that do not serve are taken first."""
    return min(side.serving, asked)


@given(st.integers(0, 6), budgets, sides, st.lists(sides, max_size=3), st.booleans())
def test_a_step_keeps_its_promises(
    wanted: int, budget: Budget, new: RevisionScale, old: list[RevisionScale], is_settled: bool
) -> None:
    step = rolling_step(wanted, budget, new, old, is_settled=is_settled)
    # It neither exceeds the surge nor adds to what already does, whichever of the writes have reached the API
    # server: the new ones, the old ones or both.
    most = max(wanted + budget.surge, replicas(new, old))
    for new_asked in (new.replicas, step.new):
        for old_asked in ([each.replicas for each in old], step.old):
            assert new_asked + sum(old_asked) <= most
    if replicas(new, old) > wanted + budget.surge:
        assert step.new <= new.replicas
    # It takes no more available replicas than may be missing.
    left = left_serving(new, step.new) + sum(map(left_serving, old, step.old))
    assert min(wanted - budget.unavailable, serving(new, old)) <= left
    # No available replica is deleted while another could be, and old revisions never grow.
    pairs = list(zip(old, step.old, strict=True))
    if any(asked < side.serving for side, asked in pairs):
        assert all(asked <= side.serving for side, asked in pairs)
    assert all(0 <= asked <= side.replicas for side, asked in pairs)


@given(st.integers(1, 6), budgets, sides, sides)
def test_the_last_replica_that_serves_stays_until_the_new_ones_are_settled(
    wanted: int, budget: Budget, new: RevisionScale, old: RevisionScale
) -> None:
    assume(wanted + budget.surge > 1)  # with no room beside it, it has to make room
    assume(old.serving)
    step = rolling_step(wanted, budget, new, [old], is_settled=False)
    assert sum(step.old) >= 1


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (NOTHING, [RevisionScale(3, 3, 3), RevisionScale(2, 0, 2)], RolloutStep(0, (3, 0))),
        (RevisionScale(2, 1, 2), [RevisionScale(3, 1, 3)], RolloutStep(2, (2,))),
        (RevisionScale(2, 0, 2), [RevisionScale(3, 3, 3)], RolloutStep(2, (3,))),
        (NOTHING, [RevisionScale(3, 3, 4)], RolloutStep(1, (3,))),
    ],
    ids=[
        "a broken generation between goes before the healthy oldest",
        "after preemption emptied the old generation the rest of it stays",
        "a generation that never comes up leaves what serves alone",
        "room is what pods have left",
    ],
)
def test_a_step_of_a_rollout(new: RevisionScale, old: list[RevisionScale], expected: RolloutStep) -> None:
    assert expected == rolling_step(4, Budget(1, 1), new, old, is_settled=False)


SURGE = "nvidia.com/deployment-rolling-update-max-surge"
UNAVAILABLE = "nvidia.com/deployment-rolling-update-max-unavailable"


def spec(annotations: dict[str, str] | None = None, pods: dict[str, str] | None = None) -> ComponentSpec:
    extra = {"annotations": pods or {}}
    service = a_service(annotations=annotations or {}, extraPodMetadata=extra)
    return msgspec.convert(service, ComponentSpec)


def bounds(surge: str, unavailable: str) -> ComponentSpec:
    return spec({SURGE: surge, UNAVAILABLE: unavailable})


@pytest.mark.parametrize(
    ("said", "wanted", "expected"),
    [
        (spec(), 0, Budget(1, 0)),
        (spec(), 1, Budget(1, 0)),
        (spec(), 4, Budget(1, 1)),
        (spec(), 10, Budget(3, 2)),
        (bounds("34%", "34%"), 5, Budget(2, 1)),
        (bounds("7", "2"), 3, Budget(7, 2)),
        (bounds("0", "9"), 2, Budget(0, 2)),
        (bounds("0", "0"), 5, Budget(1, 0)),
        (spec({SURGE: "1"}, {SURGE: "3"}), 4, Budget(3, 1)),
    ],
    ids=[
        *(f"a quarter of {wanted}" for wanted in (0, 1, 4, 10)),
        "surge is rounded up and unavailable down",
        "numbers as they are",
        "no more than are wanted",
        "nothing is lifted to a surge of one",
        "what is said of the pods wins",
    ],
)
def test_a_budget(said: ComponentSpec, wanted: int, expected: Budget) -> None:
    assert expected == budget(said, wanted)


@given(st.text(max_size=6), st.text(max_size=6), st.integers(0, 100))
def test_whatever_is_said_something_can_be_replaced(surge: str, unavailable: str, wanted: int) -> None:
    found = budget(bounds(surge, unavailable), wanted)
    assert found.surge + found.unavailable > 0


def test_only_the_exact_word_recreates() -> None:
    strategy = "nvidia.com/deployment-strategy"
    assert is_recreated(spec({strategy: "Recreate"}))
    assert not is_recreated(spec({strategy: "recreate"}))
    assert not is_recreated(spec())


NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
NEW = WorkerRevision("new", "1:new", "prod-chat_")
RECREATE = {"nvidia.com/deployment-strategy": "Recreate"}


def graph(**services: Object) -> DynamoGraphDeployment:
    return a_graph(services or {"Decode": a_service(replicas=4)})


def member(
    service: str,
    suffix: str,
    replicas: int,
    available: int | None = None,
    pods: int | None = None,
    *,
    since: str | None = None,
    refusal: str = "",
    is_observed: bool = True,
) -> Member:
    """A service in one revision; all desired replicas are ready unless given otherwise."""
    counts = {
        "componentKind": "Deployment",
        "componentName": "x",
        "replicas": replicas if pods is None else pods,
        "updatedReplicas": 0,
        "availableReplicas": replicas if available is None else available,
    }
    conditions: list[Any] = []
    if since or refusal:
        status = "False" if refusal else "True"
        reported = {"type": "Available", "status": status, "reason": refusal, "lastTransitionTime": since}
        conditions = [reported]
    body = {
        "metadata": {"name": f"chat-{service}-{suffix}".lower(), "namespace": "prod", "generation": 2},
        "spec": {**a_service(), "serviceName": service, "replicas": replicas},
        "status": {
            "conditions": conditions,
            "service": counts,
            "observedGeneration": 2 if is_observed else 1,
        },
    }
    return Member(msgspec.convert(body, DynamoComponentDeployment), suffix, f"1:{suffix}")


def plan(graph: DynamoGraphDeployment, new: list[Member], old: list[Member], **more: Any) -> Rollout:
    return plan_rollout(graph, Revisions(NEW, "old", tuple(new), tuple(old)), NOW, **more)


def asked(rollout: Rollout) -> dict[str, int]:
    return {component.metadata.name: replicas for component, replicas in rollout.resized}


def names(rollout: Rollout) -> set[str]:
    return {key.name for _, key in rollout.spared}


def test_without_old_workers_nothing_is_decided() -> None:
    rollout = plan(graph(), [member("Decode", "new", 4)], [])
    assert NEW == rollout.workers
    assert not rollout.revisions.is_rolling_out
    assert ("Decode",) == rollout.through


def test_a_rollout_begins_with_what_the_budget_allows() -> None:
    rollout = plan(graph(), [], [member("Decode", "old", 4)])
    assert {"Decode": 1} == rollout.workers.replicas
    assert {"chat-decode-old": 3} == asked(rollout)
    assert {"chat-decode-old"} == names(rollout)
    assert rollout.revisions.is_rolling_out


def test_services_step_alone() -> None:
    services = {"Decode": a_service(replicas=4), "Prefill": a_service("prefill", replicas=1)}
    new = [member("Decode", "new", 4), member("Prefill", "new", 1, available=0)]
    old = [member("Decode", "old", 0), member("Prefill", "old", 1)]
    rollout = plan(graph(**services), new, old)
    assert ("Decode",) == rollout.through
    assert {} == asked(rollout)
    assert {"chat-decode-old", "chat-prefill-old"} == names(rollout)


@pytest.mark.parametrize(
    "refusal", ["RejectedByApiServer", "NameConflict", "ApiNotServed", "ExposureNotAllowed"]
)
def test_replicas_of_a_component_whose_objects_are_refused_replace_none(refusal: str) -> None:
    new = member("Decode", "new", 4, refusal=refusal)
    assert {"chat-decode-old": 3} == asked(plan(graph(), [new], [member("Decode", "old", 4)]))
    assert {} == asked(plan(graph(), [new], [member("Decode", "old", 3)]))
    assert () == plan(graph(), [new], [member("Decode", "old", 0)]).through


def test_pods_that_are_still_there_keep_their_component() -> None:
    old = member("Decode", "old", 0, pods=1)
    assert {"chat-decode-old"} == names(plan(graph(), [member("Decode", "new", 4)], [old]))


def test_a_number_that_was_not_observed_yet_may_still_be_so_many_pods() -> None:
    old = member("Decode", "old", 3, available=3, pods=0, is_observed=False)
    assert 2 == plan(graph(), [], [old]).workers.replicas["Decode"]


def test_the_last_old_replica_stays_until_new_ones_have_settled() -> None:
    old = [member("Decode", "old", 1)]
    fresh = member("Decode", "new", 4, since="2026-01-01T12:00:24Z")
    waiting = plan(graph(), [fresh], old)
    assert {} == asked(waiting)
    assert 4.0 == waiting.wait_seconds
    settled = member("Decode", "new", 4, since="2026-01-01T12:00:20Z")
    over = plan(graph(), [settled], old)
    assert {"chat-decode-old": 0} == asked(over)
    assert 0.0 == over.wait_seconds


def test_a_service_that_is_gone_stays_until_the_others_are_through() -> None:
    old = [member("Decode", "old", 0), member("Gone", "old", 2)]
    waiting = plan(graph(), [member("Decode", "new", 3)], old)
    assert {"chat-decode-old", "chat-gone-old"} == names(waiting)
    assert {} == asked(waiting)
    assert frozenset() == plan(graph(), [member("Decode", "new", 4)], old).spared


def test_a_recreated_service_waits_for_the_last_old_pod() -> None:
    body = graph(Decode=a_service(replicas=4, annotations=RECREATE))
    first = plan(body, [], [member("Decode", "old", 4)])
    assert {"chat-decode-old": 0} == asked(first)
    assert {"Decode": 0} == first.workers.replicas
    going = plan(body, [], [member("Decode", "old", 0, pods=1)])
    assert {"Decode": 0} == going.workers.replicas
    gone = [member("Decode", "old", 0)]
    leaving = plan(body, [], gone, leaving={"chat-decode-old": 1})
    assert {"Decode": 0} == leaving.workers.replicas
    assert {"Decode": 4} == plan(body, [], gone).workers.replicas
