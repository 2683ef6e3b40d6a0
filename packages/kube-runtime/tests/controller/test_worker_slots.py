"""A reconcile that waits for expensive work blocks no other one."""

import asyncio
from dataclasses import dataclass, field
from typing import ClassVar

from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import DONE, Controller, ControllerOptions, Result
from kube_runtime.controller.workers import worker_slot_released
from kube_runtime.kind import Key
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Resource
from simulated.clock import on_simulated_clock
from simulated.gadget import Gadget
from simulated.world import a_world


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
