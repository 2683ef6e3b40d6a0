"""Scale: graphs from their creation until they are successful, changes, idle, a restart, a resync."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from statistics import median
from time import monotonic

import msgspec

from bench import audit
from bench.floor import Statuses, statuses_of
from bench.operator_process import Operator, operator
from bench.plane import Plane
from bench.user import NAMESPACE, User, connected_user
from cluster.audit import now
from devcluster.optional_crds import files
from devcluster.progress import Silent
from dynamo_operator.component.api import DynamoComponentDeployment
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Key

CHANGES = 20
RESYNC_CHANGES = 10
RESYNC_SECONDS = 20
"""The resync period of the benchmark; the default is thirty times as long."""
IDLE_SECONDS = 20.0
PAUSE_SECONDS = 0.2
"""Pause between changes."""


class Figures(msgspec.Struct):
    """The measurements of one run. Units are in the names."""

    graphs: int
    rounds: int = 1
    successful_seconds: float = 0.0
    half_successful_seconds: float = 0.0
    successful_cpu_seconds: float = 0.0
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
    server_allocated_kb: float = 0.0
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
    """Measure a number of graphs; return the figures and the statuses of one graph, for the floor."""
    figures = Figures(graphs)
    async with connected_user(plane.instance.kubeconfig) as user:
        with operator(plane) as running:
            await running.ready()
            await asyncio.sleep(2)
            figures.start_mib = running.process.resident_mib()
            await creation(plane, running, user, figures)
            template = await statuses_of(user.client, "g0")
            await _changes(plane, running, user, figures)
            await _idle(plane, running, figures)
            await _all_at_once(plane, running, user, figures)
        await _restart(plane, user, figures)
        await _resync(plane, user, figures)
    return figures, template


async def creation(plane: Plane, running: Operator, user: User, figures: Figures) -> None:
    """Create the graphs, and measure until all of them are successful and the operator is idle."""
    server = plane.process("kube-apiserver")
    allocated = _allocated_kb(plane)
    since, started = now(), monotonic()
    cpu, server_cpu = running.process.cpu_seconds(), server.cpu_seconds()
    await user.create(figures.graphs)
    limit = 60 + 2.0 * figures.graphs
    ended = await user.until(lambda: user.all_successful(figures.graphs), within_seconds=limit)
    figures.successful_seconds = ended - started
    figures.successful_cpu_seconds = running.process.cpu_seconds() - cpu
    figures.half_successful_seconds = median(user.successful_at.values()) - started
    await running.quiet()
    figures.cpu_seconds = running.process.cpu_seconds() - cpu
    figures.server_cpu_seconds = server.cpu_seconds() - server_cpu
    figures.peak_mib, figures.settled_mib = (running.process.peak_mib(), running.process.resident_mib())
    figures.reconciles = running.reconciles()
    asked = audit.requests(plane.instance.audit_log, since=since)
    figures.requests, figures.events = asked.total, asked.events
    figures.server_seconds = asked.server_seconds
    figures.by_kind = {f"{verb} {kind}": n for (verb, kind), n in asked.count.most_common()}
    figures.server_allocated_kb = _allocated_kb(plane) - allocated
    delays = sorted(_status_delays(user))
    figures.status_p50_ms, figures.status_p99_ms = _part(delays, 0.5), _part(delays, 0.99)


def _allocated_kb(plane: Plane) -> float:
    """What the API server has allocated since its start."""
    text = plane.instance.kubectl("get", "--raw=/metrics")
    (number,) = re.findall(r"^go_memstats_alloc_bytes_total (\S+)$", text, re.MULTILINE)
    return float(number) / 1e3


def _status_delays(user: User) -> Iterator[float]:
    """Milliseconds from a graph's last available Deployment to its successful status."""
    for name, at in user.successful_at.items():
        parts = [workload for workload in user.available_at if workload.startswith(f"{name}-")]
        if parts:
            yield (at - max(user.available_at[workload] for workload in parts)) * 1e3


def _part(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


async def _change(user: User, name: str, replicas: int) -> float:
    """Scale one service; return the seconds until its Deployment has the new replicas."""
    started = monotonic()
    await user.scale(name, "Decode", replicas)
    return await _arrived(user, name, replicas) - started


async def _floor_change(user: User, name: str, replicas: int) -> float:
    """Write the three objects of the same change one after the other; return the seconds."""
    workload = Key(NAMESPACE, f"{name}-decode")
    started = monotonic()
    await user.scale(name, "Decode", replicas)
    for type_ in (DynamoComponentDeployment, Deployment):
        await user.client.merge_patch(type_, workload, {"spec": {"replicas": replicas}})
    return await _arrived(user, name, replicas) - started


async def _several(
    user: User,
    changed: Callable[[User, str, int], Awaitable[float]],
    count: int,
    *,
    first: int,
    pause: float = PAUSE_SECONDS,
) -> list[float]:
    """Milliseconds of each change: one graph after the other, to `first` replicas, then to one more."""
    taken, graphs = [], len(user.graphs)
    for number in range(count):
        replicas = first + number // graphs % 2
        taken.append(1e3 * await changed(user, f"g{number % graphs}", replicas))
        await asyncio.sleep(pause)
    return taken


async def _arrived(user: User, name: str, replicas: int, *, within_seconds: float = 60) -> float:
    workload = f"{name}-decode"
    return await user.until(
        lambda: user.workloads[workload].spec.replicas == replicas, within_seconds=within_seconds
    )


async def _changes(plane: Plane, running: Operator, user: User, figures: Figures) -> None:
    """Changes of one replica on an otherwise idle operator."""
    since = now()
    taken = await _several(user, _change, CHANGES, first=2)
    figures.change_p50_ms, figures.change_max_ms = median(taken), max(taken)
    await user.until(lambda: user.all_successful(figures.graphs), within_seconds=60)
    await running.quiet()
    asked = audit.requests(plane.instance.audit_log, since=since)
    figures.change_requests, figures.change_events = asked.total / CHANGES, asked.events / CHANGES


async def _all_at_once(plane: Plane, running: Operator, user: User, figures: Figures) -> None:
    """The same changes while every object is reconciled, because an optional kind was installed."""
    before = running.reconciles()
    [definition] = files(["lws"], Silent())
    plane.instance.kubectl("apply", "--server-side", "-f", definition)
    async with asyncio.timeout(30):
        while running.reconciles() < before + 5:
            await asyncio.sleep(0.01)
    taken = await _several(user, _change, RESYNC_CHANGES, first=4, pause=0.0)
    figures.at_once_change_p50_ms, figures.at_once_change_max_ms = median(taken), max(taken)
    await running.quiet()


async def _resync(plane: Plane, user: User, figures: Figures) -> None:
    """The same changes during the first resync of a new process."""
    with operator(plane, f"--resync-period={RESYNC_SECONDS}s") as running:
        await running.ready()
        began = monotonic()
        await asyncio.sleep(RESYNC_SECONDS + 1)
        before = running.reconciles()
        await asyncio.sleep(2)
        # Objects are spread randomly over the period.
        assert running.reconciles() > before, "there is no resync"
        taken = await _several(user, _change, RESYNC_CHANGES, first=6)
        assert monotonic() - began < 2 * RESYNC_SECONDS, "the resync was over"
    figures.resync_change_p50_ms, figures.resync_change_max_ms = median(taken), max(taken)


async def measured_floor(plane: Plane, figures: Figures, template: Statuses) -> None:
    """Add the figures of the floor: the same objects, written by a client that decides nothing."""
    statuses = plane.folder / "statuses.json"
    statuses.write_bytes(msgspec.json.encode(template))
    server = plane.process("kube-apiserver")
    async with connected_user(plane.instance.kubeconfig) as user:
        cpu = server.cpu_seconds()
        taken = await _floor_process(plane, figures.graphs, str(statuses))
        ended = await user.until(
            lambda: user.all_successful(figures.graphs) and user.all_available(3 * figures.graphs),
            within_seconds=60 + 2.0 * figures.graphs,
        )
        figures.floor_server_cpu_seconds = server.cpu_seconds() - cpu
        await asyncio.sleep(2)
        changes = await _several(user, _floor_change, CHANGES, first=2)
    figures.floor_seconds, figures.floor_cpu_seconds = taken["seconds"], taken["cpu_seconds"]
    figures.floor_available_seconds = ended - taken["started_at"]
    figures.floor_change_p50_ms, figures.floor_change_max_ms = median(changes), max(changes)


async def measured_bare(plane: Plane, figures: Figures) -> None:
    """Add the time to create the objects without any status, which compares machines."""
    figures.bare_seconds = (await _floor_process(plane, figures.graphs, ""))["seconds"]


async def _floor_process(plane: Plane, graphs: int, statuses: str) -> dict[str, float]:
    arguments = (str(plane.instance.kubeconfig), statuses, str(graphs))
    command = (sys.executable, "-m", "bench.floor", *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    output, _ = await process.communicate()
    taken: dict[str, float] = msgspec.json.decode(output)
    return taken


async def _idle(plane: Plane, running: Operator, figures: Figures) -> None:
    since, cpu, started = now(), running.process.cpu_seconds(), monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    used = running.process.cpu_seconds() - cpu
    figures.idle_cpu_percent = 100 * used / (monotonic() - started)
    figures.idle_requests = audit.requests(plane.instance.audit_log, since=since).total


async def _restart(plane: Plane, user: User, figures: Figures) -> None:
    """Start new processes: seconds until ready, until a change made meanwhile is applied, until quiet."""
    since = now()
    with operator(plane) as running:
        await running.ready()
        figures.restart_ready_seconds = monotonic() - running.started
        busy = await running.quiet()
        figures.restart_quiet_seconds = busy - running.started
        figures.restart_cpu_seconds = running.process.cpu_seconds()
        figures.restart_writes = audit.requests(plane.instance.audit_log, since=since).writes
    name, replicas = "g0", 3
    await user.scale(name, "Decode", replicas)
    with operator(plane) as running:
        arrived = await _arrived(user, name, replicas, within_seconds=120)
        figures.restart_effective_seconds = arrived - running.started
