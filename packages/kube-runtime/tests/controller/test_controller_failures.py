"""Reconciles that fail, hang or are cancelled: their cost and their logs, on a simulated clock."""

import asyncio

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from kube_runtime.cache.watch import Changed
from kube_runtime.controller.controller import DONE, ControllerOptions, Result
from kube_runtime.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NoAnswer,
    NotFound,
    OperatorError,
    ServerFailure,
    Throttled,
    Unreachable,
)
from kube_runtime.types.meta import Key
from simulated.widgets import PACE, A, B, Widget, World, running, widget

pytestmark = pytest.mark.looptime


def failing(*errors: Exception) -> World:
    world = World(PACE)
    world.controller.script[A] = iter(errors)
    return world


def api_error(
    type_: type[ApiError], code: int, reason: str, *, retry_after_seconds: float | None = None
) -> ApiError:
    return type_(code, reason, "no", retry_after_seconds=retry_after_seconds)


async def logs_of(world: World) -> list[EventDict]:
    with capture_logs() as logs:
        async with running(world=world):
            world.list(widget(A))
            await asyncio.sleep(100)
    return [entry for entry in logs if entry["event"] == "reconcile failed"]


async def test_a_bug_is_logged_with_traceback_and_key_and_the_worker_lives_on() -> None:
    world = failing(ZeroDivisionError("a bug"))
    with capture_logs() as logs:
        async with running(world=world):
            world.list(widget(A), widget(B))
            await asyncio.sleep(10)
    assert [A, B, A] == world.controller.keys()
    (entry,) = (each for each in logs if each["log_level"] == "error")
    assert "error" == entry["log_level"]
    assert isinstance(entry["exc_info"], ZeroDivisionError)
    labels = {"resource_type": "Widget", "namespace": "ns"}
    assert 1 == world.sample("reconcile_errors_total", **labels, error_type="internal")
    assert 1 == world.sample("reconcile_total", **labels, result="error")


async def test_a_conflict_is_retried_at_once_and_not_logged() -> None:
    world = failing(*[api_error(Conflict, 409, "Conflict")] * 2)
    logs = await logs_of(world)
    assert all(gap <= 0.1 for gap in world.controller.gaps())
    assert ["debug", "debug"] == [entry["log_level"] for entry in logs]


async def test_a_lasting_conflict_is_logged() -> None:
    world = failing(*[api_error(Conflict, 409, "AlreadyExists")] * 7)
    logs = await logs_of(world)
    assert "warning" == logs[-1]["log_level"]


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("refused"),
        api_error(NotFound, 404, "NotFound"),
        NotFound(404, "NotFound", "no such kind", Widget.KIND, A),
        OperatorError("other"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_outage_backs_off_with_one_line(error: Exception) -> None:
    world = failing(*[error] * 3)
    logs = await logs_of(world)
    assert [entry["log_level"] for entry in logs] == ["warning"] * 3
    assert not any(entry["exc_info"] for entry in logs)
    gaps = world.controller.gaps()
    assert 0.05 <= gaps[0] <= 0.1
    assert 0.2 <= gaps[2] <= 0.4


@pytest.mark.parametrize(
    "error",
    [NoAnswer("no answer within 30 s", 30), api_error(ServerFailure, 504, "Timeout")],
    ids=lambda error: type(error).__name__,
)
async def test_a_request_without_an_answer_is_not_repeated_at_once(error: Exception) -> None:
    world = failing(*[error] * 2)
    await logs_of(world)
    assert all(gap >= 30 for gap in world.controller.gaps())


async def test_what_the_server_asks_for_is_waited_for() -> None:
    world = failing(api_error(Throttled, 429, "TooManyRequests", retry_after_seconds=17))
    await logs_of(world)
    assert [17] == pytest.approx(world.controller.gaps())


@pytest.mark.parametrize(
    "error",
    [api_error(Invalid, 422, "Invalid"), api_error(Forbidden, 403, "Forbidden")],
    ids=lambda error: type(error).__name__,
)
async def test_a_refusal_is_retried_in_minutes_but_a_change_at_once(error: Exception) -> None:
    world = failing(*[error] * 4)
    async with running(world=world):
        world.list(widget(A))
        await asyncio.sleep(29)
        assert 1 == len(world.controller.runs)
        world.widgets.on_watch_event(Changed(widget(A, 2)))
        await asyncio.sleep(1)
        assert 2 == len(world.controller.runs)
        await asyncio.sleep(3600)
    assert 60 <= world.controller.gaps()[-1] <= 600


@pytest.mark.parametrize(("gone", "runs"), [(A, [A]), (B, [A, A])])
async def test_only_an_object_that_is_gone_before_its_own_status_is_written_is_no_failure(
    gone: Key, runs: list[Key]
) -> None:
    details = {"name": gone.name, "kind": "widgets"}
    world = failing(NotFound(404, "NotFound", "not found", Widget.KIND, gone, details))
    assert len(runs) - 1 == len(await logs_of(world))
    assert runs == world.controller.keys()


async def test_an_object_that_is_nested_too_deeply_fails_alone_and_in_one_line() -> None:
    world = failing(RecursionError("maximum recursion depth exceeded"))
    (entry,) = await logs_of(world)
    assert ("warning", None) == (entry["log_level"], entry["exc_info"])


async def test_a_reconcile_that_hangs_is_cut_and_counted() -> None:
    async def hang() -> Result:
        await asyncio.Event().wait()
        return DONE

    async with running() as world:
        world.controller.script[A] = iter([hang])
        world.list(widget(A))
        await asyncio.sleep(130)
        assert [] == world.runner.stuck()
    assert 2 == len(world.controller.runs)
    labels = {"resource_type": "Widget", "namespace": "ns"}
    assert 1 == world.sample("reconcile_errors_total", **labels, error_type="timeout")


async def test_a_reconcile_that_will_not_end_is_reported_as_stuck() -> None:
    async def stubborn() -> Result:
        for _ in range(10):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                continue
        return DONE

    async with running() as world:
        world.controller.script[A] = iter([stubborn])
        world.list(widget(A))
        await asyncio.sleep(160)
        assert [A] == world.runner.stuck()


async def test_a_cancellation_inside_a_reconcile_does_not_end_its_worker() -> None:
    async def cancelled() -> Result:
        task = asyncio.create_task(asyncio.sleep(100))
        task.cancel()
        await task
        return DONE

    async with running(ControllerOptions(workers=1)) as world:
        world.controller.script[A] = iter([cancelled])
        world.list(widget(A))
        await asyncio.sleep(10)
    assert [A, A] == world.controller.keys()
