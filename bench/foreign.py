"""The CPU and memory that objects outside of any graph cost the operator.

    python -m bench --only foreign [--foreign 20000]

Creates Deployments, Services and Pods, then makes `CHANGES_PER_SECOND` changes for a minute, and compares
with the same operator on the same control plane before. Deployments have no replicas and pods no scheduler.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic
from typing import ClassVar

import msgspec

from bench.operator_process import Operator, operator
from bench.plane import plane
from bench.user import client
from kube_runtime.client.client import Client
from kube_runtime.errors import Conflict
from kube_runtime.types.kinds import Deployment, Pod, Service, ServiceAccount
from kube_runtime.types.meta import Key, Kind, Object, Resource

COUNT = 20_000
CHANGES_PER_SECOND = 50
SECONDS = 60.0
NAMESPACES = 20
AT_ONCE = 32
_SETTLED_SECONDS = 5.0


class _Namespace(Resource):
    """A namespace."""

    KIND: ClassVar[Kind] = Kind("", "v1", "Namespace", "namespaces", namespaced=False)


class Figures(msgspec.Struct):
    """The figures without and with the objects; `added` is the difference. Units are in the names."""

    foreign: int
    empty_cpu_percent: float
    empty_mib: float
    start_cpu_seconds: float
    start_ready_seconds: float
    loaded_cpu_percent: float
    loaded_mib: float
    peak_mib: float
    changes: int

    @property
    def added_cpu_percent(self) -> float:
        """CPU during the changes, in percent of a core."""
        return self.loaded_cpu_percent - self.empty_cpu_percent

    @property
    def added_mib(self) -> float:
        """Resident memory after the changes."""
        return self.loaded_mib - self.empty_mib


def main(count: int = COUNT) -> None:
    """Measure and print."""
    figures = asyncio.run(measured(count))
    print(msgspec.json.format(msgspec.json.encode(figures)).decode())
    print(f"added: {figures.added_cpu_percent:.2f} % of a core, {figures.added_mib:.1f} MiB")


async def measured(count: int) -> Figures:
    """The figures of one control plane, first empty, then with `count` objects of each kind."""
    with plane() as fresh:
        with operator(fresh) as running:
            await running.ready()
            await running.quiet()
            empty, _ = await _over_a_minute(running, None)
            empty_mib = running.process.resident_mib()
        async with client(fresh.instance.kubeconfig, "bench-others") as others:
            await _create(others, count)
            with operator(fresh) as running:
                await running.ready()
                ready_seconds = monotonic() - running.started
                await asyncio.sleep(_SETTLED_SECONDS)
                await running.quiet()
                start_cpu = running.process.cpu_seconds()
                loaded, changes = await _over_a_minute(running, others, count)
                return Figures(
                    count,
                    empty_cpu_percent=empty,
                    empty_mib=empty_mib,
                    start_cpu_seconds=start_cpu,
                    start_ready_seconds=ready_seconds,
                    loaded_cpu_percent=loaded,
                    loaded_mib=running.process.resident_mib(),
                    peak_mib=running.process.peak_mib(),
                    changes=changes,
                )


async def _over_a_minute(running: Operator, others: Client | None, count: int = 0) -> tuple[float, int]:
    """CPU in percent of a core, and the number of changes made meanwhile."""
    used, started = running.process.cpu_seconds(), monotonic()
    changes = 0
    if others is None:
        await asyncio.sleep(SECONDS)
    else:
        changes = await _change(others, count, until=started + SECONDS)
    return 100 * (running.process.cpu_seconds() - used) / (monotonic() - started), changes


async def _change(others: Client, count: int, *, until: float) -> int:
    """Change one object after the other at `CHANGES_PER_SECOND`; return the number of changes."""
    done, started = 0, monotonic()
    types = (Deployment, Service, Pod)
    while (now := monotonic()) < until:
        due = min(AT_ONCE, int((now - started) * CHANGES_PER_SECOND) - done)
        changes = [(types[n % 3], n // 3 % count, n) for n in range(done, done + due)]
        await asyncio.gather(
            *(
                others.merge_patch(type_, _key(number), {"metadata": {"annotations": {"changed": str(n)}}})
                for type_, number, n in changes
            )
        )
        done += len(changes)
        await asyncio.sleep(0.02)
    return done


async def _create(others: Client, count: int) -> None:
    for number in range(min(NAMESPACES, count)):
        name = f"others-{number}"
        await others.create(_Namespace, _body(_Namespace, {"metadata": {"name": name}}))
        account = {"metadata": {"name": "default", "namespace": name}}
        with suppress(Conflict):  # pods need it; its controller may have created it
            await others.create(ServiceAccount, _body(ServiceAccount, account))
    waiting = _objects(count)

    async def several() -> None:
        for type_, content in waiting:
            await others.create(type_, _body(type_, content))

    await asyncio.gather(*(several() for _ in range(AT_ONCE)))


def _body(type_: type[Resource], content: Object) -> Object:
    return {"apiVersion": type_.KIND.api_version, "kind": type_.KIND.name, **content}


def _key(number: int) -> Key:
    return Key(f"others-{number % NAMESPACES}", f"theirs-{number}")


def _objects(count: int) -> Iterator[tuple[type[Resource], Object]]:
    """Deployments without replicas, Services, and pods that no scheduler takes."""
    for number in range(count):
        namespace, name = _key(number)
        marks = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm"}
        metadata = {"name": name, "namespace": namespace, "labels": marks}
        container = {"name": "main", "image": "example.com/theirs:1.0", "env": _ENV}
        pod = {"containers": [container], "schedulerName": "theirs"}
        selector = {"app.kubernetes.io/name": f"of-deployment-{number}"}
        template = {"metadata": {"labels": selector}, "spec": {"containers": [container]}}
        yield (
            Deployment,
            {
                "metadata": metadata,
                "spec": {"replicas": 0, "selector": {"matchLabels": selector}, "template": template},
            },
        )
        yield Service, {"metadata": metadata, "spec": {"clusterIP": "None", "selector": selector}}
        yield Pod, {"metadata": metadata, "spec": pod}


_ENV = [{"name": f"SETTING_{number}", "value": "x" * 40} for number in range(10)]
