"""The flags and arguments of commands; parsed before a command's code is imported.

The constant below each class has its defaults.
"""

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Group, Parameter

VALUED = frozenset(
    (
        *("-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "--as", "--as-group"),
        *("--request-timeout", "-o", "--output", "-l", "--selector", "--field-selector"),
    )
)
"""Flags of kubectl with a value that may stand before the command."""

KINDS = ("dgd", "dcd", "dgdsa", "dm", "dmodel", "dgdr")
"""The short names of our kinds."""
ABOUT_ONE = (
    *(
        "why",
        "status",
        "tree",
        "events",
        "logs",
        "top",
        "report",
        "scale",
        "suspend",
        "resume",
        "port-forward",
    ),
    *(f"rollout {verb}" for verb in ("status", "pause", "resume", "restart", "history", "undo")),
)
"""Commands about one object, which may be two words: KIND NAME."""

CONNECTION = Group("Connection", sort_key=9)
"""The flags of kubectl that every command about a cluster takes."""

Name = Annotated[str, Parameter(metavar="NAME", show_default=False)]
Namespace = Annotated[str, Parameter(name=["--namespace", "-n"], metavar="NAME", show_default=False)]
GraphName = Annotated[Name, Parameter(help="Graph: NAME or dgd/NAME.")]
ObjectName = Annotated[
    Name, Parameter(help="Graph, or KIND/NAME for another kind: dgd, dcd, dgdsa, dm or dgdr.")
]
Everywhere = Annotated[bool, Parameter(name=["--all-namespaces", "-A"])]
Watch = Annotated[bool, Parameter(name=["--watch", "-w"])]
_Entry = Annotated[Name, Parameter(group=CONNECTION)]
OptionalFile = Annotated[Path | None, Parameter(metavar="FILE")]
SettingsFile = Annotated[
    OptionalFile, Parameter(help="Settings file of the operator (default: those of a default installation).")
]


FORMATS = ("wide", "json", "yaml", "name", "jsonpath=")
FOR_PEOPLE = ("", "text", "table", "wide")
"""Values of `--output` that print tables and text."""


def _is_format(_type: object, output: str) -> None:
    """Raises: ValueError for an unknown format, or a JSONPath that kubectl would not understand."""
    name, _, path = output.partition("=")
    if name == "jsonpath" and path:
        from dynamoctl.jsonpath import template

        template(path)
    elif output not in FOR_PEOPLE and output not in FORMATS[:-1]:
        raise ValueError(f"expected one of {', '.join(FORMATS[:-1])}, jsonpath={{.metadata.name}}")


Output = Annotated[
    str,
    Parameter(
        name=["--output", "-o"],
        metavar="FORMAT",
        show_default=False,
        validator=_is_format,
        help="Output format: wide, json, yaml, name or jsonpath=TEMPLATE (default: for people).",
    ),
]
TextOrJson = Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])]
TextOutput = Annotated[TextOrJson, Parameter(help="Output format: `text` for people, `json` for machines.")]
YamlOutput = Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])]
Paths = Annotated[
    str,
    Parameter(
        name="FILE",
        show_default=False,
        allow_leading_hyphen=True,
        help="YAML or JSON files, folders of such files, or `-` for stdin.",
    ),
]
Files = Annotated[
    tuple[str, ...],
    Parameter(
        name=["--filename", "-f"],
        metavar="FILE",
        show_default=False,
        allow_leading_hyphen=True,
        help="File, folder or `-`, as for kubectl. Repeatable.",
    ),
]


def in_order(tool: App, arguments: Sequence[str]) -> list[str]:
    """The arguments as commands declare them, in the places where kubectl takes them too.

    Flags before the command go behind it, `help get` is `get --help`, and `status dgd chat` is `status
    dgd/chat`.
    """
    rest = list(arguments)
    flags: list[str] = []
    while rest and rest[0].startswith("-"):
        flags.append(rest.pop(0))
        if flags[-1] in VALUED and rest:
            flags.append(rest.pop(0))
    if not rest:
        return list(arguments)
    if rest[0] == "help":
        return [*rest[1:], "--help"]
    names, _, others = tool.parse_commands(rest)
    if not names:
        return [rest[0], *flags, *rest[1:]]
    words = [*flags, *others]
    if " ".join(names) in ABOUT_ONE:
        before = ""
        for position, (word, name) in enumerate(pairwise(words)):
            if is_kind(word) and before not in VALUED and not name.startswith("-"):
                words[position : position + 2] = [f"{word}/{name}"]
                break
            before = word
    return [*names, *words]


def is_kind(word: str) -> bool:
    """Whether kubectl takes the word for one of our kinds: a short name, the kind or its plural."""
    return word.lower() in KINDS or word.lower().startswith("dynamo")


Recursive = Annotated[
    bool, Parameter(name=["--recursive", "-R"], help="Read the sub-folders of folders too.")
]


_INSTEAD = {
    "-k": "`kubectl kustomize FOLDER | dynamoctl apply -f -`",
    "--kustomize": "`kubectl kustomize FOLDER | dynamoctl apply -f -`",
    "--dry-run": "`dynamoctl diff -f FILE`",
}
"""What does the same as a flag of `kubectl apply`."""


def all_files(paths: tuple[str, ...], files: tuple[str, ...]) -> list[str]:
    """All files of a command line: at least one.

    Raises: CycloptsError.
    """
    files_given = [*paths, *files]
    for flag in (path.partition("=")[0] for path in paths if path.startswith("-") and path != "-"):
        # A file may not begin with a dash, since a misspelled flag would be one.
        hint = f" (expected {_INSTEAD[flag]})" if flag in _INSTEAD else ""
        raise CycloptsError(f"unknown flag {flag}{hint}")
    if not all(files_given) or not files_given:  # "" would be the current folder
        raise CycloptsError("missing file: expected FILE or --filename FILE")
    return files_given


def run(command: Coroutine[object, object, int | None]) -> int:
    """Run a command; the exit code."""
    import asyncio

    return int(asyncio.run(command) or 0)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """Where the object is.

    Parameters
    ----------
    namespace
        Namespace (default: the context's, else `default`).
    context
        Context in the kubeconfig (default: the current one).
    kubeconfig
        Kubeconfig file (default: kubectl's).
    cluster
        Cluster in the kubeconfig (default: the context's).
    user
        User in the kubeconfig (default: the context's).
    as_user
        User to impersonate.
    as_groups
        Group to impersonate, with --as. Repeatable.
    request_timeout
        Longest time of one request, for example 5s (default: unlimited).
    """

    namespace: Namespace = ""
    context: _Entry = ""
    kubeconfig: Annotated[OptionalFile, Parameter(group=CONNECTION)] = None
    cluster: _Entry = ""
    user: _Entry = ""
    as_user: Annotated[_Entry, Parameter(name="--as")] = ""
    as_groups: Annotated[
        tuple[str, ...], Parameter(name="--as-group", metavar="NAME", show_default=False, group=CONNECTION)
    ] = ()
    request_timeout: Annotated[str, Parameter(metavar="DURATION", show_default=False, group=CONNECTION)] = ""


HERE = Where()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ListOptions:
    """What to list.

    Parameters
    ----------
    everywhere
        List all namespaces.
    labels
        Label selector, for example team=search.
    fields
        Field selector, for example metadata.name=chat.
    watch
        Redraw the table on each change until Ctrl-C; a pipe gets each changed row.
    no_headers
        Leave out the heads of tables.
    show_labels
        Add a column with the labels.
    ignore_not_found
        Exit with 0 if an object does not exist.
    """

    everywhere: Everywhere = False
    labels: Annotated[str, Parameter(name=["--selector", "-l"], metavar="LABELS", show_default=False)] = ""
    fields: Annotated[str, Parameter(name="--field-selector", metavar="FIELDS", show_default=False)] = ""
    watch: Watch = False
    no_headers: bool = False
    show_labels: bool = False
    ignore_not_found: bool = False


LISTING = ListOptions()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class WhereAll(Where):
    """Where the objects are.

    Parameters
    ----------
    namespace
        Namespace (default: all).
    """


ANYWHERE = WhereAll()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class CheckOptions(Where):
    """What to check.

    Parameters
    ----------
    namespace
        Check quota and pull secrets of this namespace; with a restricted operator, the one it watches.
    is_before
        Accept missing CRDs, and warn about an operator that already leads.
    is_before_upgrade
        Preview what an upgrade to this version would change (read-only).
    is_self
        Check only what an operator's own ServiceAccount can see, as `helm test` does.
    expects_webhooks
        Fail if no webhook refuses an invalid graph.
    account
        Check the permissions of this operator's ServiceAccount.
    """

    is_before: Annotated[bool, Parameter(name="--before-install")] = False
    is_before_upgrade: Annotated[bool, Parameter(name="--before-upgrade")] = False
    is_self: Annotated[bool, Parameter(name="--self")] = False
    expects_webhooks: Annotated[bool, Parameter(name="--expect-webhooks")] = False
    account: Annotated[str, Parameter(metavar="NAMESPACE/NAME", show_default=False)] = ""


CHECKS = CheckOptions()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """How to convert.

    Parameters
    ----------
    graph_config
        The `bento.yaml` of all DynamoDeployments.
    image
        Image of all services (default: what a DynamoNim or DynamoNimRequest says).
    suffix
        Text to append to names, so that old and new can run in one namespace.
    is_strict
        Exit with 1 if anything was dropped or guessed.
    to
        Version in which to print graphs, components, requests and scaling adapters, for example v1beta1.
    output
        Output format: `yaml` prints one document per object, `json` one List.
    """

    graph_config: OptionalFile = None
    image: Annotated[str, Parameter(metavar="IMAGE", show_default=False)] = ""
    suffix: Annotated[str, Parameter(metavar="TEXT", show_default=False, allow_leading_hyphen=True)] = ""
    settings: SettingsFile = None
    is_strict: Annotated[bool, Parameter(name="--strict")] = False
    to: Annotated[Literal["v1alpha1", "v1beta1"] | None, Parameter(show_default=False)] = None
    output: YamlOutput = "yaml"


CONVERSION = ConvertOptions()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """The model, the hardware, the load and the targets.

    Parameters
    ----------
    model
        Model as Hugging Face names it, for example Qwen/Qwen3-32B.
    model_config
        The model's config.json, for a model that is not built in.
    precision
        Take the published variant of a built-in model with these weights.
    backend
        Inference engine of the workers.
    gpu
        Type of GPU: a name of docs/profiler.md or a node's label.
    gpus_per_node
        GPUs of one node.
    max_gpus
        Most GPUs of the graph (default: unlimited).
    max_nodes
        Most nodes that one engine spans.
    ttft
        Most milliseconds to the first token.
    itl
        Most milliseconds between two tokens.
    isl
        Tokens of a prompt.
    osl
        Tokens of an answer.
    requests_per_second
        Load that determines the replicas.
    mode
        Whether prefill has workers of its own (default: the cheaper mode).
    engine
        What predicts: formulas, measured kernels, or the better of what is installed.
    margin
        Error of predictions to leave room for, for example 0.3 (default: the engine's median error).
    """

    model: Annotated[str, Parameter(metavar="MODEL", show_default=False)]
    model_config: OptionalFile = None
    precision: Annotated[Literal["bf16", "fp8", "fp4"] | None, Parameter(show_default=False)] = None
    backend: Literal["vllm", "sglang", "trtllm"] = "vllm"
    gpu: Annotated[str, Parameter(metavar="NAME")] = "h100_sxm"
    gpus_per_node: Annotated[int, Parameter(metavar="NUMBER")] = 8
    max_gpus: Annotated[int, Parameter(metavar="NUMBER", show_default=False)] = 0
    max_nodes: Annotated[int, Parameter(metavar="NUMBER")] = 1
    ttft: Annotated[float, Parameter(metavar="MS")] = 500
    itl: Annotated[float, Parameter(metavar="MS")] = 50
    isl: Annotated[int, Parameter(metavar="TOKENS")] = 3000
    osl: Annotated[int, Parameter(metavar="TOKENS")] = 500
    requests_per_second: Annotated[float, Parameter(metavar="NUMBER")] = 1
    mode: Annotated[Literal["aggregated", "disaggregated"] | None, Parameter(show_default=False)] = None
    engine: Literal["auto", "formulas", "kernels"] = "auto"
    margin: Annotated[float | None, Parameter(metavar="SHARE", show_default=False)] = None
