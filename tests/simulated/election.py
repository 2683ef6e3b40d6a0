"""Candidates of one leader election, each with its own clock and network."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kube_runtime.client.client import Client
from kube_runtime.leases import Election, LeadershipLost
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Key
from kube_runtime.wire import path_of
from simulated.clock import now, wall_clock
from simulated.line import Line
from simulated.server import Server

KEY = Key("kube-system", "dynamo.nvidia.com")
LEASES = path_of(Lease.KIND)


class Candidate:
    def __init__(self, server: Server, name: str, *, clock_error_hours: float = 0) -> None:
        self.line = Line(server)
        self.clock_error = timedelta(hours=clock_error_hours)
        self.election = Election(Client(self.line), KEY, identity=name, wall_clock=self.wall_clock)
        self.task = asyncio.create_task(self.election.run())

    def wall_clock(self) -> datetime:
        """The time of day on this process's clock."""
        return wall_clock() + self.clock_error

    @property
    def leads(self) -> bool:
        """Whether it runs and considers itself the leader."""
        return self.election.leads and not self.task.done()

    async def die(self) -> None:
        """End like a killed process, without releasing the Lease."""
        self.task.cancel()
        with suppress(asyncio.CancelledError, LeadershipLost):
            await self.task

    async def stop(self) -> None:
        await self.die()
        await self.election.release()


@dataclass
class World:
    server: Server = field(default_factory=Server)
    candidates: list[Candidate] = field(default_factory=list)

    def candidate(self, name: str, **options: Any) -> Candidate:
        self.candidates.append(Candidate(self.server, name, **options))
        return self.candidates[-1]

    def has_lease(self, **spec: Any) -> None:
        """Create the Lease as another client."""
        metadata = {"namespace": KEY.namespace, "name": KEY.name}
        self.server.storage.create(LEASES, {"metadata": metadata, "spec": spec})

    @property
    def lease(self) -> dict[str, Any]:
        return self.server.storage.read(LEASES, KEY)

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"])


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    """A world without a Lease, whose candidates end with the block."""
    world = World()
    yield world
    for candidate in world.candidates:
        await candidate.die()


async def until_leading(candidate: Candidate) -> float:
    started = now()
    async with asyncio.timeout(100):
        await candidate.election.elected.wait()
    return now() - started


async def leader_and_standby(world: World, **options: Any) -> tuple[Candidate, Candidate]:
    """A leader and a candidate that has just started. The options are the leader's."""
    leader = world.candidate("a", **options)
    await until_leading(leader)
    return leader, world.candidate("b")
