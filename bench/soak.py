"""What an operator keeps of graphs that are gone: its memory while they are created, scaled and deleted.

PYTHONPATH=tests python -m bench --only soak --minutes 60
"""

import asyncio
from time import monotonic

from bench.operator_process import Operator, operator
from bench.plane import Plane, plane
from bench.user import NAMESPACE, Graph, User, connected_user
from kube_runtime.kind import Key

AT_A_TIME = 20
SETTLE_MINUTES = 10.0
"""After this time, bounded memories are full: the growth from then on is what counts."""


def main(minutes: float) -> None:
    """Print the resident memory each minute, and the growth after the first ten."""
    with plane() as fresh:
        asyncio.run(_soak(fresh, minutes))


async def _soak(fresh: Plane, minutes: float) -> None:
    async with connected_user(fresh.instance.kubeconfig) as user:
        with operator(fresh) as running:
            await running.ready()
            begun, deleted, printed = monotonic(), 0, -1
            settled: float | None = None
            while (passed := (monotonic() - begun) / 60) < minutes:
                if int(passed) > printed:
                    printed = int(passed)
                    _print(passed, deleted, running)
                if settled is None and passed >= min(SETTLE_MINUTES, minutes / 2):
                    settled = running.process.resident_mib()
                await _round(user, deleted)
                deleted += AT_A_TIME
            _print(minutes, deleted, running)
            if settled is not None:
                growth = running.process.resident_mib() - settled
                print(f"growth after the first minutes: {growth:.1f} MiB", flush=True)


async def _round(user: User, first: int) -> None:
    """Create graphs, scale each of them, delete them, and wait until they are gone."""
    names = [f"g{number}" for number in range(first, first + AT_A_TIME)]
    await user.create(AT_A_TIME, first=first)

    def are_successful(generation: int) -> bool:
        graphs = (user.graphs.get(name) for name in names)
        return all(
            graph and graph.is_successful and graph.metadata.generation >= generation
            for graph in graphs
        )

    await user.until(lambda: are_successful(1), within_seconds=600)
    for name in names:
        await user.scale(name, "Decode", 2)
    await user.until(lambda: are_successful(2), within_seconds=600)
    for name in names:
        uid = user.graphs[name].metadata.uid
        await user.client.delete(Graph, Key(NAMESPACE, name), uid=uid)
    await user.until(lambda: not any(name in user.graphs for name in names), within_seconds=600)


def _print(passed: float, deleted: int, running: Operator) -> None:
    resident = running.process.resident_mib()
    print(f"{passed:5.0f} min  {deleted:6d} graphs deleted  {resident:6.1f} MiB", flush=True)
