"""One run of the operator with so many graphs: from nothing to settled, a change, idle, a restart."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from time import monotonic

import msgspec

from bench import audit
from bench.changes import change, floor_change, several
from bench.floor import Statuses, statuses_of
from bench.operator_process import Operator, operator
from bench.plane import Plane
from bench.user import User, user
from devcluster.optional_crds import files
from devcluster.progress import Silent

CHANGES = 20
RESYNC_CHANGES = 10
RESYNC_SECONDS = 20
"""The resync period of the benchmark; the default is thirty times as long."""
IDLE_SECONDS = 20.0


class Figures(msgspec.Struct):
    """What one run has measured. Units are in the names."""

    graphs: int
    rounds: int = 1
    successful_seconds: float = 0.0
    half_successful_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mib: float = 0.0
    start_mib: float = 0.0
    settled_mib: float = 0.0
    requests: int = 0
    events: int = 0
    by_kind: dict[str, int] = {}
    reconciles: float = 0.0
    status_p50_ms: float = 0.0
    status_p99_ms: float = 0.0
    server_cpu_seconds: float = 0.0
    server_seconds: float = 0.0
    change_p50_ms: float = 0.0
    change_max_ms: float = 0.0
    change_requests: float = 0.0
    change_events: float = 0.0
    idle_cpu_percent: float = 0.0
    idle_requests: int = 0
    restart_ready_seconds: float = 0.0
    restart_effective_seconds: float = 0.0
    restart_quiet_seconds: float = 0.0
    restart_cpu_seconds: float = 0.0
    restart_writes: int = 0
    resync_change_p50_ms: float = 0.0
    resync_change_max_ms: float = 0.0
    at_once_change_p50_ms: float = 0.0
    at_once_change_max_ms: float = 0.0
    bare_seconds: float = 0.0
    floor_change_p50_ms: float = 0.0
    floor_change_max_ms: float = 0.0
    floor_seconds: float = 0.0
    floor_available_seconds: float = 0.0
    floor_cpu_seconds: float = 0.0
    floor_server_cpu_seconds: float = 0.0


async def measured(plane: Plane, graphs: int) -> tuple[Figures, Statuses]:
    """Everything about so many graphs, and the statuses of one of them as the operator wrote them."""
    found = Figures(graphs)
    async with user(plane.instance.kubeconfig) as who:
        with operator(plane) as running:
            await running.ready()
            await asyncio.sleep(2)
            found.start_mib = running.process.resident_mib()
            await _creation(plane, running, who, found)
            template = await statuses_of(who.client, "g0")
            await _changes(plane, running, who, found)
            await _idle(plane, running, found)
            await _all_at_once(plane, running, who, found)
        await _restart(plane, who, found)
        await _resync(plane, who, found)
    return found, template


async def _creation(plane: Plane, running: Operator, who: User, found: Figures) -> None:
    server = plane.process("kube-apiserver")
    since, started = audit.now(), monotonic()
    cpu, server_cpu = running.process.cpu_seconds(), server.cpu_seconds()
    await who.create(found.graphs)
    limit = 60 + 2.0 * found.graphs
    ended = await who.until(lambda: who.all_successful(found.graphs), within_seconds=limit)
    found.successful_seconds = ended - started
    found.half_successful_seconds = median(who.successful_at.values()) - started
    await running.quiet()
    found.cpu_seconds = running.process.cpu_seconds() - cpu
    found.server_cpu_seconds = server.cpu_seconds() - server_cpu
    found.peak_mib, found.settled_mib = running.process.peak_mib(), running.process.resident_mib()
    found.reconciles = running.reconciles()
    asked = audit.requests(plane.instance.audit_log, since=since)
    found.requests, found.events, found.server_seconds = (
        asked.total,
        asked.events,
        asked.server_seconds,
    )
    found.by_kind = {f"{verb} {kind}": n for (verb, kind), n in asked.count.most_common()}
    delays = sorted(_status_delays(who))
    found.status_p50_ms, found.status_p99_ms = _part(delays, 0.5), _part(delays, 0.99)


def _status_delays(who: User) -> Iterator[float]:
    """From a graph's last Deployment becoming available to the graph saying so, in milliseconds."""
    for name, at in who.successful_at.items():
        parts = [each for each in who.available_at if each.startswith(f"{name}-")]
        if parts:
            yield (at - max(who.available_at[each] for each in parts)) * 1e3


def _part(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


async def _changes(plane: Plane, running: Operator, who: User, found: Figures) -> None:
    """One replica more or less, until the Deployment has it."""
    since = audit.now()
    taken = await several(who, change, CHANGES, first=2)
    found.change_p50_ms, found.change_max_ms = median(taken), max(taken)
    await who.until(lambda: who.all_successful(found.graphs), within_seconds=60)
    await running.quiet()
    asked = audit.requests(plane.instance.audit_log, since=since)
    found.change_requests, found.change_events = asked.total / CHANGES, asked.events / CHANGES


async def _all_at_once(plane: Plane, running: Operator, who: User, found: Figures) -> None:
    """The same while every object is reconciled at once: an optional kind has appeared."""
    before = running.reconciles()
    [definition] = files(["lws"], Silent())
    plane.instance.kubectl("apply", "--server-side", "-f", definition)
    async with asyncio.timeout(30):
        while running.reconciles() < before + 5:
            await asyncio.sleep(0.01)
    taken = await several(who, change, RESYNC_CHANGES, first=4, pause=0.0)
    found.at_once_change_p50_ms, found.at_once_change_max_ms = median(taken), max(taken)
    await running.quiet()


async def _resync(plane: Plane, who: User, found: Figures) -> None:
    """The same during a resync, which is the first thing that a process does so long after its start."""
    with operator(plane, f"--resync-period={RESYNC_SECONDS}s") as running:
        await running.ready()
        began = monotonic()
        await asyncio.sleep(RESYNC_SECONDS + 1)
        before = running.reconciles()
        await asyncio.sleep(2)
        # Objects come at random moments of the period, so their number within two seconds is random.
        assert running.reconciles() > before, "there is no resync"
        taken = await several(who, change, RESYNC_CHANGES, first=6)
        assert monotonic() - began < 2 * RESYNC_SECONDS, "the resync was over"
    found.resync_change_p50_ms, found.resync_change_max_ms = median(taken), max(taken)


async def measured_floor(plane: Plane, found: Figures, template: Statuses) -> None:
    """The floor of the same graphs, into the same figures."""
    statuses = plane.folder / "statuses.json"
    statuses.write_bytes(msgspec.json.encode(template))
    server = plane.process("kube-apiserver")
    async with user(plane.instance.kubeconfig) as who:
        cpu = server.cpu_seconds()
        taken = await _floor_process(plane, found.graphs, str(statuses))
        ended = await who.until(
            lambda: who.all_successful(found.graphs) and who.all_available(3 * found.graphs),
            within_seconds=60 + 2.0 * found.graphs,
        )
        found.floor_server_cpu_seconds = server.cpu_seconds() - cpu
        await asyncio.sleep(2)
        changes = await several(who, floor_change, CHANGES, first=2)
    found.floor_seconds, found.floor_cpu_seconds = taken["seconds"], taken["cpu_seconds"]
    found.floor_available_seconds = ended - taken["started_at"]
    found.floor_change_p50_ms, found.floor_change_max_ms = median(changes), max(changes)


async def measured_bare(plane: Plane, found: Figures) -> None:
    """The time in which the objects alone are created, without any status: which compares machines."""
    found.bare_seconds = (await _floor_process(plane, found.graphs, ""))["seconds"]


async def _floor_process(plane: Plane, graphs: int, statuses: str) -> dict[str, float]:
    arguments = (str(plane.instance.kubeconfig), statuses, str(graphs))
    command = (sys.executable, "-m", "bench.floor", *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    said, _ = await process.communicate()
    taken: dict[str, float] = msgspec.json.decode(said)
    return taken


async def _idle(plane: Plane, running: Operator, found: Figures) -> None:
    since, cpu, started = audit.now(), running.process.cpu_seconds(), monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    used = running.process.cpu_seconds() - cpu
    found.idle_cpu_percent = 100 * used / (monotonic() - started)
    found.idle_requests = audit.requests(plane.instance.audit_log, since=since).total


async def _restart(plane: Plane, who: User, found: Figures) -> None:
    """A new process: until it is ready, until it has acted on what it missed, until it is quiet."""
    since = audit.now()
    with operator(plane) as running:
        await running.ready()
        found.restart_ready_seconds = monotonic() - running.started
        busy = await running.quiet()
        found.restart_quiet_seconds = busy - running.started
        found.restart_cpu_seconds = running.process.cpu_seconds()
        found.restart_writes = audit.requests(plane.instance.audit_log, since=since).writes
    name, wanted = "g0", 3
    await who.scale(name, "Decode", wanted)
    with operator(plane) as running:
        arrived = await who.until(
            lambda: who.workloads[f"{name}-decode"].spec.replicas == wanted, within_seconds=120
        )
        found.restart_effective_seconds = arrived - running.started
