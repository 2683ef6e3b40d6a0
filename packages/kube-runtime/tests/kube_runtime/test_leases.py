"""Leader election: candidates with bad clocks and bad networks, on a simulated clock."""

import asyncio

import pytest
from structlog.testing import capture_logs

from kube_runtime.client.client import Client
from kube_runtime.leases import Election, LeadershipLost, Terms, identity
from simulated.clock import now
from simulated.election import KEY, LEASES, a_world, leader_and_standby, until_leading
from simulated.server import Fault, Server

pytestmark = pytest.mark.looptime

RETRY_SECONDS = 2 * 1.2 + 0.1
"""The longest time between two attempts of a candidate: its period, the jitter, and the request itself."""


async def test_a_lease_that_does_not_exist_is_made_and_renewed_with_one_request_every_two_seconds() -> None:
    async with a_world() as world:
        candidate = world.candidate("a")
        assert 0 == await until_leading(candidate)
        assert {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        } == world.lease["spec"]
        world.server.requests.clear()
        await asyncio.sleep(60)
        assert 30 == pytest.approx(len(world.server.requests), abs=1)
        assert {"PATCH"} == {each.method for each in world.server.requests}


async def test_a_leader_may_write_until_another_may_lead() -> None:
    async with a_world() as world:
        election = world.candidate("a").election
        assert election.holds_lease(), "no candidate has been elected"
        await until_leading(world.candidates[0])
        await asyncio.sleep(60)
        assert election.holds_lease()
        world.server.faults.append(Fault(0, times=10**6))
        await asyncio.sleep(15)
        assert not election.holds_lease()


async def test_a_leader_counts_from_when_it_sent_a_renewal_not_from_its_late_answer() -> None:
    async with a_world() as world:
        election = world.candidate("a").election
        await until_leading(world.candidates[0])
        world.server.answer_seconds = 4.0
        await asyncio.sleep(7)  # the renewal that was sent after 2 s was answered after 6 s
        world.server.faults.append(Fault(0, times=10**6))
        await asyncio.sleep(4.5)
        assert election.holds_lease()
        await asyncio.sleep(1)
        assert not election.holds_lease()


async def test_after_a_clean_stop_the_next_takes_over_at_its_next_look() -> None:
    async with a_world() as world:
        first, second = await leader_and_standby(world)
        await asyncio.sleep(60)
        await first.stop()
        spec = world.lease["spec"]
        assert ("", 1) == (spec["holderIdentity"], spec["leaseDurationSeconds"])
        assert await until_leading(second) <= RETRY_SECONDS


@pytest.mark.parametrize("hours", [-1000, 0, 1, 1000])
async def test_after_a_death_the_next_waits_until_the_lease_ends_on_its_own_clock(hours: float) -> None:
    async with a_world() as world:
        first, second = await leader_and_standby(world, clock_error_hours=hours)
        for _ in range(10):
            await asyncio.sleep(10)
            first.clock_error = -first.clock_error
            assert (True, False) == (first.leads, second.leads)
        await first.die()
        # It saw the last renewal at its next look, so its 15 s began up to one look after the death.
        assert 12 <= await until_leading(second) <= 15 + 2 * RETRY_SECONDS
        assert ("b", 1) == (world.holder, world.lease["spec"]["leaseTransitions"])


async def test_a_lease_of_a_dead_process_is_waited_for_from_when_it_is_first_seen() -> None:
    async with a_world() as world:
        world.has_lease(
            holderIdentity="gone", leaseDurationSeconds=40, renewTime="2001-01-01T00:00:00.000000Z"
        )
        assert 40 <= await until_leading(world.candidate("a")) <= 40 + RETRY_SECONDS


async def test_a_leader_without_a_network_gives_up_before_another_takes_over() -> None:
    async with a_world() as world:
        first, second = await leader_and_standby(world)
        await asyncio.sleep(30)
        first.line.is_cut = True
        started = now()
        with pytest.raises(LeadershipLost, match="not renewed for 10 s"):
            await first.task
        assert 8 <= now() - started <= 10
        assert not second.leads
        assert await until_leading(second) >= 4


async def test_a_short_outage_is_borne() -> None:
    async with a_world() as world:
        leader = world.candidate("a")
        await until_leading(leader)
        with capture_logs() as logs:
            leader.line.is_cut = True
            await asyncio.sleep(7)
            leader.line.is_cut = False
            await asyncio.sleep(30)
        assert leader.leads
        assert {"lease not renewed"} == {entry["event"] for entry in logs}


async def test_the_deletion_of_a_lease_that_a_candidate_has_seen_makes_no_second_leader() -> None:
    async with a_world() as world:
        first, second = await leader_and_standby(world)
        await asyncio.sleep(5)
        first.line.is_cut = True
        world.server.storage.delete(LEASES, KEY, {})
        for _ in range(30):
            await asyncio.sleep(1)
            assert not (first.leads and second.leads)
        assert second.leads


@pytest.mark.parametrize("event", ["an answer is lost", "it is deleted", "others write on it"])
async def test_a_changed_or_deleted_lease_does_not_end_leadership(event: str) -> None:
    async with a_world() as world:
        leader = world.candidate("a")
        await until_leading(leader)
        label = {"labels": {"team": "x"}}
        if event == "an answer is lost":
            world.server.faults.append(Fault(0, method="PATCH", after=True))
        elif event == "it is deleted":
            world.server.storage.delete(LEASES, KEY, {})
        else:
            world.server.storage.merge(LEASES, KEY, {"metadata": label})
        await asyncio.sleep(30)
        assert (True, "a") == (leader.leads, world.holder)
        assert (event == "others write on it") == ("labels" in world.lease["metadata"])


async def test_an_election_whose_answer_is_lost_is_won_at_the_next_look() -> None:
    async with a_world() as world:
        world.server.faults.append(Fault(0, method="POST", after=True))
        assert await until_leading(world.candidate("a")) <= RETRY_SECONDS
        assert 0 == world.lease["spec"]["leaseTransitions"]


async def test_a_rival_that_took_the_lease_ends_the_leader_at_its_next_renewal() -> None:
    async with a_world() as world:
        leader = world.candidate("a")
        await until_leading(leader)
        world.server.storage.merge(LEASES, KEY, {"spec": {"holderIdentity": "rival"}})
        started = now()
        with pytest.raises(LeadershipLost, match="now held by rival"):
            await leader.task
        assert now() - started <= 2
        await leader.election.release()
        assert "rival" == world.holder


async def test_a_candidate_outlives_an_outage_and_does_not_repeat_itself() -> None:
    async with a_world() as world:
        with capture_logs() as logs:
            candidate = world.candidate("a")
            candidate.line.is_cut = True
            await asyncio.sleep(300)
            candidate.line.is_cut = False
            await until_leading(candidate)
        said = [entry["error"] for entry in logs if entry["event"] == "lease attempt failed, retrying"]
        assert said
        assert len(set(said)) == len(said)


async def test_a_standby_that_stops_leaves_the_lease_alone() -> None:
    async with a_world() as world:
        await until_leading(world.candidate("a"))
        standby = world.candidate("b")
        await asyncio.sleep(30)
        await standby.stop()
        assert "a" == world.holder


async def test_a_failed_release_is_logged_and_not_raised() -> None:
    async with a_world() as world:
        leader = world.candidate("a")
        await until_leading(leader)
        await leader.die()
        leader.line.is_cut = True
        started = now()
        with capture_logs() as logs:
            await leader.election.release()
        assert now() - started <= 3
        assert ["lease not released"] == [entry["event"] for entry in logs]


@pytest.mark.parametrize("terms", [(10, 10.0, 2.0), (15, 2.0, 2.0), (15, 10.0, 0.0)], ids=str)
def test_terms_that_let_two_lead_are_refused(terms: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match="lease duration > renew deadline"):
        Terms(*terms)


def test_two_processes_on_one_host_have_two_identities() -> None:
    assert identity() != identity()


async def test_a_lease_of_another_installation_is_distinguished_from_one_of_our_replicas() -> None:
    server = Server()

    def candidate(name: str, installation: str) -> Election:
        mark = ("example.com/installation", installation)
        return Election(Client(server), KEY, identity=name, mark=mark)

    ours, standby, other = candidate("a", "x"), candidate("b", "x"), candidate("c", "y")
    with capture_logs() as logs:
        tasks = [asyncio.create_task(ours.run())]
        await asyncio.sleep(1)
        tasks += [asyncio.create_task(each.run()) for each in (standby, other)]
        await asyncio.sleep(10)
    assert ("", "", "x") == (ours.rival, standby.rival, other.rival)
    told = [each for each in logs if each["event"].startswith("another installation")]
    assert [("x", "error")] == [(each["installation"], each["log_level"]) for each in told]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await ours.release()
    again = asyncio.create_task(other.run())
    await other.elected.wait()
    assert "" == other.rival
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
