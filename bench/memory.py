"""The resident memory that each cached object takes.

    python -m bench --only memory

Each measurement has its own process, because a process seldom returns memory.
"""

import gc
import multiprocessing
import os
from collections.abc import Callable

import msgspec

from bench.objects import component, deployment, graph, pod_json
from bench.processes import Process
from dynamo_operator.component.read import PodIndex, reduced_pod
from kube_runtime.cache.store import Cache, Store
from kube_runtime.cache.watch import Changed, Present, Started, Synced
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Resource
from kube_runtime.wire import decode

PODS = 10_000
GRAPHS = 1_000
_PAGE = 500


class Held(msgspec.Struct):
    """Memory of a number of objects in bytes: after they are listed, and after each has changed once."""

    objects: int
    listed: int
    changed: int

    @property
    def per_object(self) -> int:
        """Bytes per object."""
        return self.changed // self.objects


def held(measure: Callable[[], Held]) -> Held:
    """Call `measure` in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure)


def pods(count: int = PODS, graph_count: int = GRAPHS) -> Held:
    """Pods of a number of graphs, as the operator caches them."""
    store = Store(Pod, transform=reduced_pod)
    index = PodIndex(Cache((store,)))
    before = _resident()
    store.on_watch_event(Started())
    for first in range(0, count, _PAGE):
        # A page of a list is decoded as a whole before the transform.
        page = [pod_json(number, graph_count) for number in range(first, min(first + _PAGE, count))]
        for pod in [decode(Pod, body) for body in page]:
            store.on_watch_event(Present(pod))
    store.on_watch_event(Synced())
    listed = _resident() - before
    for number in range(count):
        pod = decode(Pod, pod_json(number, graph_count))
        newer = msgspec.structs.replace(pod.metadata, resource_version=f"9{number}")
        store.on_watch_event(Changed(msgspec.structs.replace(pod, metadata=newer)))
    assert index.of_service("default", "g0", "Decode")
    return Held(count, listed, _resident() - before)


def graphs(count: int = GRAPHS) -> Held:
    """Graphs with their components and Deployments."""
    before = _resident()
    kept: list[Resource] = []
    for number in range(count):
        name = f"g{number}"
        for resource in (graph(name), *([component(name), deployment(name)] * 3)):
            kept.append(decode(type(resource), msgspec.json.encode(resource)))
    size = _resident() - before
    return Held(count, size, size)


def _resident() -> int:
    gc.collect()
    return int(Process(os.getpid()).resident_mib() * 2**20)


def main() -> None:
    """Print the measurements."""
    for name, measure in (("pod", pods), ("graph of three services", graphs)):
        figures = held(measure)
        print(
            f"{figures.objects} times a {name}: {figures.listed / 2**20:.1f} MiB when listed, "
            f"{figures.changed / 2**20:.1f} MiB after all have changed, {figures.per_object} bytes each"
        )
