"""Single steps, by processor time: what one object costs on its way through the operator.

Printed and put on the page; never a pass or fail. The best of several rounds is taken, because whatever else
runs on the machine can only make a step slower.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import msgspec

from bench.objects import component, deployment, graph, pod_json
from dynamo_operator.controllers.pods import reduced
from dynamo_operator.facts import Facts
from dynamo_operator.kube.contained import contained, content, content_of, fingerprint_of
from dynamo_operator.kube.decode import decode
from dynamo_operator.kube.kind import Key
from dynamo_operator.kube.queue import Queue
from dynamo_operator.kube.restraint import digest_of
from dynamo_operator.kube.store import Store
from dynamo_operator.kube.types.apps import Deployment
from dynamo_operator.kube.types.core import Pod
from dynamo_operator.kube.watch_events import Changed
from dynamo_operator.render.component import component_objects
from dynamo_operator.render.graph import graph_objects
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation.component import component_problems
from dynamo_operator.validation.graph import graph_problems

ROUNDS = 7
TIMES = 200


@dataclass(frozen=True, slots=True)
class Step:
    """How much processor time one step takes, in microseconds."""

    name: str
    microseconds: float


def steps() -> Iterator[Step]:
    """All of them."""
    facts, settings = Facts(), RenderSettings()
    whole, part, live = graph(), component(), deployment()
    wanted = component_objects(part, facts, settings)[-1]
    live_json, pod = msgspec.json.encode(live), pod_json()
    yield _per("decode a Deployment", lambda: decode(Deployment, live_json))
    yield _per("decode a pod and reduce it", lambda: reduced(decode(Pod, pod)))
    yield _per("take a changed pod into the cache", _insertion())
    yield _per("validate a graph", lambda: graph_problems(whole, settings))
    yield _per("validate a component", lambda: component_problems(part, settings))
    yield _per("render a graph's own objects", lambda: graph_objects(whole, facts, settings))
    yield _per("render a component's", lambda: component_objects(part, facts, settings))
    yield _per("hash a wanted Deployment", lambda: digest_of(wanted))
    yield _per(
        "compare a Deployment, first look",
        lambda: contained(content(wanted), content_of(live)),
    )
    yield _per("compare a Deployment, later looks", lambda: fingerprint_of(live))
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
    store, versions = Store(Pod, keep=reduced), iter(range(10**9))
    base = decode(Pod, pod_json())

    def insert() -> None:
        number = next(versions)
        changed = msgspec.structs.replace(base.metadata, resource_version=str(number))
        store.hear(Changed(msgspec.structs.replace(base, metadata=changed)))

    return insert


async def _queue() -> Step:
    queue = Queue()

    async def through() -> None:
        for number in range(TIMES):
            queue.add(Key("default", str(number)))
        for _ in range(TIMES):
            taken = await queue.take()
            assert taken is not None
            queue.done(taken.key)

    return Step("a key through the queue", await _best(through) / TIMES)


async def _best(work: Callable[[], Awaitable[None]]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        await work()
        best = min(best, time.process_time() - started)
    return best * 1e6


def main() -> None:
    """Print them."""
    for each in steps():
        print(f"{each.name:<40} {each.microseconds:8.0f} µs")


if __name__ == "__main__":
    main()
