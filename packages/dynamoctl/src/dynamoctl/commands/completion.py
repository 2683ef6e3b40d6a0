"""Shell completion: commands, options and their values, and names from the cluster.

A shell asks at every Tab, so a cluster that does not answer within a moment counts as empty.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from cyclopts import App

from dynamo_graphs.reader import Namespace
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamoctl.options import Where
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
    names: list[str] = []
    while rest and not rest[0].startswith("-") and rest[0] in [*app]:
        names.append(rest.pop(0))
        app = app[names[-1]]
    command = " ".join(names)
    arguments = list(app.assemble_argument_collection()) if app.default_command else []
    options = {name: it for it in arguments for name in it.names if name.startswith("-")}
    valued = {name for name, argument in options.items() if not argument.is_flag()}
    positionals = [
        word for before, word in pairwise(["", *rest]) if not word.startswith("-") and before not in valued
    ]
    commands = {
        name: app[name].help.strip().partition("\n")[0] for name in sorted(app) if not name.startswith("-")
    }
    choices: Mapping[str, str] = {}
    if begun.startswith("-"):
        choices = dict.fromkeys([*(it for it in options if it.startswith("--")), "--help"], "")
    elif rest and rest[-1] in ("-n", "--namespace"):
        choices = dict.fromkeys(_asked(Namespace, rest), "")
    elif rest and rest[-1] in valued:
        choices = dict.fromkeys(options[rest[-1]].get_choices() or (), "")
    elif command == "get" and not positionals:
        choices = dict.fromkeys(("dgd", "dcd", "dgdsa", "dm", "dgdr"), "")
    elif command not in _COLLECTIONS:
        choices = commands
    elif not positionals:
        choices = {**commands, **dict.fromkeys(_names(command, begun, rest), "")}
    return {word: text for word, text in choices.items() if word.startswith(begun)}


def _names(command: str, begun: str, words: Sequence[str]) -> list[str]:
    graph, slash, _ = begun.partition("/")
    if command in ("logs", "scale") and slash:
        return [f"{graph}/{key}" for key in _asked(DynamoGraphDeployment, words, graph)]
    end = "/" if command == "scale" else ""
    return [f"{name}{end}" for name in _asked(_COLLECTIONS[command], words)]


def _asked(type_: type[Resource], words: Sequence[str], graph: str = "") -> list[str]:
    """Names in the cluster that the words name: of the objects of a kind, or of the services of a graph."""
    given = dict(pairwise(words)) | dict(word.split("=", 1) for word in words if "=" in word)
    file = given.get("--kubeconfig")
    namespace = given.get("-n") or given.get("--namespace") or ""
    where = Where(namespace, given.get("--context", ""), Path(file) if file else None)
    try:
        return asyncio.run(asyncio.wait_for(_listed(type_, where, graph), _SECONDS))
    except (OSError, TimeoutError, OperatorError):
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
