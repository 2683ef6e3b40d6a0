"""`dynamoctl dev demo`: bring a graph up on a local control plane, show its objects, and ask it.

Only the nodes and the engines are simulated: the API server and the frontend are real, and the operator runs
with its webhooks and roles.
"""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import yaml
from cyclopts import Parameter
from rich.console import Console
from rich.tree import Tree

from devcluster.instance import Instance
from devcluster.kubelet import runtime
from devcluster.progress import ProgressReporter, shown
from devcluster.startup import READY_SECONDS
from dynamo_graphs import AsyncCluster
from dynamo_graphs.frontend import Completion, conversation
from dynamo_graphs.graph import ignore
from dynamo_graphs.members import members, tree_of
from dynamo_graphs.ownership import applied
from dynamo_graphs.reader import Missing, Target
from dynamo_graphs.served import in_served_version
from dynamo_graphs.watching import once_ready
from dynamo_operator.documents import ShallowLoader
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import summary
from dynamoctl.dev import playground
from dynamoctl.dev.commands import print_next, program
from dynamoctl.inspect.tree import drawn
from kube_runtime.errors import ApiError, ConfigError, OperatorError, visible
from kube_runtime.types.meta import Object, key_of

_NAMESPACE = "default"
_PROMPT = "Hello"
_ANSWER_TOKENS = 24
_DISCOVERY_SECONDS = 60.0
_BETWEEN_QUESTIONS_SECONDS = 0.5


class DemoError(OperatorError):
    """The graph did not become ready."""


def demo(
    graph: Path, /, *, name: Annotated[str, Parameter(metavar="NAME")] = "demo", keep: bool = False
) -> None:
    """Start a control plane and the operator, apply a graph, show its objects, and ask its model.

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
            drawn, answer = asyncio.run(_show(instance, desired, progress))
        Console().print(drawn)
        if answer:
            model = f"simulated by dynamo.mocker {runtime.version()}" if _is_real(instance) else "simulated"
            print(f'\n$ dynamoctl chat {desired["metadata"]["name"]} "{_PROMPT}"')
            print(f"{visible(answer.text.strip())}\n{answer.summary()} (the model is {model})")
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
        (f"kubectl apply -f {file}", f"ready in seconds: {dynamoctl} status {graph}"),
        (f'{dynamoctl} chat {graph} "{_PROMPT}"', "an answer"),
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


async def _show(
    instance: Instance, desired: Object, progress: ProgressReporter
) -> tuple[Tree, Completion | None]:
    def seen(graph: DynamoGraphDeployment) -> None:
        counts = graph.status.services.values()
        available = sum(bool(service.available_replicas) for service in counts)
        progress.advance(available, len(graph.spec.services))

    async with AsyncCluster(kubeconfig=instance.kubeconfig) as cluster:
        at = Target(cluster.reading, DynamoGraphDeployment, key_of(desired))
        progress.step(f"waiting for {at.key}")
        await applied(at.reading, *await in_served_version(at.reading, desired), force=True)
        try:
            async with asyncio.timeout(READY_SECONDS):
                graph = await once_ready(at, seen)
        except TimeoutError:
            ready = summary(await at.get())
            cause = ready.message if ready else "it has no status"
            raise DemoError(f"{at.key} is not ready: {cause}") from None
        dependents = await members(at.reading.client, at.key)
        tree = drawn(tree_of(graph, dependents.by_owner, now=datetime.now(UTC)))
        has_frontend = any(it.component_type == "frontend" for it in graph.spec.services.values())
        return tree, await _answer(at, progress) if has_frontend else None


async def _answer(at: Target[DynamoGraphDeployment], progress: ProgressReporter) -> Completion:
    """Ask as soon as the frontend has discovered the workers, which are ready already."""
    progress.step(f"asking {at.key}")
    deadline = time.monotonic() + _DISCOVERY_SECONDS
    while True:
        try:
            begun = await conversation(at, "")
            answer = await begun.ask(_PROMPT, max_tokens=_ANSWER_TOKENS, write=ignore)
        except (Missing, ApiError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_BETWEEN_QUESTIONS_SECONDS)
        else:
            if answer.text.strip():  # the first random token may be one that ends the answer, and it counts
                return answer


def _is_real(instance: Instance) -> bool:
    return runtime.installed(instance.folder) is not None
