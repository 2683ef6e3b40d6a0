"""The controller: from changes in the cache to reconciles, on a simulated clock.

`test_every_change_is_reconciled` has the changes of the reconciled objects themselves, and
`test_controller_failures` when a failed reconcile is repeated.
"""

import asyncio
from dataclasses import replace as replace_options

import pytest
import structlog
from msgspec.structs import replace
from structlog.testing import capture_logs

from kube_runtime.cache.watch import Broken, Changed, Removed, Started, Synced
from kube_runtime.controller.controller import DONE, ControllerOptions, Result
from kube_runtime.errors import DecodeError
from kube_runtime.types.kinds import Deployment, ServiceAccount
from kube_runtime.types.meta import Key, Metadata, OwnerReference
from simulated.widgets import PACE, A, B, Widget, World, running, widget

pytestmark = pytest.mark.looptime


def edited(key: Key) -> Widget:
    """The widget with another spec, and so another generation."""
    metadata = replace(widget(key).metadata, generation=2, resource_version="9")
    return Widget(metadata)


def named(child: Deployment, name: str) -> Deployment:
    """The child under another name."""
    return replace(child, metadata=replace(child.metadata, name=name, uid=f"uid-{name}"))


def deployment(owner: OwnerReference | None, generation: int = 1) -> Deployment:
    owners = (owner,) if owner else ()
    metadata = Metadata(*("child", "ns", "uid-c", str(generation), generation), owner_references=owners)
    return Deployment(metadata)


def controlled_by(key: Key, *, group: str = "example.com", kind: str = "Widget") -> OwnerReference:
    return OwnerReference(kind, key.name, f"uid-{key.name}", api_version=f"{group}/v1beta9", controller=True)


async def test_a_child_wakes_the_object_that_controls_it_before_and_after_the_change() -> None:
    async with running() as world:
        world.children.on_watch_event(Changed(deployment(controlled_by(A))))
        await asyncio.sleep(1)
        world.children.on_watch_event(Changed(deployment(controlled_by(B), 2)))
        await asyncio.sleep(1)
        world.children.on_watch_event(Removed(Key("ns", "child"), "uid-c"))
        await asyncio.sleep(1)
    assert [A, A, B, B] == world.controller.keys()


async def test_a_kind_that_comes_or_goes_wakes_everything_that_may_need_it() -> None:
    async with running() as world:
        world.list(widget(A), widget(B))
        await asyncio.sleep(1)
        world.controller.runs.clear()
        world.children.on_watch_event(Started())
        world.children.on_watch_event(Synced())
        await asyncio.sleep(1)
        assert [A, B] == sorted(world.controller.keys())
        world.accounts.mark_kind_gone()  # was not there before
        await asyncio.sleep(1)
        assert [A, B] == sorted(world.controller.keys())
        world.children.mark_kind_gone()
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
async def test_a_child_of_others_wakes_no_controller(owner: OwnerReference | None) -> None:
    async with running() as world:
        world.children.on_watch_event(Changed(deployment(owner)))
        await asyncio.sleep(1)
    assert [] == world.controller.keys()


async def test_many_changes_of_a_child_in_a_moment_are_one_reconcile() -> None:
    async with running() as world:
        for number in range(10):
            world.children.on_watch_event(Changed(deployment(controlled_by(A), number)))
            await asyncio.sleep(0.005)
        await asyncio.sleep(1)
    assert [A] == world.controller.keys()


async def test_a_watched_object_wakes_the_keys_that_it_names() -> None:
    async with running() as world:
        labels = {"a": "", "b": ""}
        world.accounts.on_watch_event(Changed(ServiceAccount(Metadata("sa", "ns", labels=labels))))
        await asyncio.sleep(1)
    assert {A, B} == set(world.controller.keys())


async def test_a_change_overtakes_the_first_list() -> None:
    world = World(ControllerOptions(workers=1))
    backlog = [Key("ns", f"old-{number}") for number in range(5)]
    world.list(*map(widget, backlog))
    world.widgets.on_watch_event(Changed(widget(A)))
    async with running(world=world):
        await asyncio.sleep(1)
    assert [A, *backlog] == world.controller.keys()


async def test_an_edit_overtakes_what_children_report() -> None:
    keys = [Key("ns", str(number)) for number in range(5)]
    async with running(ControllerOptions(workers=1, resync_seconds=100_000, coalesce_seconds=0.0)) as world:
        world.list(*map(widget, (*keys, B)))
        await asyncio.sleep(1)
        world.controller.runs.clear()
        for each in keys:
            world.children.on_watch_event(Changed(named(deployment(controlled_by(each)), each.name)))
        world.widgets.on_watch_event(Changed(edited(B)))
        await asyncio.sleep(1)
    assert B in world.controller.keys()[:2], "one was running already"


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

        async def slow() -> Result:
            await asyncio.sleep(10)
            return DONE

        world.controller.script[A] = iter([slow])
        for size in range(5):
            world.widgets.on_watch_event(Changed(widget(A, size)))
            await asyncio.sleep(1)
        await asyncio.sleep(30)
    assert [A, A] == world.controller.keys()
    assert 1 == world.controller.most_active


@pytest.mark.parametrize(
    ("version", "is_ours", "runs"),
    [("1", True, [A]), ("2", True, [A, A]), ("1", False, [A, A])],
    ids=["as created", "changed since", "created by another client"],
)
async def test_a_child_that_the_reconcile_created_wakes_only_when_it_has_changed(
    version: str, is_ours: bool, runs: list[Key]
) -> None:
    async with running() as world:
        child = deployment(controlled_by(A))
        seen = replace(child, metadata=replace(child.metadata, resource_version=version))

        async def creates() -> Result:
            world.children.on_watch_event(Changed(seen))
            return Result(created=(child,) if is_ours else ())

        world.controller.script[A] = iter([creates])
        world.list(widget(A))
        await asyncio.sleep(1)
    assert runs == world.controller.keys()


async def test_the_end_of_an_object_is_the_last_line_of_its_log() -> None:
    async with running() as world:

        async def deleted_meanwhile() -> Result:
            world.widgets.on_watch_event(Removed(A, f"uid-{A.name}"))
            await asyncio.sleep(1)
            structlog.get_logger().info("written")
            return DONE

        world.controller.script[A] = iter([deleted_meanwhile, DONE])
        with capture_logs() as logged:
            world.list(widget(A))
            await asyncio.sleep(5)
    lines = [(each["event"], each.get("key")) for each in logged if each["log_level"] == "info"]
    assert [("written", None), ("deleted", str(A))] == lines
    assert [A, A] == world.controller.keys()


async def test_no_more_reconciles_run_at_once_than_there_are_workers() -> None:
    async with running() as world:

        async def slow() -> Result:
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
        world.controller.script[A] = iter([Result(requeue_after_seconds=30), DONE])
        world.list(widget(A))
        await asyncio.sleep(1000)
    assert [30] == pytest.approx(world.controller.gaps())
    for result in ("requeue", "success"):
        assert 1 == world.sample("reconcile_total", resource_type="Widget", namespace="ns", result=result)


async def test_while_a_status_waits_only_what_hastens_it_wakes_its_object() -> None:
    third = deployment(controlled_by(A), 3)
    async with running(replace_options(PACE, hastens=lambda change: change.new == third)) as world:
        world.controller.script[A] = iter([Result(requeue_after_seconds=30, waits=True)] * 2 + [DONE] * 2)
        world.list(widget(A))
        for generation in (1, 2, 3, 4):
            await asyncio.sleep(1)
            world.children.on_watch_event(Changed(deployment(controlled_by(A), generation)))
        await asyncio.sleep(100)
        assert [3, 30] == pytest.approx(world.controller.gaps(), abs=0.5)


async def test_an_object_that_becomes_unreadable_is_reconciled_and_when_readable_again() -> None:
    async with running() as world:
        world.list(widget(A))
        await asyncio.sleep(1)
        world.widgets.on_watch_event(Broken(DecodeError(Widget.KIND, A, "no")))
        await asyncio.sleep(1)
        world.widgets.on_watch_event(Changed(widget(A)))
        await asyncio.sleep(1)
    assert [A, A, A] == world.controller.keys()


async def test_what_was_counted_for_a_namespace_goes_with_its_last_object() -> None:
    labels = {"resource_type": "Widget", "namespace": "ns", "result": "success"}
    async with running() as world:
        world.list(widget(A), widget(B))
        await asyncio.sleep(1)
        world.widgets.on_watch_event(Removed(A, "uid-a"))
        await asyncio.sleep(1)
        assert 3 == world.sample("reconcile_total", **labels)
        world.widgets.on_watch_event(Removed(B, "uid-b"))
        await asyncio.sleep(1)
        assert 0 == world.sample("reconcile_total", **labels)


async def test_a_runner_that_begins_late_has_the_keys_of_what_exists_only() -> None:
    world = World(PACE, is_subscribed=False)
    world.list(widget(A), widget(B))
    world.widgets.on_watch_event(Removed(A, "uid-a"))
    world.runner.subscribe()
    async with running(world=world):
        await asyncio.sleep(1)
    assert [B] == world.controller.keys()


async def test_a_resync_wakes_every_object_once_per_period_and_not_all_at_once() -> None:
    async with running(ControllerOptions(resync_seconds=600)) as world:
        keys = [Key("ns", str(number)) for number in range(50)]
        world.list(*map(widget, keys))
        await asyncio.sleep(599)
        assert 50 == len(world.controller.runs)
        await asyncio.sleep(601)
        resynced = world.controller.runs[50:]
    assert sorted(keys) == sorted(key for _, key in resynced)
    assert 20 < len({round(at / 10) for at, _ in resynced})  # of 60; about 34 by chance


async def test_closing_lets_running_reconciles_end_and_starts_no_more() -> None:
    ended: list[str] = []

    async def slow() -> Result:
        await asyncio.sleep(5)
        ended.append("slow")
        return DONE

    world = World(ControllerOptions(workers=1))
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
