"""The queue, one rule at a time, on a simulated clock. `test_queue_model` has the order of priorities."""

import asyncio

import pytest

from kube_runtime.controller.controller import AHEAD, FAIR_INTERVAL, Priority, WorkQueue
from kube_runtime.times import Backoff
from kube_runtime.types.meta import Key
from simulated.clock import now

pytestmark = pytest.mark.looptime

A, B, C = Key("ns", "a"), Key("ns", "b"), Key("ns", "c")


async def take(queue: WorkQueue) -> Key:
    async with asyncio.timeout(10_000):
        taken = await queue.take()
    assert taken is not None
    return taken[0]


async def is_empty(queue: WorkQueue) -> bool:
    try:
        async with asyncio.timeout(0.001):
            await queue.take()
    except TimeoutError:
        return True
    return False


async def test_a_key_added_twice_comes_out_once() -> None:
    queue = WorkQueue()
    queue.add(A)
    queue.add(A)
    queue.add(A, after_seconds=5)
    assert A == await take(queue)
    queue.done(A)
    await asyncio.sleep(10)
    assert queue.is_settled


async def test_new_keys_come_two_at_a_time_while_the_ones_before_wait_elsewhere() -> None:
    waits_elsewhere = True
    queue = WorkQueue(is_ahead=lambda: waits_elsewhere)
    keys = [Key("ns", f"new-{number}") for number in range(6)]
    for key in keys:
        queue.add(key, priority=Priority.NEW)
    assert keys[:AHEAD] == [await take(queue) for _ in range(AHEAD)]
    assert await is_empty(queue)
    queue.add(A)
    assert A == await take(queue), "changes come as ever"

    waiting = asyncio.ensure_future(take(queue))
    await asyncio.sleep(1)
    queue.done(keys[0])
    assert keys[2] == await waiting

    waits_elsewhere = False
    assert keys[3:] == [await take(queue) for _ in range(3)]


async def test_a_namespace_waits_for_one_key_of_each_other_one() -> None:
    queue = WorkQueue()
    for number in range(1000):
        queue.add(Key("hostile", f"new-{number}"), priority=Priority.NEW)
    for namespace in ("b", "c"):
        queue.add(Key(namespace, "chat"), priority=Priority.NEW)
    assert ["hostile", "b", "c", "hostile"] == [(await take(queue)).namespace for _ in range(4)]


async def test_no_priority_keeps_another_out_for_good() -> None:
    queue = WorkQueue()
    queue.add(A, priority=Priority.BACKLOG)
    await asyncio.sleep(1)
    taken: list[Key] = []
    while A not in taken:
        queue.add(B, priority=Priority.EDIT)
        taken.append(await take(queue))
        queue.done(taken[-1])
    assert FAIR_INTERVAL == len(taken)


async def test_the_backoff_doubles_to_its_limit_and_a_success_resets_it() -> None:
    queue = WorkQueue()
    backoff = Backoff(first_seconds=1, limit_seconds=6)
    for bound in (1, 2, 4, 6, 6):
        queue.add(A)
        await take(queue)
        assert bound / 2 <= queue.failed(A, backoff) <= bound
        queue.done(A)
    queue.succeeded(A)
    assert 0 == queue.failures(A)
    assert queue.failed(A, backoff) <= 1


async def test_a_wait_that_the_server_asks_for_exceeds_the_limit() -> None:
    queue = WorkQueue()
    backoff = Backoff(first_seconds=1, limit_seconds=6)
    assert 90 == queue.failed(A, backoff, at_least_seconds=90)
    start = now()
    assert A == await take(queue)
    assert 90 == now() - start


async def test_a_retry_keeps_the_priority_of_its_key() -> None:
    queue = WorkQueue()
    queue.add(A, priority=Priority.BACKLOG)
    await take(queue)
    queue.failed(A, Backoff(first_seconds=1, limit_seconds=1))
    queue.done(A)
    await asyncio.sleep(2)
    queue.add(B)
    assert [B, A] == [await take(queue) for _ in range(2)]


def test_a_backoff_does_not_overflow() -> None:
    backoff = Backoff(first_seconds=0.1, limit_seconds=300)
    assert 150 <= backoff.seconds(100_000) <= 300


async def test_the_waited_time_of_a_key_starts_when_it_is_due() -> None:
    queue = WorkQueue()
    queue.add(A, priority=Priority.BACKLOG, after_seconds=5)
    await asyncio.sleep(7)
    queue.add(A)
    taken = await queue.take()
    assert taken is not None
    assert 2 == pytest.approx(taken[1])


async def test_closing_wakes_every_worker_with_nothing() -> None:
    queue = WorkQueue()
    workers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    assert [None] * 3 == await asyncio.gather(*workers)


async def test_a_closed_queue_keeps_what_it_has() -> None:
    queue = WorkQueue()
    queue.add(A)
    queue.add(B, after_seconds=1)
    queue.close()
    queue.add(C, after_seconds=1)
    await asyncio.sleep(5)
    assert await queue.take() is None


async def test_a_cancelled_taker_loses_no_key() -> None:
    queue = WorkQueue()
    taker = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add(A)
    taker.cancel()
    await asyncio.gather(taker, return_exceptions=True)
    assert A == await take(queue)
