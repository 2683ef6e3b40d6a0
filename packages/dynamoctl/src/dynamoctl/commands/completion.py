"""Shell completion: commands, options and their values, and names from the cluster.

A shell asks at every Tab, so a cluster that does not answer within a moment counts as empty.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from cyclopts import App

from dynamo_graphs.reader import Namespace
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamoctl.options import Where
from dynamoctl.target import cluster
from kube_runtime.errors import OperatorError
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource, metadata_type

_SECONDS = 1.5
"""Longest wait for the cluster."""

_COLLECTIONS: Mapping[str, type[Resource]] = {
    **dict.fromkeys(
        (
            "why",
            "status",
            "tree",
            "events",
            "logs",
            "scale",
            "suspend",
            "resume",
            "chat",
            "curl",
            "port-forward",
            "top",
        ),
        DynamoGraphDeployment,
    ),
    **dict.fromkeys(
        (f"rollout {verb}" for verb in ("status", "pause", "resume", "restart", "history", "undo")),
        DynamoGraphDeployment,
    ),
    "models": DynamoModel,
    **dict.fromkeys(("requests", "requests why"), DynamoGraphDeploymentRequest),
}
"""The kind that the first argument of a command names."""

_WITH_SERVICE = ("logs", "scale")
_KINDS = ("dgd", "dcd", "dgdsa", "dm", "dgdr")

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word that may be completed at the cursor, and its description."""

    word: str
    text: str = ""


def print_candidates(app: App, words: Sequence[str]) -> None:
    """Print the candidates at the end of `words`, one per line, each with its description."""
    for candidate in candidates(app, words):
        print(f"{candidate.word}\t{candidate.text}" if candidate.text else candidate.word)


def candidates(app: App, words: Sequence[str]) -> list[Candidate]:
    """The candidates at the end of `words`; "" at the end begins a new one."""
    *before, begun = words or ("",)
    command, path, rest = _command(app, before)
    if begun.startswith("-"):
        choices = _options(command)
    elif rest and rest[-1].startswith("-") and _takes_value(command, rest[-1]):
        choices = _values(command, rest[-1], rest)
    elif path == "get" and not _positionals(command, rest):
        choices = [Candidate(kind) for kind in _KINDS]
    elif path in _COLLECTIONS and not _positionals(command, rest):
        choices = [*_subcommands(command), *_names(path, begun, rest)]
    else:
        choices = [] if path in _COLLECTIONS else _subcommands(command)
    return [choice for choice in choices if choice.word.startswith(begun)]


def _command(app: App, words: Sequence[str]) -> tuple[App, str, list[str]]:
    """The command that the words name, its full name, and the words after it."""
    path: list[str] = []
    rest = list(words)
    while rest and not rest[0].startswith("-") and rest[0] in _visible(app):
        path.append(rest.pop(0))
        app = app[path[-1]]
    return app, " ".join(path), rest


def _visible(app: App) -> list[str]:
    return [name for name in app if not name.startswith("-")]


def _subcommands(app: App) -> list[Candidate]:
    return [Candidate(name, _help(app[name])) for name in sorted(_visible(app))]


def _help(app: App) -> str:
    return app.help.strip().partition("\n")[0]


def _arguments(command: App) -> list[Any]:
    return list(command.assemble_argument_collection()) if command.default_command else []


def _options(command: App) -> list[Candidate]:
    return [
        Candidate(name)
        for argument in _arguments(command)
        for name in argument.names
        if name.startswith("--")
    ] + [Candidate("--help")]


def _argument(command: App, option: str) -> Any:
    return next((argument for argument in _arguments(command) if option in argument.names), None)


def _takes_value(command: App, option: str) -> bool:
    argument = _argument(command, option)
    return argument is not None and not argument.is_flag()


def _values(command: App, option: str, words: Sequence[str]) -> list[Candidate]:
    if option in ("-n", "--namespace"):
        return [Candidate(namespace) for namespace in _asked(Namespace, words)]
    choices = _argument(command, option).get_choices() or ()
    return [Candidate(choice) for choice in choices]


def _positionals(command: App, words: Sequence[str]) -> list[str]:
    positionals, is_value = [], False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = "=" not in word and _takes_value(command, word)
        else:
            positionals.append(word)
    return positionals


def _names(path: str, begun: str, words: Sequence[str]) -> list[Candidate]:
    graph, slash, _ = begun.partition("/")
    if path in _WITH_SERVICE and slash:
        return [
            Candidate(f"{graph}/{service}")
            for service in _asked(DynamoGraphDeployment, words, graph)
        ]
    names = _asked(_COLLECTIONS[path], words)
    end = "/" if path == "scale" else ""
    return [Candidate(f"{name}{end}") for name in names]


def _asked(type_: type[Resource], words: Sequence[str], graph: str = "") -> list[str]:
    """Names in the cluster: of the objects of a kind, or of the services of a graph."""
    try:
        return asyncio.run(asyncio.wait_for(_listed(type_, _where(words), graph), _SECONDS))
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


def _where(words: Sequence[str]) -> Where:
    """The cluster and the namespace that the words name."""
    given = dict(pairwise(words))
    given |= dict(word.split("=", 1) for word in words if "=" in word)
    file = given.get("--kubeconfig")
    return Where(
        namespace=given.get("-n") or given.get("--namespace") or "",
        context=given.get("--context", ""),
        kubeconfig=Path(file) if file else None,
    )
