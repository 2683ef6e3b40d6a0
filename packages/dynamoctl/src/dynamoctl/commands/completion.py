"""Shell completion: commands, options and their values, and names from the cluster.

A shell asks at every Tab, so a cluster that does not answer within a moment counts as empty.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise

from cyclopts import App, CycloptsError

from dynamo_graphs.reader import Namespace
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamoctl.options import HERE, Where
from dynamoctl.target import cluster
from kube_runtime.errors import OperatorError
from kube_runtime.types.meta import Key, Resource, metadata_type

_SECONDS = 1.5
"""Longest wait for the cluster."""

_COLLECTIONS: Mapping[str, type[Resource]] = {
    **dict.fromkeys(
        (
            *("why", "status", "tree", "events", "logs", "scale", "suspend", "resume"),
            *("chat", "curl", "port-forward", "top"),
            *(f"rollout {verb}" for verb in ("status", "pause", "resume", "restart")),
            *("rollout history", "rollout undo"),
        ),
        DynamoGraphDeployment,
    ),
    "models": DynamoModel,
    **dict.fromkeys(("requests", "requests why"), DynamoGraphDeploymentRequest),
}
"""The kind that the first argument of a command names."""

SCRIPTS = {
    "bash": """\
_dynamoctl() {
    local IFS=$'\\n'
    COMPREPLY=($(dynamoctl __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
    [[ ${COMPREPLY[0]} == */ ]] && compopt -o nospace
}
complete -o default -F _dynamoctl dynamoctl
""",
    "zsh": """\
#compdef dynamoctl
_dynamoctl() {
    local -a found
    found=("${(@f)$(dynamoctl __complete "${(@)words[2,CURRENT]}" 2>/dev/null | cut -f1)}")
    if [[ -n ${found[1]} ]]; then compadd -- $found; else _files; fi
}
compdef _dynamoctl dynamoctl
""",
    "fish": """\
complete -c dynamoctl -a '(dynamoctl __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}


def print_candidates(app: App, words: Sequence[str]) -> None:
    """Print the candidates at the end of `words`, one per line, each with its description."""
    for word, text in candidates(app, words).items():
        print(f"{word}\t{text}" if text else word)


def candidates(app: App, words: Sequence[str]) -> dict[str, str]:
    """The words that may stand at the end of `words`, with descriptions; "" at the end begins a new one."""
    *rest, begun = words or ("",)
    names, apps, rest = app.parse_commands(rest)
    command, app = " ".join(names), apps[-1]
    arguments = app.assemble_argument_collection() if app.default_command else ()
    options = {name: it for it in arguments for name in it.names if name.startswith("-")}
    valued = {name for name, argument in options.items() if not argument.is_flag()}
    before = rest[-1] if rest else ""
    is_first = all(word.startswith("-") or option in valued for option, word in pairwise(["", *rest]))
    texts: dict[str, str] = {}
    if begun.startswith("-"):
        texts = dict.fromkeys([*(name for name in options if name.startswith("--")), "--help"], "")
    elif before in ("-n", "--namespace"):
        texts = dict.fromkeys(_asked(Namespace, rest[:-1]), "")
    elif before in valued:
        texts = dict.fromkeys(options[before].get_choices() or (), "")
    elif command == "get" and is_first:
        texts = dict.fromkeys(("dgd", "dcd", "dgdsa", "dm", "dgdr"), "")
    elif command not in _COLLECTIONS or is_first:
        texts = {name: app[name].help.strip().partition("\n")[0] for name in sorted(app) if name[0] != "-"}
        if command in _COLLECTIONS:
            texts |= dict.fromkeys(_names(command, begun, rest), "")
    return {word: text for word, text in texts.items() if word.startswith(begun)}


def _names(command: str, begun: str, words: Sequence[str]) -> list[str]:
    graph, slash, _ = begun.partition("/")
    if command in ("logs", "scale") and slash:
        return [f"{graph}/{key}" for key in _asked(DynamoGraphDeployment, words, graph)]
    end = "/" if command == "scale" else ""
    return [f"{name}{end}" for name in _asked(_COLLECTIONS[command], words)]


def _where(*, where: Where = HERE) -> Where:
    return where


def _asked(type_: type[Resource], words: Sequence[str], graph: str = "") -> list[str]:
    """Names in the cluster that the words name: of the objects of a kind, or of the services of a graph."""
    try:
        _, given, *_ = App(default_command=_where).parse_known_args(words)
        where = _where(**given.kwargs)
        return asyncio.run(asyncio.wait_for(_listed(type_, where, graph), _SECONDS))
    except (CycloptsError, OSError, TimeoutError, OperatorError):
        return []  # a shell shows nothing then; the command itself reports the cause


async def _listed(type_: type[Resource], where: Where, graph: str) -> list[str]:
    async with cluster(where) as at:
        client = at.reading.client
        if graph:
            stored = await client.get(DynamoGraphDeployment, Key(at.namespace, graph))
            return sorted(stored.spec.services)
        namespace = at.namespace if type_.KIND.namespaced else ""
        pages = client.pages(metadata_type(type_), namespace=namespace)
        return sorted([it.metadata.name async for page in pages for it in page.items])
