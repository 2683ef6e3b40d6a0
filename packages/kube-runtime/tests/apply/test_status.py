"""A status patch holds the difference and nothing else."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus, RestartStatus
from kube_runtime.apply.status import (
    BUSY_SECONDS,
    SETTLE_SECONDS,
    StatusRateLimit,
    difference,
    merge_patch,
    patch_status,
    with_transition_times,
)
from kube_runtime.errors import Conflict
from kube_runtime.times import MANY_A_SECOND, WriteActivity
from kube_runtime.types.meta import Condition, Metadata, Status
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, Gadget, GadgetStatus, key
from simulated.world import a_world

pytestmark = pytest.mark.looptime

DOCUMENT = st.dictionaries(
    st.sampled_from("abcd"),
    st.recursive(
        st.integers(min_value=1) | st.text(min_size=1, max_size=3),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


def _patched(document: Any, patch: Any) -> Any:
    """RFC 7386, as its section 2 has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _patched(result.get(name), value)
    return result


@given(DOCUMENT, DOCUMENT)
def test_the_patch_turns_the_stored_into_the_wanted(stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert wanted == _patched(stored, merge_patch(stored, wanted))
    assert {} == merge_patch(stored, stored)


def test_a_transition_time_moves_only_with_the_status() -> None:
    stored = [Condition("Ready", "False", "old", "m", "2026-01-01T00:00:00Z")]
    same = with_transition_times([Condition("Ready", "False", "new", "n")], stored, now="now")
    assert "2026-01-01T00:00:00Z" == same[0].last_transition_time
    flipped = with_transition_times([Condition("Ready", "True", "new", "n")], stored, now="now")
    assert "now" == flipped[0].last_transition_time


def test_conditions_of_others_stay() -> None:
    stored = [Condition("Theirs", "True", "r", "m", "2026-01-01T00:00:00Z")]
    conditions = with_transition_times([Condition("Ours", "True", "r", "")], stored, now="now")
    assert ["Ours", "Theirs"] == [each.type for each in conditions]


def test_a_condition_is_written_with_all_that_is_required_of_it_however_empty() -> None:
    gadget = Gadget(Metadata("a", generation=1))
    patch = difference(gadget, GadgetStatus(conditions=(Condition("Ready", "True", "r"),)))
    [written] = patch["conditions"]
    assert written.pop("lastTransitionTime")
    assert {"type": "Ready", "status": "True", "reason": "r", "message": ""} == written


def test_a_status_that_is_not_mentioned_stays_and_a_default_is_removed() -> None:
    gadget = Gadget(Metadata("a"), status=GadgetStatus(ready=3))
    assert {} == difference(gadget, gadget.status)
    assert {"ready": None} == difference(gadget, GadgetStatus())


async def test_a_status_of_an_earlier_spec_is_not_written_to_a_newer_one() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        earlier = world.cache.get(Gadget, key("a"))
        assert earlier is not None
        world.has("a", 2)
        with pytest.raises(Conflict):
            await patch_status(world.writer, earlier, GadgetStatus(ready=1))
    assert "status" not in world.server.storage.read(GADGETS, key("a"))


def status(ready: str = "False", message: str = "0 of 2", **fields: Any) -> DynamoGraphDeploymentStatus:
    """A status as a controller computes it."""
    reason = "all_resources_are_ready" if ready == "True" else "some_resources_are_not_ready"
    said = Condition("Ready", ready, reason, message, observed_generation=1)
    known = {"observed_generation": 1, "state": "pending", **fields}
    return DynamoGraphDeploymentStatus(conditions=(said,), **known)


def stored(wanted: DynamoGraphDeploymentStatus, uid: str = "u") -> DynamoGraphDeployment:
    """A graph whose status says that."""
    since = "2026-01-01T00:00:00Z"
    said = (replace(each, last_transition_time=since) for each in wanted.conditions)
    metadata = Metadata("g", uid=uid, generation=1)
    return DynamoGraphDeployment(metadata, status=wanted.with_conditions(said))


def waited(limit: StatusRateLimit, graph: DynamoGraphDeployment, wanted: Status) -> float:
    """How long to wait for the write; if that is now, it is done."""
    wait = limit.wait(graph, wanted)
    if not wait and difference(graph, wanted):
        limit.record_write(graph)
    return wait


RESTART = RestartStatus("one", "Restarting")
MAY_RESTART = {"goal": "Ready", "never_delayed": ("restart",)}
TRANSIENT = {"transient_states": ("initializing", "pending")}


async def test_progress_waits_for_the_rest_of_a_second() -> None:
    limit, graph = StatusRateLimit(), stored(status())
    assert 0.0 == waited(limit, DynamoGraphDeployment(graph.metadata), status())
    await asyncio.sleep(0.25)
    assert 0.75 == waited(limit, graph, status(message="1 of 2"))
    await asyncio.sleep(0.75)
    assert 0.0 == waited(limit, graph, status(message="1 of 2"))


@pytest.mark.parametrize(
    ("options", "wanted", "wait"),
    [
        ({}, status("True", "All resources are ready"), 0.0),
        ({}, status(observed_generation=2), 0.0),
        ({}, status(state="failed"), 0.0),
        ({}, status(message="1 of 2"), 1.0),
        (MAY_RESTART, status(restart=RESTART), 0.0),
        (MAY_RESTART, status(message="2 of 2"), 1.0),
        (TRANSIENT, status(state="initializing"), 1.0),
        (TRANSIENT, status(state="failed"), 0.0),
    ],
)
def test_a_transition_and_a_record_do_not_wait_for_the_rest_of_a_second(
    options: dict[str, Any], wanted: Status, wait: float
) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        limit, graph = StatusRateLimit(**options), stored(status())
        assert 0.0 == waited(limit, graph, status(message="0 of 3"))
        assert wait == waited(limit, graph, wanted)

    scenario()


async def test_a_status_that_says_the_same_does_not_count() -> None:
    limit, graph = StatusRateLimit(), stored(status())
    assert 0.0 == waited(limit, graph, status())
    assert 0.0 == waited(limit, graph, status(message="1 of 2"))


async def test_objects_do_not_wait_for_each_other_and_are_forgotten() -> None:
    limit = StatusRateLimit()
    for number in range(100):
        fresh = DynamoGraphDeployment(Metadata("g", uid=str(number), generation=1))
        assert 0.0 == waited(limit, fresh, status())
    await asyncio.sleep(1.0)
    waited(limit, stored(status(), "last"), status(message="1 of 2"))
    assert 1 == limit.remembered


def edited(uid: str = "u") -> DynamoGraphDeployment:
    """A graph that was ready, and has a newer spec now."""
    ready = stored(status("True"), uid)
    return replace(ready, metadata=Metadata("g", uid=uid, generation=2))


MOVING, THERE = status(observed_generation=2), status("True", observed_generation=2)


async def test_the_first_word_on_a_new_spec_waits_for_the_last_one() -> None:
    limit = StatusRateLimit(goal="Ready")
    assert SETTLE_SECONDS == waited(limit, edited(), MOVING)
    await asyncio.sleep(SETTLE_SECONDS / 2)
    assert 0.0 == waited(limit, edited(), THERE)


async def test_the_first_word_is_written_if_the_last_one_does_not_come_however_often_it_is_asked() -> None:
    limit = StatusRateLimit(goal="Ready")
    for _ in range(4):
        assert waited(limit, edited(), MOVING) > 0
        await asyncio.sleep(SETTLE_SECONDS / 4)
    assert 0.0 == waited(limit, edited(), MOVING)
    assert 0.0 == waited(limit, edited(), MOVING), "a write that has failed does not wait once more"


async def test_the_first_status_of_an_object_of_users_is_written_at_once() -> None:
    fresh = DynamoGraphDeployment(Metadata("g", uid="u", generation=1))
    assert 0.0 == waited(StatusRateLimit(goal="Ready", first_at_once=True), fresh, status())
    assert SETTLE_SECONDS == waited(StatusRateLimit(goal="Ready"), fresh, status())
    assert SETTLE_SECONDS == waited(StatusRateLimit(goal="Ready", first_at_once=True), edited(), MOVING)


async def test_objects_that_vanish_while_they_settle_are_forgotten() -> None:
    limit = StatusRateLimit(goal="Ready")
    for number in range(100):
        waited(limit, edited(str(number)), MOVING)
    assert 100 == limit.remembered
    await asyncio.sleep(61.0)
    waited(limit, edited("last"), MOVING)
    assert 1 == limit.remembered


async def test_what_later_steps_are_decided_by_does_not_settle() -> None:
    limit = StatusRateLimit(goal="Ready", never_delayed=("restart", "Suspended"))
    suspended = Condition("Suspended", "Unknown", "suspending", "Scaling to zero")
    for told in (replace(MOVING, restart=RESTART), MOVING.with_conditions([*MOVING.conditions, suspended])):
        assert SETTLE_SECONDS == waited(limit, edited(), MOVING)
        assert 0.0 == waited(limit, edited(), told)


def busy() -> WriteActivity:
    """A time at which much begins."""
    write_activity = WriteActivity()
    for _ in range(MANY_A_SECOND):
        write_activity.record()
    return write_activity


async def test_in_busy_times_progress_waits_for_more_of_it_and_what_decides_does_not() -> None:
    write_activity = busy()
    limit, graph = StatusRateLimit(goal="Ready", activity=write_activity), stored(status())
    assert BUSY_SECONDS == waited(limit, graph, status(message="1 of 2"))
    assert 0.0 == waited(limit, graph, status("True", "All resources are ready"))
    assert BUSY_SECONDS == waited(limit, stored(status(), "other"), status(message="1 of 2"))
    await asyncio.sleep(1.0)
    assert 0.0 == waited(limit, stored(status(), "other"), status(message="2 of 2")), "it is quiet now"


async def test_in_busy_times_progress_is_written_in_the_end() -> None:
    write_activity, graph = busy(), stored(status())
    limit = StatusRateLimit(goal="Ready", activity=write_activity)
    waits = []
    for _ in range(7):
        waits.append(waited(limit, graph, status(message="1 of 2")))
        await asyncio.sleep(0.5)
        for _ in range(MANY_A_SECOND):
            write_activity.record()
    assert [3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0] == waits


async def test_in_busy_times_a_new_object_waits_for_its_first_status_and_an_edited_one_for_its_next() -> None:
    fresh = DynamoGraphDeployment(Metadata("g", uid="u", generation=1))
    limit = StatusRateLimit(goal="Ready", first_at_once=True, activity=busy())
    assert BUSY_SECONDS == waited(limit, fresh, status())
    assert 0.0 == waited(limit, fresh, status("True"))
    assert BUSY_SECONDS == waited(limit, edited("other"), MOVING)


async def test_times_are_busy_while_so_many_reconciles_wrote_within_a_second() -> None:
    write_activity = WriteActivity(many=3)
    for _ in range(3):
        assert not write_activity.is_high
        write_activity.record()
        await asyncio.sleep(0.25)
    assert write_activity.is_high
    await asyncio.sleep(0.25)
    assert not write_activity.is_high


async def test_a_write_that_failed_does_not_make_the_next_one_wait() -> None:
    limit, graph = StatusRateLimit(), stored(status())
    for _ in range(3):  # each of them failed
        assert 0.0 == limit.wait(graph, status(message="1 of 2"))
    limit.record_write(graph)
    assert 1.0 == limit.wait(graph, status(message="1 of 2"))


async def test_objects_are_forgotten_though_only_conditions_that_flip_are_written() -> None:
    """Such a write never asks whether it has to wait for the one before."""
    limit, wanted = StatusRateLimit(), status("True", "All resources are ready")
    for number in range(100):
        waited(limit, stored(status(), uid=f"u{number}"), wanted)
        await asyncio.sleep(2)
    assert 1 == limit.remembered
