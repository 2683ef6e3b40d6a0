"""The marker of a namespace: kept while a replica lives, given back at its end, on a simulated clock."""

import asyncio
from contextlib import suppress
from functools import partial

import pytest
from structlog.testing import capture_logs

from kube_runtime.client.client import Client
from kube_runtime.errors import Forbidden
from kube_runtime.leases import MarkerTerms, NamespaceLease
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Key, Object
from kube_runtime.wire import path_of
from simulated.clock import at, now, wall_clock
from simulated.line import Line
from simulated.server import Fault, Server

pytestmark = pytest.mark.looptime

KEY = Key("team-a", "scope")
LEASES = path_of(Lease.KIND)


class Replica:
    """One process of a restricted operator."""

    def __init__(self, server: Server, clock_error: float = 0.0) -> None:
        self.line = Line(server)
        clock, client = partial(wall_clock, clock_error), Client(self.line)
        self.marker = NamespaceLease(client, KEY, holder="v1", replicas="replica.test", wall_clock=clock)

    async def start(self) -> "Replica":
        await self.marker.claim()
        self.task = asyncio.create_task(self.marker.run())
        return self

    async def die(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def stop(self) -> None:
        await self.die()
        await self.marker.release()


def lease(server: Server) -> Object | None:
    return server.storage.objects.get(LEASES, {}).get(KEY)


def spec(server: Server) -> Object:
    found = lease(server)
    assert found is not None
    result: Object = found["spec"]
    return result


async def test_a_marked_namespace_counts_as_marked_from_the_first_write_on() -> None:
    server = Server()
    await Replica(server).start()
    assert spec(server) == {
        "holderIdentity": "v1",
        "leaseDurationSeconds": 30,
        "acquireTime": at(0),
        "renewTime": at(0),
    }


async def test_a_marker_is_renewed_every_ten_seconds_with_one_request() -> None:
    server = Server()
    await Replica(server).start()
    server.requests.clear()
    await asyncio.sleep(35)
    assert (at(0), at(30)) == (spec(server)["acquireTime"], spec(server)["renewTime"])
    assert ["PATCH"] * 3 == [each.method for each in server.requests]


async def test_a_deleted_namespace_lease_is_recreated_at_the_next_renewal() -> None:
    server = Server()
    await Replica(server).start()
    server.storage.delete(LEASES, KEY, {})
    await asyncio.sleep(11)
    assert at(10) == spec(server)["renewTime"]


async def test_only_the_last_replica_takes_the_marker_away() -> None:
    server = Server()
    first, second = await Replica(server).start(), await Replica(server, clock_error=-60.0).start()
    await asyncio.sleep(45)
    await first.stop()
    assert lease(server) is not None
    await second.stop()
    assert lease(server) is None


async def test_of_replicas_that_stop_at_once_one_takes_the_marker_away() -> None:
    server = Server()
    replicas = [await Replica(server).start() for _ in range(3)]
    await asyncio.gather(*(each.stop() for each in replicas))
    assert lease(server) is None


async def test_a_killed_replica_does_not_keep_the_marker_for_ever() -> None:
    server = Server()
    first, second = await Replica(server).start(), await Replica(server).start()
    await first.die()
    await asyncio.sleep(31)
    await second.stop()
    assert lease(server) is None


async def test_the_traces_of_killed_replicas_are_cleaned_up() -> None:
    server = Server()
    first, _ = await Replica(server).start(), await Replica(server).start()
    await first.die()
    await asyncio.sleep(55)
    found = lease(server)
    assert found is not None
    assert 1 == len(found["metadata"]["annotations"])


async def test_a_marker_that_a_newer_version_holds_is_left_to_it() -> None:
    server = Server()
    old = await Replica(server).start()
    server.storage.merge(LEASES, KEY, {"spec": {"holderIdentity": "another operator"}})
    await old.stop()
    assert "another operator" == spec(server)["holderIdentity"]


async def test_who_cannot_mark_the_namespace_does_not_start() -> None:
    server = Server()
    server.faults.append(Fault(403))
    with pytest.raises(Forbidden):
        await Replica(server).start()


@pytest.mark.parametrize("hangs", [False, True])
async def test_who_cannot_renew_writes_nothing_until_the_lease_is_held_again(hangs: bool) -> None:
    server = Server()
    replica = await Replica(server).start()
    regained: list[str] = []
    replica.marker.on_regained = regained.append
    replica.line.is_cut, replica.line.hangs = True, hangs
    with capture_logs() as logs:
        await asyncio.sleep(24)
        assert replica.marker.holds_lease()
        await asyncio.sleep(1.1)
        assert not replica.marker.holds_lease(), "before the Lease has run out"
        await asyncio.sleep(900)
        assert not replica.marker.holds_lease()
        assert not replica.task.done()
        assert [] == regained
        replica.line.is_cut = replica.line.hangs = False
        await asyncio.sleep(11)
    assert replica.marker.holds_lease()
    assert ["team-a"] == regained
    told = [each["event"] for each in logs]
    assert 1 == sum("nothing is written until" in each for each in told)
    assert 1 == told.count("namespace counts as ours again")


async def test_one_attempt_for_each_interval_is_all_that_an_outage_costs() -> None:
    server = Server()
    await Replica(server).start()
    server.faults.append(Fault(403, times=10**6))
    before = len(server.requests)
    await asyncio.sleep(900)
    assert len(server.requests) - before <= 90


async def test_a_release_that_fails_is_borne() -> None:
    replica = await Replica(Server()).start()
    replica.line.hangs = True
    await replica.stop()
    assert now() == MarkerTerms().release_seconds


@pytest.mark.parametrize(
    ("lease_seconds", "renew_seconds", "write_seconds"),
    [(30, 10, 25), (30, 29, 29.5), (60, 10, 55), (25, 10, 20)],
)
def test_the_time_to_write_leaves_some_of_the_lease(
    lease_seconds: float, renew_seconds: float, write_seconds: float
) -> None:
    assert write_seconds == MarkerTerms(lease_seconds, renew_seconds).write_seconds


@pytest.mark.parametrize(
    ("lease_seconds", "renew_seconds", "message"),
    [
        (0, 10, "lease duration must be greater than zero, got 0s"),
        (30, 0, "renew interval must be greater than zero, got 0s"),
        (10, 10, "renew interval (10s) must be less than lease duration (10s)"),
    ],
)
def test_terms_that_mark_nothing_are_refused(
    lease_seconds: float, renew_seconds: float, message: str
) -> None:
    with pytest.raises(ValueError, match="must be") as refused:
        MarkerTerms(lease_seconds, renew_seconds)
    assert message == str(refused.value)
