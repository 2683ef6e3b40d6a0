"""Commands that compare, apply and convert files, and those that change a graph in the cluster."""

import re
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, CycloptsError, Parameter, Token

from dynamoctl import options
from kube_runtime.commandline import application
from kube_runtime.errors import visible

if TYPE_CHECKING:
    from dynamo_graphs import AsyncCluster
    from dynamo_graphs.edits import Edited

_LARGEST = 2**31 - 1
_Revision = Annotated[int | None, Parameter(metavar="NUMBER", show_default=False)]


def diff(
    *paths: options.Paths,
    files: options.Files = (),
    is_recursive: options.Recursive = False,
    where: options.Where = options.HERE,
    exit_code: bool = False,
    output: options.TextOutput = "text",
) -> int:
    """Show what files would change, and which pods restart.

    Nothing is changed: the API server makes a dry run, and the operator's own code renders
    the graph as it is and as it would be. It names the field managers whose fields change.
    Example: dynamoctl diff -f graph.yaml

    Parameters
    ----------
    exit_code
        Exit with 1 if anything would change, as `git diff --exit-code` does.
    """
    from dynamoctl.authoring.manifest import read_manifests
    from dynamoctl.change.apply import print_diff

    # Not in the event loop, where the first Ctrl-C would not end a read of standard input.
    manifests = read_manifests(options.all_files(paths, files), is_recursive=is_recursive)
    return options.run(print_diff(manifests, where, output, has_exit_code=exit_code))


def apply(
    *paths: options.Paths,
    files: options.Files = (),
    is_recursive: options.Recursive = False,
    where: options.Where = options.HERE,
    force: Annotated[bool, Parameter(name="--force-conflicts")] = False,
    wait: bool = False,
    timeout: Annotated[str, Parameter(metavar="DURATION")] = "30m",
) -> int:
    """Apply files on the server; --wait until they are ready.

    Exits with 1 and the cause if one is not ready in time.
    Example: dynamoctl apply -f graph.yaml --wait --timeout 1h

    Parameters
    ----------
    force
        Overwrite fields that controllers and GitOps tools own. Those of kubectl are no conflict.
    wait
        Wait until the graphs, models and requests in the files are ready.
    timeout
        Longest wait, for example 90s, 30m or 2h.
    """
    from dynamoctl.authoring.manifest import read_manifests
    from dynamoctl.change.apply import print_applied
    from dynamoctl.screen import seconds

    limit = seconds(timeout)
    manifests = read_manifests(
        options.all_files(paths, files), is_recursive=is_recursive
    )  # before the event loop, as above
    return options.run(print_applied(manifests, where, force=force, wait=wait, timeout_seconds=limit))


def convert(
    *paths: options.Paths,
    files: options.Files = (),
    is_recursive: options.Recursive = False,
    cluster: bool = False,
    where: options.Where = options.HERE,
    choices: options.ConvertOptions = options.CONVERSION,
) -> int:
    """Convert objects to another version, or from the older generation.

    With `--to`, it prints graphs, components, requests and scaling adapters in that version,
    with their comments, and other objects as they are. Stderr names what the version has no
    field for; an annotation keeps it.

    Without, it reads DynamoDeployments and DynamoNimDeployments. A DynamoNim or DynamoNimRequest says
    which image a tag has, a ConfigMap with `bento.yaml` which services. It prints the new
    objects, and on stderr each field that it dropped or guessed.
    Example: dynamoctl convert -f graph.yaml --to v1beta1

    Parameters
    ----------
    cluster
        Read the objects of a namespace in the cluster instead of files.
    """
    from dynamoctl.authoring.convert import convert as convert_manifests
    from dynamoctl.authoring.convert import convert_cluster
    from dynamoctl.authoring.manifest import read_manifests
    from dynamoctl.authoring.versions import convert_versions

    if not cluster:
        manifests = read_manifests(options.all_files(paths, files), is_recursive=is_recursive)
        if choices.to is not None:
            return int(convert_versions(manifests, choices.to, choices.output))
        return int(convert_manifests(manifests, choices))
    if choices.to is not None:
        raise CycloptsError(msg="--to reads files; `kubectl get dgd.v1beta1.nvidia.com` prints a version")
    if paths or files:
        raise CycloptsError(msg="--cluster reads no files")
    return options.run(convert_cluster(where, choices))


def _count(_type: type, tokens: Sequence[Token]) -> int:
    """A number of replicas: digits only, so that half a replica does not become none."""
    text = tokens[0].value
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) > _LARGEST:
        raise ValueError(f"expected a whole number from 0 to {_LARGEST}")
    return int(text)


async def scale(
    name: Annotated[str, Parameter(name="GRAPH/SERVICE")],
    /,
    *,
    replicas: Annotated[int, Parameter(converter=_count, metavar="NUMBER", allow_leading_hyphen=True)],
    where: options.Where = options.HERE,
) -> None:
    """Set the replicas of a service.

    It writes the scaling adapter of a service that has one. An autoscaler that controls
    the adapter overwrites this number.
    Example: dynamoctl scale chat/Decode --replicas 4

    Parameters
    ----------
    name
        Graph and the key of one of its services, for example chat/Decode.
    replicas
        Desired number of replicas.
    """
    from dynamoctl.target import cluster, parse_service

    graph, service = parse_service(name)
    if not service:
        raise CycloptsError(f'invalid target "{name}" (expected GRAPH/SERVICE, for example chat/Decode)')
    async with cluster(where) as at:
        _print(await at.scale(graph, service, replicas))


def _print(done: "Edited") -> None:
    """Print the change, and on stderr what prevents it."""
    print(visible(f"{done.message}."))
    for obstacle in done.obstacles:
        print(visible(f"note: {obstacle}"), file=sys.stderr)


async def _edit(
    name: str, where: options.Where, edit: "Callable[[AsyncCluster, str], Coroutine[object, object, Edited]]"
) -> None:
    from dynamoctl.target import cluster, parse_graph

    graph = parse_graph(name)
    async with cluster(where) as at:
        _print(await edit(at, graph))


async def suspend(name: options.GraphName, /, *, where: options.Where = options.HERE) -> None:
    """Scale a graph to zero until `resume`.

    Workers are first. The spec keeps its numbers; volumes, Services and configuration
    stay. `rollout pause` stops the operator's writes instead, and no pod.
    Example: dynamoctl suspend chat
    """
    await _edit(name, where, lambda at, graph: at.suspend(graph))


async def resume(name: options.GraphName, /, *, where: options.Where = options.HERE) -> None:
    """Restore the replicas of a suspended graph.

    Frontends are first. A graph that `rollout pause` has paused takes `rollout resume`.

    Example: dynamoctl resume chat
    """
    await _edit(name, where, lambda at, graph: at.resume(graph))


def rollout() -> App:
    """`dynamoctl rollout …`."""
    tool = application("rollout", "Follow, pause, restart or undo the rollout of a graph.")
    tool.command(_status, name="status")
    tool.command(_pause, name="pause")
    tool.command(_resume, name="resume")
    tool.command(_restart, name="restart")
    tool.command(_history, name="history")
    tool.command(_undo, name="undo")
    return tool


def _status(
    name: options.ObjectName, /, *, where: options.Where = options.HERE, output: options.Output = ""
) -> int:
    """Show the status of a graph on each change until it is ready: `dynamoctl status --watch`.

    Exits with 1 if the graph is deleted, 3 if the cluster does not answer.
    Example: dynamoctl rollout status chat
    """
    from dynamoctl.inspect.tree import print_status

    return options.run(print_status(name, where, output, watch=True))


async def _pause(name: options.ObjectName, /, *, where: options.Where = options.HERE) -> None:
    """Pause the reconciliation of an object until `rollout resume`.

    Running pods keep running, and Kubernetes keeps working on existing objects. A
    paused graph can be edited and deleted.
    Example: dynamoctl rollout pause chat
    """
    await _mark(name, where, is_paused=True)


async def _mark(name: str, where: options.Where, *, is_paused: bool) -> None:
    from dynamo_graphs.edits import mark
    from dynamo_graphs.reader import STATED
    from dynamo_operator.labels import PAUSED
    from dynamoctl.target import target_of

    async with target_of(name, where, STATED) as at:
        _print(await mark(at, PAUSED, is_on=is_paused))


async def _resume(name: options.ObjectName, /, *, where: options.Where = options.HERE) -> None:
    """Resume the reconciliation of an object and roll out pending changes at once.

    Example: dynamoctl rollout resume chat
    """
    await _mark(name, where, is_paused=False)


async def _restart(name: options.GraphName, /, *, where: options.Where = options.HERE) -> None:
    """Restart the services of a graph, in the order of `spec.restart.strategy`.

    It sets `spec.restart.id` to the current time. It is refused during a managed
    rollout, which replaces the workers anyway.
    Example: dynamoctl rollout restart chat
    """
    await _edit(name, where, lambda at, graph: at.restart(graph))


def _history(
    name: options.GraphName,
    /,
    *,
    revision: _Revision = None,
    where: options.Where = options.HERE,
    output: options.TextOutput = "text",
) -> None:
    """List the former specs of a graph, the current one last, with what changed in each.

    The operator keeps the last 10, or as many as the graph's annotation
    `nvidia.com/revision-history-limit` says. Scaling and restarts make no revision.
    Example: dynamoctl rollout history chat --revision 3

    Parameters
    ----------
    revision
        Print the whole spec of this revision instead.
    """
    from dynamoctl.change.apply import print_history

    options.run(print_history(name, where, output, revision))


async def _undo(
    name: options.GraphName,
    /,
    *,
    to_revision: _Revision = None,
    dry_run: bool = False,
    where: options.Where = options.HERE,
) -> None:
    """Return a graph to a former spec. Replicas stay as they are.

    A service that was removed comes back with the replicas that it had. A GitOps
    tool or the next apply of the manifest overwrites it: change the manifest too.
    Example: dynamoctl rollout undo chat --to-revision 3 --dry-run

    Parameters
    ----------
    to_revision
        Revision to return to (default: the one before the current).
    dry_run
        Show what would change, and which pods would restart, without changing it.
    """
    from dynamoctl.change.apply import print_changes
    from dynamoctl.target import cluster, parse_graph

    graph = parse_graph(name)
    async with cluster(where) as at:
        done = await at.undo(graph, to_revision, dry_run=dry_run)
    if done.change is not None:
        print_changes([done.change])
    else:
        _print(done)
