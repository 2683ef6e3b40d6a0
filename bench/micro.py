"""CPU time of the single steps of one object through the operator.

Takes the best of several rounds, because other work on the machine can only make a step slower.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from bench.objects import component, deployment, graph, pod_json
from dynamo_operator.component.read import reduced_pod
from dynamo_operator.component.render import component_parts
from dynamo_operator.component.validate import component_problems
from dynamo_operator.features.decision import GraphInputs
from dynamo_operator.graph.decide import decide_valid
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.apply.drift import has_no_drift
from kube_runtime.apply.suppression import digest_of
from kube_runtime.cache.store import Store
from kube_runtime.cache.watch import Changed
from kube_runtime.controller.controller import WorkQueue
from kube_runtime.types.kinds import Deployment, Pod
from kube_runtime.types.meta import Key, content, content_of, fingerprint_of
from kube_runtime.wire import decode

ROUNDS = 7
TIMES = 200


@dataclass(frozen=True, slots=True)
class Step:
    """The CPU time of one step in microseconds."""

    name: str
    microseconds: float


def steps() -> Iterator[Step]:
    """Measure all steps."""
    facts, settings = Facts(), RenderSettings()
    whole, part, live = graph(), component(), deployment()
    _, (desired,) = component_parts(part, facts, settings)
    live_json, pod = msgspec.json.encode(live), pod_json()
    yield _per("decode a Deployment", lambda: decode(Deployment, live_json))
    yield _per("decode a pod and reduce it", lambda: reduced_pod(decode(Pod, pod)))
    yield _per("take a changed pod into the cache", _insertion())
    yield _per("validate a graph", lambda: graph_problems(whole, settings))
    yield _per("validate a component", lambda: component_problems(part, settings))
    yield _per(
        "decide on a graph, with its own objects",
        lambda: decide_valid(whole, GraphInputs(facts), settings, datetime.now(UTC)),
    )
    yield _per("render a component's", lambda: component_parts(part, facts, settings))
    yield _per("hash a desired Deployment", lambda: digest_of(desired))
    yield _per(
        "compare a Deployment for drift, first time", lambda: has_no_drift(content(desired), content_of(live))
    )
    yield _per("compare a Deployment for drift, later", lambda: fingerprint_of(live))
    yield asyncio.run(_queue())


def _per(name: str, step: Callable[[], object]) -> Step:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(TIMES):
            step()
        best = min(best, (time.process_time() - started) / TIMES)
    return Step(name, best * 1e6)


def _insertion() -> Callable[[], None]:
    store, versions = Store(Pod, transform=reduced_pod), iter(range(10**9))
    base = decode(Pod, pod_json())

    def insert() -> None:
        number = next(versions)
        changed = msgspec.structs.replace(base.metadata, resource_version=str(number))
        store.on_watch_event(Changed(msgspec.structs.replace(base, metadata=changed)))

    return insert


async def _queue() -> Step:
    queue = WorkQueue()

    async def through() -> None:
        for number in range(TIMES):
            queue.add(Key("default", str(number)))
        for _ in range(TIMES):
            taken = await queue.take()
            assert taken is not None
            queue.done(taken[0])

    return Step("a key through the queue", await _best(through) / TIMES)


async def _best(work: Callable[[], Awaitable[None]]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        await work()
        best = min(best, time.process_time() - started)
    return best * 1e6


def main() -> None:
    """Print the steps."""
    for step in steps():
        print(f"{step.name:<42} {step.microseconds:8.0f} µs")
