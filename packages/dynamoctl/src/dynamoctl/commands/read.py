"""Commands that list and show objects, Events and logs."""

from pathlib import Path
from typing import Annotated

from cyclopts import CycloptsError, Parameter

from dynamoctl.options import (
    HERE,
    LISTING,
    Everywhere,
    GraphName,
    ListOptions,
    ObjectName,
    Output,
    Watch,
    Where,
    run,
)


def get(
    *targets: Annotated[str, Parameter(name="TARGET", show_default=False)],
    where: Where = HERE,
    options: ListOptions = LISTING,
    output: Output = "",
) -> int:
    """List graphs and other objects, or those with a name.

    Kinds are dgd (graphs), dcd (components), dgdsa (scaling adapters), dm (models),
    dgdr (requests) and all. Any other word is the name of a graph. They are printed in
    v1beta1 where the cluster serves it, or in the version that is named, as for kubectl:
    dgd.v1alpha1.nvidia.com.
    Example: dynamoctl get dgd,dm -A -o wide

    Parameters
    ----------
    targets
        What kubectl takes: KIND, KIND NAME, KIND/NAME, or NAME of a graph (default: all graphs).
    """
    from dynamoctl.inspect.listing import print_list

    return run(print_list(targets, where, output, options))


def why(
    name: ObjectName = "",
    /,
    *,
    where: Where = HERE,
    every: Annotated[bool, Parameter(name="--all")] = False,
    everywhere: Everywhere = False,
    output: Output = "",
) -> int:
    """Explain why a graph is not ready, and what to do.

    Exits with 0 if it is ready, 1 if it is not ready or not found, 3 if the
    cluster does not answer.
    Example: dynamoctl why chat

    Parameters
    ----------
    every
        Explain everything in the namespace that is not ready, instead of one object.
    everywhere
        With --all: in all namespaces.
    """
    from dynamoctl.inspect.why import print_reasons

    return run(print_reasons(name, where, output, every=every, everywhere=everywhere))


def status(name: ObjectName, /, *, where: Where = HERE, watch: Watch = False, output: Output = "") -> int:
    """Show the status of a graph: its services and conditions.

    Exits with 0 if it is ready, 1 if it is not ready or not found, 3 if the
    cluster does not answer.
    Example: dynamoctl status chat --watch

    Parameters
    ----------
    watch
        Show it again on each change until it is ready.
    """
    from dynamoctl.inspect.tree import print_status

    return run(print_status(name, where, output, watch=watch))


def tree(name: ObjectName, /, *, where: Where = HERE, output: Output = "") -> int:
    """Show the objects of a graph down to its pods.

    Below a scaling adapter is its component, below a model each pod that loads it,
    below a request its profiling Job and its graph. Kinds that you cannot list are
    named on stderr and left out. Exits with 0 if the object is ready, 1 if it is not
    ready or not found, 3 if the cluster does not answer.
    Example: dynamoctl tree chat
    """
    from dynamoctl.inspect.tree import print_tree

    return run(print_tree(name, where, output))


def events(name: ObjectName, /, *, where: Where = HERE, warnings: bool = False, output: Output = "") -> int:
    """Show the Events of a graph and of all that it owns.

    The newest is last.
    Example: dynamoctl events chat --warnings

    Parameters
    ----------
    warnings
        Show Events of type Warning only.
    """
    from dynamoctl.inspect.listing import print_events

    return run(print_events(name, where, output, only_warnings=warnings))


async def logs(
    name: Annotated[str, Parameter(name="GRAPH")],
    /,
    *,
    where: Where = HERE,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"])] = False,
    previous: Annotated[bool, Parameter(name=["--previous", "-p"])] = False,
    container: Annotated[str, Parameter(name=["--container", "-c"], metavar="NAME")] = "main",
    tail: Annotated[int, Parameter(metavar="LINES", allow_leading_hyphen=True)] = 100,
    since: Annotated[str, Parameter(metavar="DURATION", show_default=False)] = "",
    timestamps: bool = False,
) -> int:
    """Print the logs of a graph's pods.

    Each line stands after the name of its pod.
    Example: dynamoctl logs chat/Decode -f

    Parameters
    ----------
    name
        Graph, or GRAPH/SERVICE for one of its services, for example chat/Decode.
    follow
        Follow the logs until Ctrl-C, through restarts and of new pods too.
    previous
        Print the logs of the container before its last restart.
    container
        Container of the pods.
    tail
        Number of last lines of each pod to begin with; -1 is all.
    since
        Print only lines newer than this, for example 10m.
    timestamps
        Print the time of each line.
    """
    from dynamo_graphs.logs import log_query
    from dynamoctl.inspect.logs import print_logs
    from dynamoctl.screen import seconds

    if tail < -1:
        raise CycloptsError(f"invalid --tail {tail} (expected a number of lines, or -1)")
    if previous and follow:
        raise CycloptsError("--previous and --follow exclude each other")
    length = seconds(since) if since else None
    query = log_query(container, tail, since_seconds=length, previous=previous, follow=follow)
    return await print_logs(name, where, query, has_timestamps=timestamps)


def report(
    name: GraphName,
    /,
    *,
    where: Where = HERE,
    file: Annotated[Path | None, Parameter(metavar="FILE", show_default=False)] = None,
) -> int:
    """Write an archive about a graph, without secrets, for support.

    It never reads Secrets and removes values that look like tokens or passwords.
    Example: dynamoctl report chat --file chat.tar.gz

    Parameters
    ----------
    file
        Archive to create (default: dynamo-NAME-TIME.tar.gz).
    """
    from dynamoctl.inspect.report import write_report

    return run(write_report(name, where, file))
