"""A bounded worker returns what a function returns, ends what takes too much, and lets tenants take turns."""

import asyncio
import json
import re
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import DONE, Controller, ControllerOptions, Result
from kube_runtime.controller.workers import (
    Bounds,
    WorkBusy,
    WorkEnded,
    WorkerPool,
    worker_slot_released,
)
from kube_runtime.kind import Key
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Resource
from simulated.clock import on_simulated_clock
from simulated.gadget import Gadget
from simulated.world import a_world

FOREVER = range(10**15)
EVIL = ("(a+)+$", "a" * 40 + "b")


@asynccontextmanager
async def workers(bounds: Bounds | None = None) -> AsyncIterator[WorkerPool]:
    found = WorkerPool(bounds)
    try:
        yield found
    finally:
        await found.close()
        assert found.processes == 0


def test_a_result_and_an_exception_come_back_and_one_process_serves_both() -> None:
    async def scenario() -> None:
        async with workers() as work:
            assert work.processes == 0
            assert 6 == await work.submit(sum, ([1, 2, 3],), tenant="a")
            with pytest.raises(ValueError, match="invalid literal"):
                await work.submit(int, ("x",), tenant="a")
            assert work.processes == 1

    asyncio.run(scenario())


def test_an_exception_says_where_it_was_raised_in_the_process() -> None:
    async def scenario() -> None:
        async with workers() as work:
            with pytest.raises(json.JSONDecodeError) as raised:
                await work.submit(json.loads, ("{",), tenant="a")
            assert "in raw_decode" in "".join(raised.value.__notes__)

    asyncio.run(scenario())


@pytest.mark.parametrize("text", ["return 'what failed'", "raise KeyError"])
def test_an_exception_that_cannot_be_pickled_loses_neither_type_nor_cause(text: str) -> None:
    code = f"""
    class Own(Exception):
        def __str__(self):
            {text}
    raise Own from ValueError('the cause')
    """

    async def scenario() -> None:
        async with workers() as work:
            with pytest.raises(RuntimeError, match="Own") as raised:
                await work.submit(exec, (textwrap.dedent(code),), tenant="a")
            assert "ValueError: the cause" in "".join(raised.value.__notes__)
            assert "return" not in text or "what failed" in str(raised.value)
            assert 3 == await work.submit(len, ("abc",), tenant="a")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("function", "args"),
    [(sum, (FOREVER,)), (re.match, EVIL)],
    ids=["in Python's hands", "in the middle of a search in C"],
)
def test_work_that_takes_too_long_is_ended_and_the_next_one_is_done(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    async def scenario() -> None:
        async with workers() as work:
            with pytest.raises(WorkEnded, match=r"0\.2 s of CPU time") as raised:
                await work.submit(function, args, tenant="a", seconds=0.2)
            assert raised.value.cause == "time"
            assert 3 == await work.submit(len, ("abc",), tenant="a")

    asyncio.run(scenario())


def test_work_that_takes_too_much_memory_is_ended() -> None:
    async def scenario() -> None:
        async with workers() as work:
            with pytest.raises(WorkEnded, match="64 MiB") as raised:
                await work.submit(bytearray, (1 << 30,), tenant="a", memory_bytes=64 << 20)
            assert raised.value.cause == "memory"

    asyncio.run(scenario())


def test_tenants_take_turns_and_one_has_a_bounded_number_of_places() -> None:
    async def scenario() -> None:
        async with workers(Bounds(waiting=4, waiting_of_one=3)) as work:
            done: list[str] = []

            async def job(tenant: str, name: str) -> None:
                await work.submit(len, ("x",), tenant=tenant)
                done.append(name)

            jobs = [asyncio.create_task(job("many", f"many-{each}")) for each in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(WorkBusy):
                await work.submit(len, ("x",), tenant="many")
            jobs.append(asyncio.create_task(job("few", "few")))
            await asyncio.gather(*jobs)
            assert ["many-0", "many-1", "few", "many-2"] == done

    asyncio.run(scenario())


def test_who_has_most_gives_way_when_all_places_are_taken() -> None:
    async def scenario() -> None:
        async with workers(Bounds(waiting=3, waiting_of_one=3)) as work:
            many = [asyncio.create_task(work.submit(len, ("x",), tenant="many")) for _ in range(3)]
            await asyncio.sleep(0)
            assert 1 == await work.submit(len, ("x",), tenant="few")
            results = await asyncio.gather(*many, return_exceptions=True)
            assert [1, 1] == results[:2]
            assert isinstance(results[2], WorkBusy)

    asyncio.run(scenario())


def test_a_call_that_is_cancelled_ends_its_work() -> None:
    async def scenario() -> None:
        async with workers() as work:
            await work.submit(len, ("x",), tenant="a")
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await work.submit(sum, (FOREVER,), tenant="a", seconds=300)
            assert 1 == await work.submit(len, ("x",), tenant="a")
            assert time.monotonic() - began < 60

    asyncio.run(scenario())


def test_a_process_ends_when_there_is_nothing_to_do() -> None:
    async def scenario() -> None:
        async with workers(Bounds(idle_seconds=0.1)) as work:
            await work.submit(len, ("x",), tenant="a")
            deadline = time.monotonic() + 30
            while work.processes and time.monotonic() < deadline:  # noqa: ASYNC110 - nothing says it
                await asyncio.sleep(0.05)
            assert work.processes == 0
            assert 1 == await work.submit(len, ("x",), tenant="a")

    asyncio.run(scenario())


@dataclass
class Waiting:
    """Waits for a bounded worker with `slow`, and notes what it has reconciled."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    done: list[str] = field(default_factory=list)

    reconciles: ClassVar[type[Resource]] = Gadget
    owns: ClassVar[tuple[type[Resource], ...]] = ()

    @property
    def watches(self) -> tuple[Watches, ...]:
        return ()

    async def reconcile(self, key: Key) -> Result:
        if key.name.startswith("slow"):
            with worker_slot_released():
                await self.go_on.wait()
        self.done.append(key.name)
        return DONE


@on_simulated_clock
async def test_who_waits_for_a_bounded_worker_gives_its_place_to_others_meanwhile() -> None:
    world, controller = a_world(), Waiting()
    for name in ("slow-1", "slow-2", "slow-3", "a", "b", "c"):
        world.has(name)
    runner = Controller(
        controller, world.cache, metrics=RuntimeMetrics(), options=ControllerOptions(workers=1)
    )
    async with world.synced():
        runner.subscribe()
        working = asyncio.create_task(runner.run())
        await asyncio.sleep(5)
        assert ["a", "b", "c"] == sorted(controller.done)
        controller.go_on.set()
        await asyncio.sleep(5)
        assert 6 == len(controller.done)
        runner.close()
        await working
