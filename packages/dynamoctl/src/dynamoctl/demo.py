"""`dynamoctl dev demo`: a graph becomes ready on a local control plane, and its objects are shown.

Everything is as in a cluster but for the nodes and their pods, which are simulated: a real API server, the
operator with its webhooks and roles, and a graph as a user writes it.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import yaml
from rich.console import Console
from rich.tree import Tree

from devcluster.instance import Instance
from devcluster.progress import ProgressReporter, shown
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.files.yaml_depth import ShallowLoader
from dynamo_graphs.product import user_agent
from dynamoctl.members import members
from dynamoctl.next_steps import print_next, program
from dynamoctl.playground.control import Playground
from dynamoctl.tree import drawn, grown
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer
from kube_runtime.client.connect import connect
from kube_runtime.client.requests import Client
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.kind import Object, key_of
from kube_runtime.types.meta import condition

_NAMESPACE = "default"
_PATIENCE_SECONDS = 60.0


class DemoError(OperatorError):
    """The graph did not become ready."""


def demo(graph: Path, /, *, name: str = "demo", keep: bool = False) -> None:
    """Start a control plane and the operator, apply a graph, wait until it is ready, show its objects.

    Parameters
    ----------
    graph:
        File with one DynamoGraphDeployment.
    name:
        Instance to create, and to remove at the end.
    keep:
        Keep the control plane and the operator running.
    """
    wanted = _graph(graph)
    instance = Instance(name)
    try:
        with shown() as progress:
            Playground(instance).up(progress)
            drawn = asyncio.run(_show(instance, wanted, progress))
        Console().print(drawn)
    finally:
        if not keep:
            instance.down()
    _print_next(graph, wanted, name if keep else "")


def _print_next(file: Path, wanted: Object, kept: str) -> None:
    dynamoctl, graph = program(), wanted["metadata"]["name"]
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


async def _show(instance: Instance, wanted: Object, progress: ProgressReporter) -> Tree:
    async with await connect(instance.kubeconfig, user_agent=user_agent()) as transport:
        client = Client(transport, field_manager="dynamoctl")
        progress.step(f"waiting for {key_of(wanted)}")
        graph = await _ready(client, wanted, progress)
        found = await members(client, graph.key)
        return drawn(grown(graph, found.by_owner, now=datetime.now(UTC)))


async def _ready(
    client: Client, wanted: Object, progress: ProgressReporter
) -> DynamoGraphDeployment:
    """The graph, once it is applied and ready.

    Raises:
        DemoError: it takes too long; with what the status says.
    """
    news = asyncio.Event()
    cache = Cache()
    informer = Informer(DynamoGraphDeployment, namespace=wanted["metadata"]["namespace"])
    cache.add(informer.store)
    cache.subscribe(DynamoGraphDeployment, lambda _: news.set())
    graph = await client.apply(DynamoGraphDeployment, wanted, force=True)
    key = graph.key
    watching = asyncio.create_task(informer.run(client))
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not _is_ready(graph):
                _advance(graph, progress)
                await news.wait()
                news.clear()
                graph = cache.get(DynamoGraphDeployment, key) or graph
        _advance(graph, progress)
    except TimeoutError:
        said = condition(graph.status.conditions, "Ready")
        cause = said.message if said else "it has no status"
        raise DemoError(f"{key} is not ready: {cause}") from None
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    return graph


def _is_ready(graph: DynamoGraphDeployment) -> bool:
    ready = condition(graph.status.conditions, "Ready")
    is_current = graph.status.observed_generation == graph.metadata.generation
    return is_current and ready is not None and ready.status == "True"


def _advance(graph: DynamoGraphDeployment, progress: ProgressReporter) -> None:
    counts = graph.status.services.values()
    progress.advance(
        sum(bool(each.available_replicas) for each in counts), len(graph.spec.services)
    )
