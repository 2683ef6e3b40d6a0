"""Namespaces of other operators, as a cluster-wide one sees them: a simulated server and clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kube_runtime.cache.informer import Informer
from kube_runtime.client.client import Client
from kube_runtime.leases import Exclusions, NamespaceLease
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Key, Object
from kube_runtime.wire import path_of
from simulated.clock import at, now, on_simulated_clock, wall_clock
from simulated.server import Fault, Server

pytestmark = pytest.mark.looptime

NAME = "scope"
TEAM = Key("team-a", NAME)
LEASES = path_of(Lease.KIND)


@dataclass
class World:
    """A cluster-wide operator that watches markers, and the ends that were reported to it."""

    server: Server = field(default_factory=Server)
    clock_error: float = 0.0
    ended: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = Client(self.server)
        self.informer = Informer(Lease, fields=f"metadata.name={NAME}")
        self.exclusions = Exclusions(
            self.client, self.informer.store, wall_clock=lambda: wall_clock(self.clock_error)
        )
        self.exclusions.on_end = lambda namespace: self.ended.append((now(), namespace))

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self.informer.run(self.client)),
            asyncio.create_task(self.exclusions.run()),
        ]
        await self.informer.synced.wait()
        await asyncio.sleep(0.001)
        try:
            yield
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def has(self, key: Key = TEAM, renewed: str | None = "", seconds: int | None = 30) -> None:
        """Write a marker as another operator, renewed now unless another time is given."""
        time = at(now()) if renewed == "" else renewed
        spec: Object = {"holderIdentity": "v1", "renewTime": time, "leaseDurationSeconds": seconds}
        if key in self.server.storage.objects.get(LEASES, {}):
            self.server.storage.merge(LEASES, key, {"spec": spec})
        else:
            body = {"metadata": {"namespace": key.namespace, "name": key.name}}
            given = {name: value for name, value in spec.items() if value is not None}
            self.server.storage.create(LEASES, {**body, "spec": given})

    @property
    def skipped(self) -> list[str]:
        return sorted(self.exclusions.namespaces)


async def test_a_marked_namespace_is_skipped_from_the_start_and_no_other() -> None:
    world = World()
    world.has()
    async with world.watching():
        assert ["team-a"] == world.skipped
        world.has(Key("team-b", "some-other-lease"))
        await asyncio.sleep(0.1)
        assert "team-a" in world.exclusions.namespaces
        assert "team-b" not in world.exclusions.namespaces


@pytest.mark.parametrize(("end", "seconds"), [("deleted", 5), ("set back", 35), ("not renewed", 30)])
async def test_a_marker_ends_at_once_or_after_its_duration(end: str, seconds: int) -> None:
    world = World()
    async with world.watching():
        world.has()
        await asyncio.sleep(5)
        if end == "deleted":
            world.server.storage.delete(LEASES, TEAM, {})
        else:
            if end == "set back":  # a renewal all the same, by an operator whose clock is
                world.has(renewed="2025-12-31T00:00:00.000000Z")
            await asyncio.sleep(seconds - 5.1)
            assert ["team-a"] == world.skipped
        await asyncio.sleep(1)
        assert [] == world.skipped
        assert [(seconds, "team-a")] == [(round(at), name) for at, name in world.ended]


async def test_a_namespace_lease_is_reported_once_at_its_beginning_and_once_at_its_end() -> None:
    world = World()
    with capture_logs() as logs:
        async with world.watching():
            for _ in range(5):
                world.has()
                await asyncio.sleep(10)
            await asyncio.sleep(50)
    assert [
        ("Excluding namespace from cluster-wide operator processing", "v1"),
        ("Resuming namespace processing in cluster-wide operator", None),
    ] == [(each["event"], each.get("holderIdentity")) for each in logs if "namespace" in each]


async def test_while_markers_are_renewed_nothing_is_asked() -> None:
    world = World()
    async with world.watching():
        world.has()
        world.server.requests.clear()
        for _ in range(20):
            await asyncio.sleep(10)
            world.has()
        assert [] == world.server.requests
        assert ["team-a"] == world.skipped


async def test_a_renewal_that_the_watch_has_not_brought_still_counts() -> None:
    world = World()
    async with world.watching():
        world.has()
        await asyncio.sleep(10)
        world.server.streams[0].is_mute = True
        world.has()
        await asyncio.sleep(25)
        assert ["team-a"] == world.skipped
        await asyncio.sleep(60)
        assert ["team-a"] == [namespace for _, namespace in world.ended]


async def test_a_marker_that_cannot_be_read_is_not_taken_for_one_that_ran_out() -> None:
    world = World()
    async with world.watching():
        world.has()
        await asyncio.sleep(29)
        world.server.faults.append(Fault(500, times=1000))
        await asyncio.sleep(20)
        assert ["team-a"] == world.skipped
        world.server.faults.clear()
        await asyncio.sleep(5)
        assert [] == world.skipped


@pytest.mark.parametrize("error_seconds", [-3600.0, -40.0, 40.0, 3600.0])
async def test_renewals_count_whatever_the_clocks_say(error_seconds: float) -> None:
    world = World(clock_error=error_seconds)
    async with world.watching():
        for _ in range(3):
            world.has()
            await asyncio.sleep(10)
        assert ["team-a"] == world.skipped
        await asyncio.sleep(31)
        assert [] == world.skipped


@pytest.mark.parametrize(
    ("renewed", "seconds"),
    [(at_ := "2025-12-31T23:59:00.000000Z", 30), (None, 30), (at_, None), ("0000-01-01T00:00:00Z", 30)],
)
async def test_an_old_or_incomplete_marker_marks_nothing(renewed: str | None, seconds: int | None) -> None:
    world = World()
    world.has(renewed=renewed, seconds=seconds)
    async with world.watching():
        assert [] == world.skipped


@on_simulated_clock
async def _plays(renewed: str, seconds: int, error: float) -> None:
    world = World(clock_error=error)
    async with world.watching():
        world.has(renewed=renewed, seconds=seconds)
        await asyncio.sleep(1)
        assert {*world.skipped} <= {"team-a"}
        assert "team-b" not in world.exclusions.namespaces
        world.server.storage.delete(LEASES, TEAM, {})
        await asyncio.sleep(1)
        assert [] == world.skipped


@given(
    st.datetimes().map(lambda time: time.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")),
    st.integers(1, 2**31 - 1),
    st.floats(-1e6, 1e6),
)
def test_a_forged_marker_takes_no_namespace_but_its_own_and_ends_nothing(
    renewed: str, seconds: int, error: float
) -> None:
    _plays(renewed, seconds, error)


async def test_a_restricted_operator_and_a_cluster_wide_one_never_own_a_namespace_both() -> None:
    world = World()
    async with world.watching():
        client = Client(world.server)
        marker = NamespaceLease(client, TEAM, holder="v1", replicas="replica.test", wall_clock=wall_clock)
        await marker.claim()
        running = asyncio.create_task(marker.run())
        await asyncio.sleep(0.001)
        for _ in range(100):
            assert "team-a" in world.exclusions.namespaces
            await asyncio.sleep(0.9)
        running.cancel()
        await marker.release()
        await asyncio.sleep(0.1)
        assert [] == world.skipped
