"""The cost of a LoRA on up to a thousand pods: requests, size of the status, memory, CPU time.

PYTHONPATH=tests python -m bench --only models

The API server, the workers and the clock are simulated, so the figures are the operator's own.
"""

import asyncio
import gc
import time
import tracemalloc

import msgspec

from simulated.clock import run
from simulated.models import MODELS, PODS, SERVICES, SLICES, Cluster

COUNTS = (100, 1000)
_LISTS = frozenset((MODELS, PODS, SERVICES, SLICES))


def main() -> None:
    """Print all measurements."""
    for count in COUNTS:
        run(measured(count))


async def measured(count: int) -> None:
    """Print the cost of one model on `count` pods, from its first reconcile to its deletion."""
    cluster = Cluster()
    cluster.has_service()
    for worker in cluster.has_pods(count):
        worker.takes_seconds = 2.0
    cluster.has_model()
    tracemalloc.start()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    started = time.process_time()
    async with cluster.operator():
        await cluster.until(lambda: cluster.status().get("readyEndpoints") == count, 600)
        spent, moment = time.process_time() - started, asyncio.get_running_loop().time()
        size = len(msgspec.json.encode(cluster.status())) / 1024
        gc.collect()
        after, peak = (size / 2**20 for size in tracemalloc.get_traced_memory())
        calls, loads = cluster.asked(), cluster.asked("load")
        print(f"one model on {count} pods, each load 2 s:")
        line("loaded everywhere, simulated time", f"{moment - 5:.0f} s")
        line("calls to workers", f"{calls}, at most {cluster.most_at_once} at once")
        line("writes of the model", f"{cluster.writes()}, the last status {size:.0f} KiB")
        line("processor, with simulation and tracing", f"{spent:.1f} s")
        grown = after - before / 2**20
        line("memory, with the simulation", f"{grown:.1f} MiB, peak {peak:.1f} MiB")
        tracemalloc.stop()
        requests, started = len(cluster.server.requests), time.process_time()
        await asyncio.sleep(3600)
        line("an hour later, lists of workers", str(cluster.asked() - calls))
        line("an hour later, loads and unloads", str(cluster.asked("load") - loads))
        line("an hour later, requests but watches", str(requests_since(cluster, requests)))
        line("an hour later, processor", f"{time.process_time() - started:.1f} s")
        moment = asyncio.get_running_loop().time()
        cluster.delete()
        await cluster.until(lambda: cluster.model() is None, 60)
        line("deleted within", f"{asyncio.get_running_loop().time() - moment:.1f} s")


def requests_since(cluster: Cluster, since: int) -> int:
    """The number of requests that are neither lists nor watches."""
    later = cluster.server.requests[since:]
    return sum(request.method != "GET" or request.path not in _LISTS for request in later)


def line(name: str, value: str) -> None:
    """Print one measurement."""
    print(f"  {name:<46} {value}")
