"""A token bucket allows a burst, and refills with time up to that burst."""

import asyncio
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.server import ClientShares, ShareExhausted, client_of
from kube_runtime.times import FairSemaphore, TokenBucket
from simulated.clock import on_simulated_clock


def test_a_burst_then_one_each_time_that_a_token_is_back() -> None:
    bucket = TokenBucket(2, at=0)
    assert [True, True, False] == [bucket.take(2, 10, 0) for _ in range(3)]
    assert [False, True, False] == [bucket.take(2, 10, now) for now in (9, 10, 11)]


@given(st.lists(st.floats(min_value=0, max_value=100), max_size=60))
def test_never_more_than_the_burst_and_what_came_back(waits: list[float]) -> None:
    bucket, now, taken = TokenBucket(5, at=0), 0.0, 0
    for wait in waits:
        now += wait
        taken += bucket.take(5, 10, now)
        assert taken <= 5 + now / 10 + 1e-6


def greedy(shares: ClientShares, stack: ExitStack, client: str, amount: int = 1) -> int:
    """How often a client can take that amount until it is refused."""
    for taken in range(10_000):
        try:
            stack.enter_context(shares.taken(client, amount))
        except ShareExhausted:
            return taken
    raise AssertionError("never refused")


def test_one_greedy_client_leaves_half_and_two_a_third() -> None:
    shares = ClientShares(120)
    with ExitStack() as stack:
        assert 60 == greedy(shares, stack, "a")
        assert 30 == greedy(shares, stack, "b")
        assert 15 == greedy(shares, stack, "c")
    assert 120 == shares.left


def test_a_client_that_comes_next_always_finds_something() -> None:
    shares = ClientShares(256)
    with ExitStack() as stack:
        for number in range(7):
            greedy(shares, stack, f"client {number}")
        assert 0 < greedy(shares, stack, "API server")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), max_size=60))
def test_what_was_taken_is_given_back(takes: list[tuple[str, int]]) -> None:
    shares = ClientShares(100)
    with ExitStack() as stack:
        for client, amount in takes:
            try:
                stack.enter_context(shares.taken(client, amount))
            except ShareExhausted:
                assert amount
            assert 0 <= shares.left <= 100
    assert 100 == shares.left


@on_simulated_clock
async def test_clients_take_turns() -> None:
    turns, order = FairSemaphore(1), list[str]()

    async def work(client: str) -> None:
        async with turns.slot(client):
            order.append(client)
            await asyncio.sleep(1)

    async with asyncio.TaskGroup() as group:
        for client in (*["stranger"] * 5, *["loud"] * 2, "calm"):
            group.create_task(work(client))
    assert ["stranger", "stranger", "loud", "calm", "stranger"] == order[:5]
    assert 0 == turns.waiting


@on_simulated_clock
async def test_a_cancelled_waiter_leaks_no_slot() -> None:
    turns = FairSemaphore(2)

    async def work(seconds: float, patience: float) -> None:
        try:
            async with asyncio.timeout(patience), turns.slot(f"{patience}"):
                await asyncio.sleep(seconds)
        except TimeoutError:
            return

    async with asyncio.TaskGroup() as group:
        for number in range(60):
            group.create_task(work(1 + number % 3, 1 + number % 7))
    assert 0 == turns.waiting
    async with asyncio.timeout(1), turns.slot("a"), turns.slot("b"):
        assert 0 == turns.waiting


@on_simulated_clock
async def test_who_is_cancelled_just_when_its_turn_comes_gives_it_on() -> None:
    turns = FairSemaphore(1)

    async def hold() -> None:
        async with turns.slot("a"):
            await asyncio.sleep(1)

    async def hold_and_cancel() -> None:
        await hold()
        second.cancel()

    tasks = [asyncio.create_task(work()) for work in (hold_and_cancel, hold, hold)]
    _, second, third = tasks
    await asyncio.wait(tasks, timeout=10)
    assert (True, True) == (second.cancelled(), third.done())


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:0:1::7", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:8:8:8:8", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_client_is_an_address_or_its_prefix(address: str | None, client: str) -> None:
    assert client == client_of(address)
