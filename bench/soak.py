"""How the operator's memory grows while graphs are created, scaled and deleted at a fixed rate.

PYTHONPATH=tests python -m bench --only soak --minutes 60 --rate 120

Part of what the operator holds follows the rate of changes, such as Events that wait to be written. So the
rate must not depend on the load of the machine: a batch of graphs starts when it is due, even if the one
before is not gone yet.
"""

import asyncio
from dataclasses import dataclass, field
from itertools import count, takewhile
from time import monotonic

from bench.operator_process import Operator, operator
from bench.plane import Plane, plane
from bench.user import NAMESPACE, Graph, User, connected_user
from kube_runtime.types.meta import Key

RATE = 120.0
"""Graphs per minute: about what two otherwise idle cores manage, one batch after the other."""
BATCH = 20
BATCHES_AT_ONCE = 3
"""A batch beyond these waits, so that graphs do not pile up on a machine that is too slow for the rate."""
SETTLED_MINUTES = 10.0
"""After this time bounded memories are full: the growth from then on is what counts."""
REPORT_MINUTES = 5.0


@dataclass(slots=True)
class _Progress:
    started: float = field(default_factory=monotonic)
    deleted: int = 0
    late_batches: int = 0


def main(minutes: float, rate: float) -> None:
    """Print the resident memory after ten minutes and every five minutes from then on."""
    with plane() as fresh:
        asyncio.run(_soak(fresh, minutes, rate))


async def _soak(fresh: Plane, minutes: float, rate: float) -> None:
    async with connected_user(fresh.instance.kubeconfig) as user:
        with operator(fresh) as running:
            await running.ready()
            progress = _Progress()
            async with asyncio.TaskGroup() as tasks:
                batches = tasks.create_task(_start_batches(user, rate, progress))
                await _report(running, minutes, progress)
                batches.cancel()


async def _start_batches(user: User, rate: float, progress: _Progress) -> None:
    """Start a batch whenever one is due, until cancelled."""
    interval, due = 60 * BATCH / rate, monotonic()
    free = asyncio.Semaphore(BATCHES_AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        for first in count(0, BATCH):
            await asyncio.sleep(due - monotonic())
            progress.late_batches += free.locked()
            await free.acquire()
            tasks.create_task(_batch(user, first, progress, free))
            # More than one missed batch is not made up for: that would be a higher rate.
            due = max(due + interval, monotonic())


async def _batch(user: User, first: int, progress: _Progress, free: asyncio.Semaphore) -> None:
    """Create graphs, scale each of them, delete them, and wait until they are gone."""
    names = [f"g{number}" for number in range(first, first + BATCH)]
    await user.create(BATCH, first=first)

    def are_successful(generation: int) -> bool:
        graphs = (user.graphs.get(name) for name in names)
        return all(
            graph and graph.is_successful and graph.metadata.generation >= generation for graph in graphs
        )

    await user.until(lambda: are_successful(1), within_seconds=600)
    for name in names:
        await user.scale(name, "Decode", 2)
    await user.until(lambda: are_successful(2), within_seconds=600)
    for name in names:
        uid = user.graphs[name].metadata.uid
        await user.client.delete(Graph, Key(NAMESPACE, name), uid=uid)
    await user.until(lambda: not any(name in user.graphs for name in names), within_seconds=600)
    progress.deleted += BATCH
    free.release()


async def _report(running: Operator, minutes: float, progress: _Progress) -> None:
    """Print the memory, and the rate since the report before; return after the last report."""
    settled_after = min(SETTLED_MINUTES, minutes / 2)
    times = [*takewhile(lambda time: time < minutes, count(settled_after, REPORT_MINUTES)), minutes]
    before_minutes, before_deleted, settled_mib = 0.0, 0, None
    for time in times:
        await asyncio.sleep(progress.started + 60 * time - monotonic())
        mib = running.process.resident_mib()
        settled_mib = settled_mib or mib
        rate = (progress.deleted - before_deleted) / (time - before_minutes)
        print(
            f"{time:5.1f} min  {progress.deleted:6d} graphs deleted, {rate:5.1f} per minute  "
            f"{mib:6.1f} MiB ({mib - settled_mib:+.1f})",
            flush=True,
        )
        before_minutes, before_deleted = time, progress.deleted
    if progress.late_batches:
        print(f"{progress.late_batches} batches were late: choose a lower --rate", flush=True)
