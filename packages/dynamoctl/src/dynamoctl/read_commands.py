"""The commands that list and follow what graphs are made of, as they are typed."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from dynamoctl.cluster_options import HERE, Where
from dynamoctl.log_options import ALL_LINES, LogOptions
from kube_runtime.commandline.application import application

_Name = Annotated[str, Parameter(metavar="NAME", show_default=False)]
_Optional = Annotated[str, Parameter(metavar="NAME", show_default=False)]
_All = Annotated[bool, Parameter(name=["--all-namespaces", "-A"])]
_Watch = Annotated[bool, Parameter(name=["--watch", "-w"])]
_Selector = Annotated[
    str, Parameter(name=["--selector", "-l"], metavar="LABELS", show_default=False)
]
_Rows = Annotated[
    Literal["table", "wide", "json", "yaml", "name"], Parameter(name=["--output", "-o"])
]
_Output = Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])]


def get(
    kind: Annotated[str, Parameter(metavar="KIND", show_default=False)] = "dgd",
    /,
    *,
    where: Where = HERE,
    everywhere: _All = False,
    selector: _Selector = "",
    watch: _Watch = False,
    output: _Rows = "table",
) -> int:
    """List graphs, or the objects of another kind: dgd, dcd, dgdsa, dm or dgdr.

    Example: dynamoctl get -A -o wide

    Parameters
    ----------
    kind
        Kind to list (default: dgd, the graphs).
    everywhere
        List all namespaces.
    selector
        Label selector, for example team=search.
    watch
        Redraw the table on each change until Ctrl-C; a pipe gets each changed row.
    output
        Output format: `wide` adds columns, `name` prints one KIND/NAME per line.
    """
    from dynamoctl.listing import print_list

    return int(
        print_list(kind, where, output, everywhere=everywhere, selector=selector, watch=watch)
    )


def models(
    name: _Optional = "",
    /,
    *,
    where: Where = HERE,
    everywhere: _All = False,
    watch: _Watch = False,
    output: _Rows = "table",
) -> int:
    """List models, or show where one is loaded and why not everywhere.

    Example: dynamoctl models support-lora

    Parameters
    ----------
    name
        Model to show: its endpoints with their load state (default: list all models).
    everywhere
        List all namespaces.
    watch
        Redraw the list on each change until Ctrl-C.
    output
        Output format.
    """
    from dynamoctl.details import print_model
    from dynamoctl.listing import print_list

    if name:
        return int(print_model(name, where, output))
    return int(print_list("dm", where, output, everywhere=everywhere, selector="", watch=watch))


def requests() -> App:
    """`dynamoctl requests …`."""
    tool = application("requests")
    tool.default(_requests)
    tool.command(_why, name="why")
    return tool


def _requests(
    name: _Optional = "",
    /,
    *,
    where: Where = HERE,
    everywhere: _All = False,
    watch: _Watch = False,
    output: _Rows = "table",
) -> int:
    """List profiling requests, or show the phase of one and why it is there.

    Example: dynamoctl requests llama-sla

    Parameters
    ----------
    name
        Request to show (default: list all requests).
    everywhere
        List all namespaces.
    watch
        Redraw the list on each change until Ctrl-C.
    output
        Output format.
    """
    from dynamoctl.details import print_request
    from dynamoctl.listing import print_list

    if name:
        return int(print_request(name, where, output))
    return int(print_list("dgdr", where, output, everywhere=everywhere, selector="", watch=watch))


def _why(
    name: _Name,
    /,
    *,
    where: Where = HERE,
    interval: Annotated[str, Parameter(metavar="DURATION")] = "10s",
    output: _Output = "text",
) -> int:
    """Compare the latency that a request asked for with that of its running graph.

    It reads the metrics of each frontend pod through the API server, twice, and
    says which target is missed, by how much, and what to do. Without requests in
    between, it shows the means since the frontends started. Exits with 1 if a
    target is missed or nothing can be measured.
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
    from dynamoctl.ages import interval_seconds
    from dynamoctl.measured import print_measured

    return int(print_measured(name, where, output, interval_seconds(interval)))


def events(
    name: _Name,
    /,
    *,
    where: Where = HERE,
    warnings: Annotated[bool, Parameter(name="--warnings")] = False,
    output: _Output = "text",
) -> int:
    """Show the Events of a graph and of every object that it owns, the newest last.

    Example: dynamoctl events chat --warnings

    Parameters
    ----------
    name
        Graph: NAME or dgd/NAME.
    warnings
        Show Events of type Warning only.
    output
        Output format: `text` for people, `json` for machines.
    """
    from dynamoctl.events import print_events

    return int(print_events(name, where, output, only_warnings=warnings))


def logs(
    name: Annotated[str, Parameter(metavar="NAME[/SERVICE]", show_default=False)],
    /,
    *,
    where: Where = HERE,
    options: LogOptions = ALL_LINES,
) -> int:
    """Print the logs of all pods of a graph or of one service, each line after its pod.

    Example: dynamoctl logs chat/Decode -f

    Parameters
    ----------
    name
        Graph, or a graph and the key of one of its services, for example chat/Decode.
    """
    from dynamoctl.logs import print_logs

    return int(print_logs(name, where, options))


def report(
    name: _Name,
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
    name
        Graph: NAME or dgd/NAME.
    file
        Archive to create (default: dynamo-NAME-TIME.tar.gz).
    """
    from dynamoctl.report import write_report

    return int(write_report(name, where, file))
