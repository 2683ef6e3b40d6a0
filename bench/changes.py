"""How long a change of a number of replicas takes from the user's write to the Deployment."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from bench.user import NAMESPACE, User
from dynamo_graphs.api.component import DynamoComponentDeployment
from kube_runtime.kind import Key
from kube_runtime.types.apps import Deployment

PAUSE_SECONDS = 0.2
"""Between two changes."""


async def change(who: User, name: str, replicas: int) -> float:
    """Seconds from the write of a service's replicas until its Deployment has them."""
    started = monotonic()
    await who.scale(name, "Decode", replicas)
    return await _arrived(who, name, replicas) - started


async def floor_change(who: User, name: str, replicas: int) -> float:
    """Seconds that the three writes of it take, one after the other, by a client that decides nothing."""
    workload = Key(NAMESPACE, f"{name}-decode")
    started = monotonic()
    await who.scale(name, "Decode", replicas)
    for type_ in (DynamoComponentDeployment, Deployment):
        await who.client.merge_patch(type_, workload, {"spec": {"replicas": replicas}})
    return await _arrived(who, name, replicas) - started


async def several(
    who: User,
    changed: Callable[[User, str, int], Awaitable[float]],
    count: int,
    *,
    first: int,
    pause: float = PAUSE_SECONDS,
) -> list[float]:
    """Milliseconds of so many changes, of one graph after the other, to `first` replicas, then one more."""
    taken, graphs = [], len(who.graphs)
    for number in range(count):
        replicas = first + number // graphs % 2
        taken.append(1e3 * await changed(who, f"g{number % graphs}", replicas))
        await asyncio.sleep(pause)
    return taken


async def _arrived(who: User, name: str, replicas: int) -> float:
    workload = f"{name}-decode"
    return await who.until(
        lambda: who.workloads[workload].spec.replicas == replicas, within_seconds=60
    )
