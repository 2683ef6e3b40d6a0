"""The cost of a service of a DynamoDeployment, beside one of a graph: 100 objects of five services each.

PYTHONPATH=tests python -m bench --only legacy
"""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import ClassVar, NamedTuple

from bench import audit
from bench.operator_process import operator
from bench.plane import Plane, plane
from bench.user import Graph, connected_user, whole
from cluster.audit import now
from cluster.graph.graphs import graph, service, worker
from cluster.legacy.deployments import SERVICES, disagg, graph_config, image
from dynamo_legacy.api import RESOURCES, DynamoDeployment, DynamoNim
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Kind, Object, Resource

COUNT = 100
ALL_SERVICES = COUNT * len(SERVICES)


class Deployed(Graph):
    """A DynamoDeployment as a user waits for it."""

    KIND: ClassVar[Kind] = DynamoDeployment.KIND


class Cost(NamedTuple):
    """The cost of one service."""

    requests: float
    milliseconds: float
    cpu_milliseconds: float


def main() -> None:
    """Print both costs and their ratio."""
    with plane(*RESOURCES) as fresh:
        graphs = asyncio.run(measured(fresh, Graph, _graph))
    flag = "--enable-legacy-kinds"
    beside = ((ConfigMap, graph_config()), (DynamoNim, image()))
    with plane(*RESOURCES) as fresh:
        deployments = asyncio.run(measured(fresh, Deployed, _deployment, *beside, flags=(flag,)))
    print(f"{COUNT} of each, with {len(SERVICES)} services; per service:")
    for name in Cost._fields:
        ours, theirs = getattr(deployments, name), getattr(graphs, name)
        columns = f"{ours:8.2f} in a DynamoDeployment, {theirs:8.2f} in a graph"
        print(f"  {name.replace('_', ' '):<18}{columns}, ratio {ours / theirs:.2f}")


async def measured(
    fresh: Plane,
    kind: type[Graph],
    body: Callable[[str], Object],
    *beside: tuple[type[Resource], Object],
    flags: Sequence[str] = (),
) -> Cost:
    """The cost of a service, from the creation of all objects until the operator is idle again."""
    async with connected_user(fresh.instance.kubeconfig, kind, body) as user:
        for type_, resource in beside:
            await user.client.create(type_, whole(type_, resource))
        with operator(fresh, *flags) as running:
            await running.ready()
            await asyncio.sleep(2)
            since, started = now(), monotonic()
            cpu_seconds = running.process.cpu_seconds()
            await user.create(COUNT)
            ended = await user.until(lambda: user.all_successful(COUNT), within_seconds=600)
            await running.quiet()
            used = running.process.cpu_seconds() - cpu_seconds
            asked = audit.requests(fresh.instance.audit_log, since=since).total
    seconds = ended - started
    return Cost(*(total / ALL_SERVICES for total in (asked, seconds * 1e3, used * 1e3)))


def _graph(name: str) -> Object:
    workers = {f"Worker{name}": worker("decode", resources=None) for name in SERVICES[1:]}
    return whole(DynamoGraphDeployment, graph(name, Frontend=service("frontend"), **workers))


def _deployment(name: str) -> Object:
    made = disagg(name)
    for spec in made["spec"]["services"].values():
        spec |= {"replicas": 1, "resources": {"requests": None, "limits": None}}
    return whole(DynamoDeployment, made)
