"""Commands that send requests to the frontends of graphs, or read their metrics."""

import re
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from dynamoctl.options import HERE, Everywhere, GraphName, Name, Output, TextOrJson, Watch, Where, run


def _not_empty(_type: object, value: str) -> None:
    """An empty address would listen on all networks."""
    if not value:
        raise ValueError("expected an address, for example 127.0.0.1")


def _is_method(_type: object, value: str) -> None:
    if value and not re.fullmatch("[A-Za-z]+", value):
        raise ValueError("expected letters, for example PUT")


def chat(
    name: GraphName,
    prompt: Annotated[str, Parameter(metavar="PROMPT", show_default=False)] = "",
    /,
    *,
    where: Where = HERE,
    model: Annotated[str, Parameter(metavar="MODEL", show_default=False)] = "",
    max_tokens: Annotated[int, Parameter(metavar="TOKENS", validator=Number(gte=1))] = 512,
    output: TextOrJson = "text",
) -> int:
    """Ask the model of a graph, and measure its answer.

    It shows the time to the first token and the tokens per second.

    The request goes through the API server to the frontend, so no port has to be forwarded.
    Example: dynamoctl chat chat "What is a pod?"

    Parameters
    ----------
    prompt
        Question. Without it, each line that you type is one, and the answers are remembered.
    model
        Model or LoRA to ask (default: the first one that the frontend lists).
    max_tokens
        Most tokens of an answer.
    output
        Output format: `text` streams the answer, `json` prints it with its times at the end.
    """
    from dynamoctl.frontend.chat import print_chat

    return run(print_chat(name, where, prompt, model=model, max_tokens=max_tokens, output=output))


def curl(
    name: GraphName,
    path: Annotated[str, Parameter(metavar="PATH")] = "/v1/models",
    /,
    *,
    where: Where = HERE,
    request: Annotated[
        str, Parameter(name=["--request", "-X"], metavar="METHOD", show_default=False, validator=_is_method)
    ] = "",
    data: Annotated[str | None, Parameter(name=["--data", "-d"], metavar="DATA", show_default=False)] = None,
) -> int:
    """Send an HTTP request to the frontend of a graph.

    Exits with 1 if the frontend answers with an error.
    Example: dynamoctl curl chat /v1/completions -d @request.json

    Parameters
    ----------
    path
        Path of the URL, with its query.
    request
        HTTP method (default: GET, with --data POST).
    data
        Body: text, @FILE or @- for stdin.
    """
    from dynamoctl.frontend.chat import body_of, print_answer

    # Not in the event loop, where the first Ctrl-C would not end a read of standard input.
    body = body_of(data)
    return run(print_answer(name, where, path, method=request, body=body))


def port_forward(
    name: GraphName,
    /,
    *,
    where: Where = HERE,
    port: Annotated[
        int, Parameter(name=["--port", "-p"], metavar="PORT", validator=Number(gte=0, lte=65535))
    ] = 8000,
    address: Annotated[str, Parameter(metavar="ADDRESS", validator=_not_empty)] = "127.0.0.1",
) -> int:
    """Forward a local port to the frontend of a graph.

    It forwards HTTP until Ctrl-C. The URL is printed on stdout. It continues while pods are replaced.
    Example: dynamoctl port-forward chat --port 0

    Parameters
    ----------
    port
        Local port; 0 is any free one.
    address
        Local address to listen on.
    """
    from dynamoctl.frontend.forward import forward

    return run(forward(name, where, port=port, address=address))


def top(
    name: Name = "",
    /,
    *,
    where: Where = HERE,
    everywhere: Everywhere = False,
    watch: Watch = False,
    interval: Annotated[str, Parameter(metavar="DURATION", show_default=False)] = "",
    output: Output = "",
) -> int:
    """Show the load and the latency of graphs and requests.

    It reads the metrics of each frontend pod through the API server, twice, and
    shows what happened in between. `-` means that no request came, or that
    metrics are missing; stderr says why.

    For a request, `dgdr/NAME`, it compares the latency that the request asked for
    with that of its running graph, says what to do, and exits with 1 if a target is
    missed or nothing can be measured.
    Example: dynamoctl top -A --watch

    Parameters
    ----------
    name
        Graph, or dgdr/NAME for a request (default: all graphs).
    everywhere
        Show the graphs of all namespaces.
    watch
        Show it again after each interval until Ctrl-C; a terminal is redrawn in place.
    interval
        Time between two readings, from 1s to 1h (default: 2s, for a request 10s).
    """
    from dynamoctl.inspect.top import print_top
    from dynamoctl.screen import interval_seconds

    between = interval_seconds(interval) if interval else None
    return run(print_top(name, where, output, everywhere=everywhere, watch=watch, interval_seconds=between))
