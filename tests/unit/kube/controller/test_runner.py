"""The runner: from changes in the cache to reconciles, on a simulated clock."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from structlog.typing import EventDict

from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.controller import DONE, Again, Done, Outcome, Pace, Runner, Watches
from dynamo_operator.kube.errors import (
    ApiError,
    Conflict,
    DecodeError,
    Forbidden,
    Invalid,
    NotFound,
    OperatorError,
    Throttled,
    Unreachable,
)
from dynamo_operator.kube.kind import Key, Kind
from dynamo_operator.kube.metrics import RuntimeMetrics
from dynamo_operator.kube.store import Store
from dynamo_operator.kube.types.apps import Deployment
from dynamo_operator.kube.types.core import ServiceAccount
from dynamo_operator.kube.types.meta import Metadata, OwnerReference, Resource
from dynamo_operator.kube.watch import Broken, Changed, Present, Removed, Started, Synced

pytestmark = pytest.mark.looptime


class Widget(Resource):
    KIND = Kind("example.com", "v1", "Widget", "widgets")

    size: int = 0


A, B = Key("ns", "a"), Key("ns", "b")


def widget(key: Key, size: int = 0) -> Widget:
    version = str(size)
    return Widget(Metadata(key.name, key.namespace, f"uid-{key.name}", version), size)


def edited(key: Key) -> Widget:
    """The widget with another spec, as its generation tells."""
    metadata = replace(widget(key).metadata, generation=2, resource_version="9")
    return Widget(metadata)


def named(child: Deployment, name: str) -> Deployment:
    """The child under another name."""
    return replace(child, metadata=replace(child.metadata, name=name, uid=f"uid-{name}"))


def deployment(owner: OwnerReference | None, generation: int = 1) -> Deployment:
    owners = (owner,) if owner else ()
    metadata = Metadata(
        *("child", "ns", "uid-c", str(generation), generation), owner_references=owners
    )
    return Deployment(metadata)


def controlled_by(key: Key, *, group: str = "example.com", kind: str = "Widget") -> OwnerReference:
    return OwnerReference(
        kind, key.name, f"uid-{key.name}", api_version=f"{group}/v1beta9", controller=True
    )


def account_keys(account: ServiceAccount) -> Iterable[Key]:
    return (Key("ns", name) for name in account.metadata.labels)


Script = Callable[[], Awaitable[Outcome]]


@dataclass
class WidgetController:
    """Does what the script of a key says, one entry per reconcile, and nothing after its end."""

    runs: list[tuple[float, Key]] = field(default_factory=list[tuple[float, Key]])
    script: dict[Key, Iterator[Outcome | Exception | Script]] = field(
        default_factory=lambda: defaultdict(lambda: iter(()))
    )
    active: int = 0
    most_active: int = 0

    reconciles: ClassVar[type[Resource]] = Widget
    owns: ClassVar[tuple[type[Resource], ...]] = (Deployment,)
    watches = (Watches(ServiceAccount, account_keys),)

    async def reconcile(self, key: Key) -> Outcome:
        self.runs.append((asyncio.get_running_loop().time(), key))
        self.active += 1
        self.most_active = max(self.active, self.most_active)
        try:
            match next(self.script[key], DONE):
                case Exception() as error:
                    raise error
                case Again() | Done() as outcome:
                    return outcome
                case script:
                    return await script()
        finally:
            self.active -= 1

    def keys(self) -> list[Key]:
        return [key for _, key in self.runs]

    def gaps(self) -> list[float]:
        times = [at for at, _ in self.runs]
        return [later - earlier for earlier, later in pairwise(times)]


class World:
    def __init__(self, pace: Pace, *, is_subscribed: bool = True) -> None:
        self.controller = WidgetController()
        self.widgets, self.children = Store(Widget), Store(Deployment)
        self.accounts = Store(ServiceAccount)
        self.metrics = RuntimeMetrics()
        cache = Cache((self.widgets, self.children, self.accounts))
        self.runner = Runner(self.controller, cache, metrics=self.metrics, pace=pace)
        if is_subscribed:
            self.runner.subscribe()

    def list(self, *widgets: Widget) -> None:
        self.widgets.hear(Started())
        for each in widgets:
            self.widgets.hear(Present(each))
        self.widgets.hear(Synced())

    def sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"dynamo_operator_{name}", labels) or 0.0


PACE = Pace(workers=2, resync_seconds=100_000)


@asynccontextmanager
async def running(pace: Pace = PACE, world: World | None = None) -> AsyncIterator[World]:
    world = world or World(pace)
    run = asyncio.create_task(world.runner.run())
    yield world
    assert not run.done()
    world.runner.close()
    await run


def failing(*errors: Exception) -> World:
    world = World(PACE)
    world.controller.script[A] = iter(errors)
    return world


def api_error(
    type_: type[ApiError], code: int, reason: str, *, retry_after_seconds: float | None = None
) -> ApiError:
    return type_(code, reason, "no", retry_after_seconds=retry_after_seconds)


async def test_a_changed_object_is_reconciled() -> None:
    async with running() as world:
        world.list(widget(A))
        await asyncio.sleep(1)
        world.widgets.hear(Changed(widget(B)))
        world.widgets.hear(Changed(widget(A, 2)))
        await asyncio.sleep(1)
    assert [A, B, A] == world.controller.keys()


async def test_a_removed_object_is_reconciled_once_more() -> None:
    async with running() as world:
        world.list(widget(A))
        await asyncio.sleep(1)
        world.widgets.hear(Removed(A, "uid-a"))
        await asyncio.sleep(1)
    assert [A, A] == world.controller.keys()


async def test_a_child_wakes_the_object_that_controls_it_before_and_after_the_change() -> None:
    async with running() as world:
        world.children.hear(Changed(deployment(controlled_by(A))))
        await asyncio.sleep(1)
        world.children.hear(Changed(deployment(controlled_by(B), 2)))
        await asyncio.sleep(1)
        world.children.hear(Removed(Key("ns", "child"), "uid-c"))
        await asyncio.sleep(1)
    assert [A, A, B, B] == world.controller.keys()


async def test_a_kind_that_comes_or_goes_wakes_everything_that_may_need_it() -> None:
    async with running() as world:
        world.list(widget(A), widget(B))
        await asyncio.sleep(1)
        world.controller.runs.clear()
        world.children.hear(Started())
        world.children.hear(Synced())
        await asyncio.sleep(1)
        assert [A, B] == sorted(world.controller.keys())
        world.accounts.hear_that_kind_is_gone()  # was not there before
        await asyncio.sleep(1)
        assert [A, B] == sorted(world.controller.keys())
        world.children.hear_that_kind_is_gone()
        await asyncio.sleep(1)
    assert [A, A, B, B] == sorted(world.controller.keys())


@pytest.mark.parametrize(
    "owner",
    [
        None,
        controlled_by(A, group="other.example.com"),
        controlled_by(A, kind="Gadget"),
        OwnerReference("Widget", "a", "uid-a", api_version="example.com/v1"),
    ],
    ids=["nobody", "another group", "another kind", "an owner that does not control"],
)
async def test_a_child_of_others_wakes_nobody(owner: OwnerReference | None) -> None:
    async with running() as world:
        world.children.hear(Changed(deployment(owner)))
        await asyncio.sleep(1)
    assert [] == world.controller.keys()


async def test_many_changes_of_a_child_in_a_moment_are_one_reconcile() -> None:
    async with running() as world:
        for number in range(10):
            world.children.hear(Changed(deployment(controlled_by(A), number)))
            await asyncio.sleep(0.005)
        await asyncio.sleep(1)
    assert [A] == world.controller.keys()


async def test_a_watched_object_wakes_the_keys_that_it_names() -> None:
    async with running() as world:
        labels = {"a": "", "b": ""}
        world.accounts.hear(Changed(ServiceAccount(Metadata("sa", "ns", labels=labels))))
        await asyncio.sleep(1)
    assert {A, B} == set(world.controller.keys())


async def test_a_change_overtakes_the_first_list() -> None:
    world = World(Pace(workers=1))
    backlog = [Key("ns", f"old-{number}") for number in range(5)]
    world.list(*map(widget, backlog))
    world.widgets.hear(Changed(widget(A)))
    async with running(world=world):
        await asyncio.sleep(1)
    assert [A, *backlog] == world.controller.keys()


async def test_an_edit_overtakes_what_children_report() -> None:
    keys = [Key("ns", str(number)) for number in range(5)]
    async with running(Pace(workers=1, resync_seconds=100_000, coalesce_seconds=0.0)) as world:
        world.list(*map(widget, (*keys, B)))
        await asyncio.sleep(1)
        world.controller.runs.clear()
        for each in keys:
            world.children.hear(Changed(named(deployment(controlled_by(each)), each.name)))
        world.widgets.hear(Changed(edited(B)))
        await asyncio.sleep(1)
    assert B in world.controller.keys()[:2], "one was under way already"


async def test_many_settled_objects_in_a_row_let_others_have_their_turn() -> None:
    async with running() as world:
        world.list(*(widget(Key("ns", str(number))) for number in range(1000)))
        turns = 0
        while len(world.controller.runs) < 1000:
            await asyncio.sleep(0)
            turns += 1
    assert turns >= 1000 / PACE.workers


async def test_a_change_during_a_reconcile_runs_it_once_more_and_never_twice_at_once() -> None:
    async with running() as world:

        async def slow() -> Outcome:
            await asyncio.sleep(10)
            return DONE

        world.controller.script[A] = iter([slow])
        for size in range(5):
            world.widgets.hear(Changed(widget(A, size)))
            await asyncio.sleep(1)
        await asyncio.sleep(30)
    assert [A, A] == world.controller.keys()
    assert 1 == world.controller.most_active


async def test_no_more_reconciles_run_at_once_than_there_are_workers() -> None:
    async with running() as world:

        async def slow() -> Outcome:
            await asyncio.sleep(1)
            return DONE

        keys = [Key("ns", str(number)) for number in range(9)]
        for key in keys:
            world.controller.script[key] = iter([slow])
        world.list(*map(widget, keys))
        await asyncio.sleep(30)
    assert 2 == world.controller.most_active
    assert 9 == len(world.controller.runs)


async def test_again_looks_again_after_its_time() -> None:
    async with running() as world:
        world.controller.script[A] = iter([Again(after_seconds=30), DONE])
        world.list(widget(A))
        await asyncio.sleep(1000)
    assert [30] == pytest.approx(world.controller.gaps())
    labels = {"resource_type": "Widget", "namespace": "ns"}
    assert 1 == world.sample("reconcile_total", **labels, result="requeue")
    assert 1 == world.sample("reconcile_total", **labels, result="success")


async def test_a_bug_is_logged_with_traceback_and_key_and_the_worker_lives_on() -> None:
    world = failing(ZeroDivisionError("a bug"))
    with capture_logs() as logs:
        async with running(world=world):
            world.list(widget(A), widget(B))
            await asyncio.sleep(10)
    assert [A, B, A] == world.controller.keys()
    (entry,) = logs
    assert "error" == entry["log_level"]
    assert isinstance(entry["exc_info"], ZeroDivisionError)
    labels = {"resource_type": "Widget", "namespace": "ns"}
    assert 1 == world.sample("reconcile_errors_total", **labels, error_type="internal")
    assert 1 == world.sample("reconcile_total", **labels, result="error")


async def test_a_conflict_is_tried_again_at_once_and_quietly() -> None:
    world = failing(*[api_error(Conflict, 409, "Conflict")] * 2)
    logs = await logs_of(world)
    assert all(gap <= 0.1 for gap in world.controller.gaps())
    assert ["debug", "debug"] == [entry["log_level"] for entry in logs]


async def test_a_conflict_that_stays_is_said_aloud() -> None:
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
        world.widgets.hear(Changed(widget(A, 2)))
        await asyncio.sleep(1)
        assert 2 == len(world.controller.runs)
        await asyncio.sleep(3600)
    assert 60 <= world.controller.gaps()[-1] <= 600


async def test_an_object_that_is_gone_before_its_status_is_written_is_no_failure() -> None:
    details = {"name": A.name, "kind": "widgets"}
    world = failing(NotFound(404, "NotFound", "not found", Widget.KIND, A, details))
    logs = await logs_of(world)
    assert [] == logs
    assert [A] == world.controller.keys()


async def test_something_else_that_is_gone_is_a_failure() -> None:
    details = {"name": B.name, "kind": "widgets"}
    world = failing(NotFound(404, "NotFound", "not found", Widget.KIND, B, details))
    await logs_of(world)
    assert [A, A] == world.controller.keys()


async def test_an_object_that_is_nested_too_deeply_fails_alone_and_in_one_line() -> None:
    world = failing(RecursionError("maximum recursion depth exceeded"))
    (entry,) = await logs_of(world)
    assert ("warning", None) == (entry["log_level"], entry["exc_info"])


async def test_an_object_that_becomes_unreadable_is_reconciled_and_when_readable_again() -> None:
    async with running() as world:
        world.list(widget(A))
        await asyncio.sleep(1)
        world.widgets.hear(Broken(DecodeError(Widget.KIND, A, "no")))
        await asyncio.sleep(1)
        world.widgets.hear(Changed(widget(A)))
        await asyncio.sleep(1)
    assert [A, A, A] == world.controller.keys()


async def test_what_was_counted_for_a_namespace_goes_with_its_last_object() -> None:
    labels = {"resource_type": "Widget", "namespace": "ns", "result": "success"}
    async with running() as world:
        world.list(widget(A), widget(B))
        await asyncio.sleep(1)
        world.widgets.hear(Removed(A, "uid-a"))
        await asyncio.sleep(1)
        assert 3 == world.sample("reconcile_total", **labels)
        world.widgets.hear(Removed(B, "uid-b"))
        await asyncio.sleep(1)
        assert 0 == world.sample("reconcile_total", **labels)


async def test_a_runner_that_begins_late_has_the_keys_of_what_exists_only() -> None:
    world = World(PACE, is_subscribed=False)
    world.list(widget(A), widget(B))
    world.widgets.hear(Removed(A, "uid-a"))
    world.runner.subscribe()
    async with running(world=world):
        await asyncio.sleep(1)
    assert [B] == world.controller.keys()


async def test_a_reconcile_that_hangs_is_cut_and_counted() -> None:
    async def hang() -> Outcome:
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
    async def stubborn() -> Outcome:
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
    async def cancelled() -> Outcome:
        task = asyncio.create_task(asyncio.sleep(100))
        task.cancel()
        await task
        return DONE

    async with running(Pace(workers=1)) as world:
        world.controller.script[A] = iter([cancelled])
        world.list(widget(A))
        await asyncio.sleep(10)
    assert [A, A] == world.controller.keys()


async def test_a_resync_wakes_every_object_once_per_period_and_not_all_at_once() -> None:
    async with running(Pace(resync_seconds=600)) as world:
        keys = [Key("ns", str(number)) for number in range(50)]
        world.list(*map(widget, keys))
        await asyncio.sleep(599)
        assert 50 == len(world.controller.runs)
        await asyncio.sleep(601)
        resynced = world.controller.runs[50:]
    assert sorted(keys) == sorted(key for _, key in resynced)
    assert 30 < len({round(at / 10) for at, _ in resynced})


async def test_closing_lets_running_reconciles_end_and_starts_no_more() -> None:
    ended: list[str] = []

    async def slow() -> Outcome:
        await asyncio.sleep(5)
        ended.append("slow")
        return DONE

    world = World(Pace(workers=1))
    world.controller.script[A] = iter([slow])
    world.list(widget(A), widget(B))
    async with running(world=world):
        await asyncio.sleep(1)
    assert ["slow"] == ended
    assert [A] == world.controller.keys()


async def test_the_depth_of_the_queue_is_there_to_be_scraped() -> None:
    world = World(PACE)
    world.list(widget(A), widget(B))
    assert 2 == world.sample("queue_depth", resource_type="Widget")


async def logs_of(world: World) -> list[EventDict]:
    with capture_logs() as logs:
        async with running(world=world):
            world.list(widget(A))
            await asyncio.sleep(100)
    return [entry for entry in logs if entry["event"] == "reconcile failed"]
