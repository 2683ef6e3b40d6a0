"""The restart machine, from the table of states that it goes through."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.component.service import ServiceObserved
from dynamo_operator.features.decision import RestartPlan
from dynamo_operator.features.restart import restart_plan
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
    Restart,
    RestartStatus,
    RestartStrategy,
)

SERVICES = ("Frontend", "decode", "prefill")
RUNS = {key: ServiceObserved(exists=True, is_ready=True) for key in SERVICES}


def a_graph(
    restart: Restart | None, status: RestartStatus | None = None, services: Any = SERVICES
) -> DynamoGraphDeployment:
    return DynamoGraphDeployment(
        spec=DynamoGraphDeploymentSpec(services=dict.fromkeys(services, ComponentSpec()), restart=restart),
        status=DynamoGraphDeploymentStatus(restart=status),
    )


def plan(graph: DynamoGraphDeployment, observed: Any = RUNS, **kwargs: bool) -> RestartPlan:
    flags = {"is_new": False, "is_rolling_out": False} | kwargs
    return restart_plan(graph, observed, **flags)


def carrying(id_: str, *ready: str) -> dict[str, ServiceObserved]:
    return {key: ServiceObserved(exists=True, restart=id_, is_ready=key in ready) for key in SERVICES}


PARALLEL = RestartStrategy("Parallel")


def test_a_graph_without_a_restart_id_restarts_nothing() -> None:
    assert RestartPlan(None, {}) == plan(a_graph(None))


def test_a_new_graph_has_nothing_to_restart() -> None:
    made = plan(a_graph(Restart("r1")), {}, is_new=True)
    assert RestartStatus("r1", "Completed") == made.status
    assert dict.fromkeys(SERVICES, "r1") == made.ids


def under_way(id_: str, *services: str) -> RestartStatus:
    return RestartStatus(id_, "Restarting", services)


DONE = RestartStatus("r1", "Completed")
STEPS: dict[str, tuple[Restart, RestartStatus | None, Any, RestartStatus]] = {
    "it begins with all services even if all are ready": (
        *(Restart("r1", PARALLEL), None, RUNS, under_way("r1", *SERVICES)),
    ),
    "a service leaves it when its new pods are ready": (
        *(Restart("r1", PARALLEL), under_way("r1", *SERVICES), carrying("r1", "decode")),
        under_way("r1", "Frontend", "prefill"),
    ),
    "readiness from before does not count": (
        *(Restart("r2", PARALLEL), under_way("r2", *SERVICES), carrying("r1", *SERVICES)),
        under_way("r2", *SERVICES),
    ),
    "it ends when all are through": (
        *(Restart("r1", PARALLEL), under_way("r1", "decode"), carrying("r1", *SERVICES), DONE),
    ),
    "in order it begins with the first by name": (*(Restart("r1"), None, RUNS, under_way("r1", "Frontend")),),
    "it keeps to the order that was asked for": (
        Restart("r1", RestartStrategy(order=("prefill", "Frontend", "decode"))),
        *(None, RUNS, under_way("r1", "prefill")),
    ),
    "a new wish starts over": (
        *(Restart("r2"), under_way("r1", "prefill"), carrying("r1", *SERVICES)),
        under_way("r2", "Frontend"),
    ),
    "an order that lost the current service goes on from its start": (
        *(Restart("r1"), under_way("r1", "gone"), carrying("r1", "Frontend")),
        under_way("r1", "decode"),
    ),
}


@pytest.mark.parametrize(("wish", "stored", "observed", "expected"), STEPS.values(), ids=STEPS)
def test_a_step_of_a_restart(
    wish: Restart, stored: RestartStatus | None, observed: Any, expected: RestartStatus
) -> None:
    made = plan(a_graph(wish, stored), observed)
    assert expected == made.status
    assert dict.fromkeys(expected.in_progress, wish.id).items() <= made.ids.items()


def test_the_next_service_waits_for_the_one_before_it() -> None:
    under_way = RestartStatus("r1", "Restarting", ("decode",))
    graph = a_graph(Restart("r1"), under_way)
    waits = plan(graph, carrying("r1", "Frontend"))
    assert RestartStatus("r1", "Restarting", ("decode",)) == waits.status
    assert "prefill" in waits.ids  # it keeps the id that it already carries
    goes_on = plan(graph, carrying("r1", "Frontend", "decode"))
    assert RestartStatus("r1", "Restarting", ("prefill",)) == goes_on.status
    assert RestartStatus("r1", "Completed") == plan(graph, carrying("r1", *SERVICES)).status


def test_services_whose_turn_has_not_come_keep_what_they_carry() -> None:
    made = plan(a_graph(Restart("r2"), RestartStatus("r1", "Completed")), carrying("r1", *SERVICES))
    assert {"Frontend": "r2", "decode": "r1", "prefill": "r1"} == made.ids


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Superseded"])
def test_an_id_that_is_over_is_over(phase: str) -> None:
    stored = RestartStatus("r1", phase)
    assert stored == plan(a_graph(Restart("r1"), stored)).status


def test_removing_the_restart_id_keeps_the_status_and_the_pods() -> None:
    done = RestartStatus("r1", "Completed")
    made = plan(a_graph(None, done), carrying("r1", *SERVICES))
    assert RestartPlan(done, dict.fromkeys(SERVICES, "r1")) == made


@pytest.mark.parametrize("phase", ["Completed", "Superseded", "Failed", "Restarting"])
def test_a_forged_status_restarts_no_pod(phase: str) -> None:
    forged = RestartStatus("forged", phase)
    assert {} == plan(a_graph(None, forged)).ids
    carried = plan(a_graph(None, forged), carrying("r1", *SERVICES)).ids
    assert dict.fromkeys(SERVICES, "r1") == carried


def test_removing_the_restart_id_stops_a_running_restart() -> None:
    under_way = RestartStatus("r1", "Restarting", ("decode",))
    observed = RUNS | {"Frontend": ServiceObserved(exists=True, restart="r1", is_ready=True)}
    assert RestartPlan(None, {"Frontend": "r1"}) == plan(a_graph(None, under_way), observed)


def test_a_restart_gives_way_to_a_rollout_of_the_workers() -> None:
    made = plan(a_graph(Restart("r2")), carrying("r1", *SERVICES), is_rolling_out=True)
    assert RestartStatus("r2", "Superseded") == made.status
    assert dict.fromkeys(SERVICES, "r1") == made.ids
    after = plan(a_graph(Restart("r2"), made.status), carrying("r1", *SERVICES))
    assert made == after


class Turn(NamedTuple):
    """What happens around one reconcile: who becomes ready before it, and whether its status is lost."""

    ready: str
    dies: bool


@given(
    st.permutations(SERVICES),
    st.booleans(),
    st.lists(st.builds(Turn, st.sampled_from(SERVICES), st.booleans()), max_size=30),
)
def test_every_restart_ends_and_a_sequential_one_takes_one_service_at_a_time(
    order: list[str], is_parallel: bool, turns: list[Turn]
) -> None:
    strategy = PARALLEL if is_parallel else RestartStrategy(order=tuple(order))
    status: RestartStatus | None = RestartStatus("old", "Completed")
    carried: dict[str, str] = dict.fromkeys(SERVICES, "old")
    ready = set[str](SERVICES)
    peaceful = [Turn(key, dies=False) for _ in range(4) for key in (*order, order[0])]
    for turn in (*turns, *peaceful):
        ready.add(turn.ready)
        observed = {
            key: ServiceObserved(exists=True, restart=id_, is_ready=key in ready)
            for key, id_ in carried.items()
        }
        made = plan(a_graph(Restart("new", strategy), status), observed)
        changed = {key for key, id_ in made.ids.items() if carried[key] != id_}
        assert is_parallel or (len(changed) <= 1 and (not changed or len(ready) == len(SERVICES)))
        carried |= made.ids
        ready -= changed
        if not turn.dies:
            status = made.status
    assert RestartStatus("new", "Completed") == status
    assert dict.fromkeys(SERVICES, "new") == carried
