"""`dynamoctl dev demo`: bring a graph up on a local control plane and show its objects.

Only the nodes and pods are simulated: the API server is real, and the operator runs with its webhooks and
roles.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import yaml
from cyclopts import Parameter
from rich.console import Console
from rich.tree import Tree

from devcluster.instance import Instance
from devcluster.progress import ProgressReporter, shown
from devcluster.startup import READY_SECONDS
from dynamo_graphs import AsyncCluster
from dynamo_graphs.members import members, tree_of
from dynamo_graphs.ownership import applied
from dynamo_graphs.reader import Target
from dynamo_graphs.watching import once_ready
from dynamo_operator.documents import ShallowLoader
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import summary
from dynamoctl.dev import playground
from dynamoctl.dev.commands import print_next, program
from dynamoctl.inspect.tree import drawn
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.types.meta import Object, key_of

_NAMESPACE = "default"


class DemoError(OperatorError):
    """The graph did not become ready."""


def demo(
    graph: Path, /, *, name: Annotated[str, Parameter(metavar="NAME")] = "demo", keep: bool = False
) -> None:
    """Start a control plane and the operator, apply a graph, wait until it is ready, show its objects.

    Parameters
    ----------
    graph
        File with one DynamoGraphDeployment.
    name
        Instance to create, and to remove at the end.
    keep
        Keep the control plane and the operator running.
    """
    desired = _graph(graph)
    instance = Instance(name)
    try:
        with shown() as progress:
            playground.up(instance, progress)
            drawn = asyncio.run(_show(instance, desired, progress))
        Console().print(drawn)
    finally:
        if not keep:
            instance.down()
    _print_next(graph, desired, name if keep else "")


def _print_next(file: Path, desired: Object, kept: str) -> None:
    dynamoctl, graph = program(), desired["metadata"]["name"]
    if kept:
        print_next(
            (f'eval "$({dynamoctl} dev env {kept})"', "kubectl and dynamoctl use this cluster"),
            (f"{dynamoctl} status {graph}", "the graph; `kubectl get all` shows its objects"),
            (f"{dynamoctl} dev down {kept}", "remove the cluster"),
        )
        return
    print_next(
        (f"{dynamoctl} dev up", "a cluster with the operator that stays until `dev down`"),
        (f'eval "$({dynamoctl} dev env)"', "kubectl and dynamoctl use it"),
        (f"kubectl apply -f {file}", f"then: {dynamoctl} status {graph}"),
    )


def _graph(path: Path) -> Object:
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=ShallowLoader)  # noqa: S506
    except OSError as error:
        raise ConfigError(str(path), error.strerror or str(error)) from None
    except yaml.YAMLError as error:
        raise ConfigError(str(path), str(error)) from None
    if not isinstance(document, dict) or document.get("kind") != DynamoGraphDeployment.KIND.name:
        raise ConfigError(str(path), "expected one DynamoGraphDeployment")
    document["metadata"].setdefault("namespace", _NAMESPACE)
    return document


async def _show(instance: Instance, desired: Object, progress: ProgressReporter) -> Tree:
    def seen(graph: DynamoGraphDeployment) -> None:
        counts = graph.status.services.values()
        available = sum(bool(service.available_replicas) for service in counts)
        progress.advance(available, len(graph.spec.services))

    async with AsyncCluster(kubeconfig=instance.kubeconfig) as cluster:
        at = Target(cluster.reading, DynamoGraphDeployment, key_of(desired))
        progress.step(f"waiting for {at.key}")
        await applied(at.reading, at.type_.KIND, desired, force=True)
        try:
            async with asyncio.timeout(READY_SECONDS):
                graph = await once_ready(at, seen)
        except TimeoutError:
            ready = summary(await at.get())
            cause = ready.message if ready else "it has no status"
            raise DemoError(f"{at.key} is not ready: {cause}") from None
        dependents = await members(at.reading.client, at.key)
        return drawn(tree_of(graph, dependents.by_owner, now=datetime.now(UTC)))
