"""Shell completion: commands, options and their values, and names from the cluster.

A shell asks at every Tab, so a cluster that does not answer within a moment counts as empty.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError

from dynamoctl.options import ABOUT_ONE, FORMATS, HERE, Where, in_order
from kube_runtime.errors import OperatorError

if TYPE_CHECKING:  # what reads a cluster takes longer to import than all else here
    from kube_runtime.types.meta import Resource

_SECONDS = 1.5
"""Longest wait for the cluster."""

_OF_ANY_KIND = ("why", "status", "tree", "events", "top", "rollout status", "rollout pause", "rollout resume")
"""Commands whose argument is a graph, or KIND/NAME."""
_OF_GRAPHS = (
    *("logs", "scale", "suspend", "resume", "chat", "curl", "port-forward", "report"),
    *("rollout restart", "rollout history", "rollout undo"),
)
"""Commands whose argument is a graph."""
_GRAPHS = "dgd"
_KINDS = (_GRAPHS, "dcd", "dgdsa", "dm", "dgdr")
"""The short names of the kinds whose objects have a status."""
_NAMESPACES = "namespaces"

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
    *typed, begun = words or ("",)
    names, apps, rest = app.parse_commands(in_order(app, typed))
    command, app = " ".join(names), apps[-1]
    arguments = app.assemble_argument_collection() if app.default_command else ()
    options = {name: it for it in arguments for name in it.names if name.startswith("-")}
    valued = {name for name, argument in options.items() if not argument.is_flag()}
    before = typed[-1] if typed else ""
    positional = [word for option, word in pairwise(["", *rest]) if word[0] != "-" and option not in valued]
    texts: dict[str, str] = {}
    if begun.startswith("-"):
        texts = dict.fromkeys([*(name for name in options if name.startswith("--")), "--help"], "")
    elif before in ("-n", "--namespace"):
        texts = dict.fromkeys(_asked(_NAMESPACES, rest[:-1]), "")
    elif before in valued:
        is_format = before in ("-o", "--output")
        texts = dict.fromkeys(options[before].get_choices() or (FORMATS if is_format else ()), "")
    elif command == "get":
        texts = dict.fromkeys(_selected(positional, begun, rest), "")
    elif command in _OF_ANY_KIND or command in _OF_GRAPHS:
        texts = dict.fromkeys(_about_one(command, positional, begun, rest), "")
    else:
        # Only of these the help is read, which may import the command's module.
        named = (name for name in sorted(app) if name[0] != "-" and name.startswith(begun))
        texts = {name: app[name].help.strip().partition("\n")[0] for name in named}
    return {word: text for word, text in texts.items() if word.startswith(begun)}


def _about_one(command: str, positional: Sequence[str], begun: str, words: Sequence[str]) -> list[str]:
    """What a command about one object may be about: NAME, KIND/NAME, and after a kind its names."""
    if not positional:
        return _names(command, begun, words)
    is_kind = command in ABOUT_ONE and len(positional) == 1 and positional[0] in _KINDS
    return _asked(positional[0], words) if is_kind else []


def _selected(positional: Sequence[str], begun: str, words: Sequence[str]) -> list[str]:
    """What `dynamoctl get` may be about: a kind or a graph, then names of that kind."""
    if "/" in begun:
        return _of_kind(begun, words)
    if not positional:
        is_kind = any(kind.startswith(begun) for kind in _KINDS)
        return [*_KINDS] if is_kind else _asked(_GRAPHS, words)
    names = _asked(positional[0] if positional[0] in _KINDS else _GRAPHS, words)
    return [name for name in names if name not in positional]


def _of_kind(begun: str, words: Sequence[str]) -> list[str]:
    kind = begun.partition("/")[0]
    return [f"{kind}/{name}" for name in _asked(kind, words)] if kind in _KINDS else []


def _names(command: str, begun: str, words: Sequence[str]) -> list[str]:
    graph, slash, _ = begun.partition("/")
    if command in ("logs", "scale") and slash:
        return [f"{graph}/{key}" for key in _asked(_GRAPHS, words, graph)]
    if slash:
        return _of_kind(begun, words)
    end = "/" if command == "scale" else ""
    kinds = [f"{kind}/" for kind in _KINDS] if begun and command in _OF_ANY_KIND else []
    return [*(f"{name}{end}" for name in _asked(_GRAPHS, words)), *kinds]


def _where(*, where: Where = HERE) -> Where:
    return where


def _asked(kind: str, words: Sequence[str], graph: str = "") -> list[str]:
    """Names in the cluster that the words name: of the objects of a kind, or of the services of a graph."""
    import asyncio

    from dynamo_graphs.reader import STATED, Namespace

    types: dict[str, type[Resource]] = {type_.DEFINITION.short_names[0]: type_ for type_ in STATED}
    type_ = types.get(kind, Namespace)
    try:
        _, given, *_ = App(default_command=_where).parse_known_args(words)
        where = _where(**given.kwargs)
        return asyncio.run(asyncio.wait_for(_listed(type_, where, graph), _SECONDS))
    except (CycloptsError, OSError, TimeoutError, OperatorError):
        return []  # a shell shows nothing then; the command itself reports the cause


async def _listed(type_: "type[Resource]", where: Where, graph: str) -> list[str]:
    from dynamo_operator.graph.api import DynamoGraphDeployment
    from dynamoctl.target import cluster
    from kube_runtime.types.meta import Key, metadata_type

    async with cluster(where) as at:
        client = at.reading.client
        if graph:
            stored = await client.get(DynamoGraphDeployment, Key(at.namespace, graph))
            return sorted(stored.spec.services)
        namespace = at.namespace if type_.KIND.namespaced else ""
        pages = client.pages(metadata_type(type_), namespace=namespace)
        return sorted([it.metadata.name async for page in pages for it in page.items])
