"""Commands that list and show objects, Events and logs."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from dynamoctl.options import (
    HERE,
    Everywhere,
    GraphName,
    Name,
    ObjectName,
    TextOrJson,
    TextOutput,
    Watch,
    Where,
    run,
)
from kube_runtime.commandline import application

_Selector = Annotated[str, Parameter(name=["--selector", "-l"], metavar="LABELS", show_default=False)]
_Rows = Annotated[
    Literal["table", "wide", "json", "yaml", "name"],
    Parameter(
        name=["--output", "-o"],
        help="Output format: `wide` adds columns, `name` prints one KIND/NAME per line.",
    ),
]
_WatchRows = Annotated[
    Watch, Parameter(help="Redraw the table on each change until Ctrl-C; a pipe gets each changed row.")
]
_AllNamespaces = Annotated[Everywhere, Parameter(help="List all namespaces.")]


def get(
    kind: Annotated[str, Parameter(metavar="KIND", show_default=False)] = "dgd",
    /,
    *,
    where: Where = HERE,
    everywhere: _AllNamespaces = False,
    selector: _Selector = "",
    watch: _WatchRows = False,
    output: _Rows = "table",
) -> int:
    """List graphs, or the objects of another kind: dgd, dcd, dgdsa, dm or dgdr.

    Example: dynamoctl get -A -o wide

    Parameters
    ----------
    kind
        Kind to list (default: dgd, the graphs).
    selector
        Label selector, for example team=search.
    """
    from dynamoctl.inspect.listing import print_list

    return run(print_list(kind, where, output, everywhere=everywhere, selector=selector, watch=watch))


def why(
    name: ObjectName = "",
    /,
    *,
    where: Where = HERE,
    every: Annotated[bool, Parameter(name="--all")] = False,
    everywhere: Everywhere = False,
    output: TextOutput = "text",
) -> int:
    """Explain why a graph is not ready: the cause, since when, and what to do.

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


def status(
    name: ObjectName, /, *, where: Where = HERE, watch: Watch = False, output: TextOutput = "text"
) -> int:
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


def tree(name: GraphName, /, *, where: Where = HERE, output: TextOutput = "text") -> int:
    """Show all objects of a graph down to its pods, their readiness, and what blocks a pod.

    Kinds that you cannot list are named on stderr and left out. Exits with 0 if
    the graph is ready, 1 if it is not ready or not found, 3 if the cluster does
    not answer.
    Example: dynamoctl tree chat
    """
    from dynamoctl.inspect.tree import print_tree

    return run(print_tree(name, where, output))


def models(
    name: Name = "",
    /,
    *,
    where: Where = HERE,
    everywhere: _AllNamespaces = False,
    watch: _WatchRows = False,
    output: _Rows = "table",
) -> int:
    """List models, or show where one is loaded, and why not everywhere.

    Example: dynamoctl models support-lora

    Parameters
    ----------
    name
        Model to show: its endpoints with their load state (default: list all models).
    """
    return _listed_or_shown("dm", name, where, everywhere, watch, output)


def requests() -> App:
    """`dynamoctl requests …`."""
    tool = application("requests")
    tool.default(_requests)
    tool.command(_why, name="why")
    return tool


def _requests(
    name: Name = "",
    /,
    *,
    where: Where = HERE,
    everywhere: _AllNamespaces = False,
    watch: _WatchRows = False,
    output: _Rows = "table",
) -> int:
    """List profiling requests, or show the phase of one and why it is there.

    Example: dynamoctl requests llama-sla

    Parameters
    ----------
    name
        Request to show (default: list all requests).
    """
    return _listed_or_shown("dgdr", name, where, everywhere, watch, output)


def _listed_or_shown(kind: str, name: str, where: Where, everywhere: bool, watch: bool, output: str) -> int:
    if name and (everywhere or watch):
        raise CycloptsError("--all-namespaces and --watch list: expected no NAME")
    if name:
        from dynamoctl.inspect.tree import print_detail

        return run(print_detail(kind, name, where, output))
    from dynamoctl.inspect.listing import print_list

    return run(print_list(kind, where, output, everywhere=everywhere, selector="", watch=watch))


def _why(
    name: Name,
    /,
    *,
    where: Where = HERE,
    interval: Annotated[str, Parameter(metavar="DURATION")] = "10s",
    output: TextOrJson = "text",
) -> int:
    """Compare the latency that a request asked for with that of its running graph.

    It reads the metrics of each frontend pod through the API server, twice, and
    says which target is missed, by how much, and what to do. Without requests in
    between, it shows the means since the frontends started. Exits with 1 if a
    target is missed or nothing can be measured, 3 if the cluster does not answer.
    Example: dynamoctl requests why llama-sla

    Parameters
    ----------
    name
        Request: NAME or dgdr/NAME.
    interval
        Time between two readings, from 1s to 1h.
    output
        Output format: `text` for people, `json` for machines; times in seconds.
    """
    from dynamoctl.inspect.measured import print_measured
    from dynamoctl.screen import interval_seconds

    return run(print_measured(name, where, output, interval_seconds(interval)))


def events(
    name: GraphName, /, *, where: Where = HERE, warnings: bool = False, output: TextOutput = "text"
) -> int:
    """Show the Events of a graph and of every object that it owns, the newest last.

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
    """Print the logs of all pods of a graph or of one service, each line after its pod.

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
    """Write an archive about a graph for others to read: objects, Events, logs, no secrets.

    It never reads Secrets and removes values that look like tokens or passwords.
    Example: dynamoctl report chat --file chat.tar.gz

    Parameters
    ----------
    file
        Archive to create (default: dynamo-NAME-TIME.tar.gz).
    """
    from dynamoctl.inspect.report import write_report

    return run(write_report(name, where, file))
