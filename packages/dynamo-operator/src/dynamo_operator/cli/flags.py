"""The flags of `dynamo-operator`, in the syntax of Go's flag package, on top of cyclopts.

Command lines of the reference operator must work unchanged. Go accepts `-flag` for `--flag`, a boolean
without value, any token as the value of another flag, and the last of several. cyclopts does not, so
`canonical` rewrites arguments to `--flag=value` first. cyclopts handles help, commands and unknown flags.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args, get_origin

from cyclopts import Group, Parameter

from dynamo_graphs.settings import SettingField, fields
from dynamo_operator.cli.configuration import DEVEL

if TYPE_CHECKING:
    from cyclopts.help import ColumnSpec, DefaultFormatter, HelpEntry
    from rich.console import Console, ConsoleOptions

CONFIG = "config"
_GENERAL = "General"
_GROUPS = {
    "render": "Rendering",
    "metrics": "Metrics",
    "health": "Health",
    "leader_election": "Leader election",
    "namespace_scope": "Namespace scope",
    "webhooks": "Webhooks",
    "logging": "Logs",
}
_NO_EFFECT = "Accepted, without effect"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag with all its spellings, the preferred one first. `field` is the setting, if it sets one."""

    names: tuple[str, ...]
    text: str
    is_boolean: bool = False
    field: SettingField | None = None
    unused: str = ""

    @property
    def name(self) -> str:
        """The preferred spelling, without dashes."""
        return self.names[0]

    @property
    def identifier(self) -> str:
        """The name of the Python parameter."""
        return self.name.replace("-", "_")


def flags() -> Iterator[Flag]:
    """Every flag, in the order of `--help`."""
    yield Flag((CONFIG,), "Read settings from this YAML file.")
    for field in fields():
        setting = field.setting
        text = setting.text
        if get_origin(field.type_) is Literal:
            text += f" Choices: {', '.join(f'`{choice}`' for choice in get_args(field.type_))}."
        yield Flag(setting.flags, text, field.type_ is bool, field)
    yield Flag(
        (DEVEL,),
        "Log for development: `true` means `--log-level=debug --log-format=console`, `false` "
        "means `info` and `json`.",
        is_boolean=True,
    )
    for name, reason in (
        ("enable-http2", "the servers speak HTTP/1.1 only"),
        ("istio-virtual-service-enabled", "name a gateway: `--istio-virtual-service-gateway`"),
        ("virtual-service-supports-https", "no rendered object depends on it"),
    ):
        yield Flag((name,), "", is_boolean=True, unused=reason)
    yield Flag(("zap-stacktrace-level",), "", unused="only bugs are logged with a traceback")


def canonical(arguments: Sequence[str]) -> list[str]:
    """Rewrite every flag as `--flag=value`, and keep the last of several.

    Other words, unknown flags and everything after `--` stay unchanged, in place. A last flag without its
    value stays so, and cyclopts reports it.
    """
    by_name = {name: flag for flag in flags() for name in flag.names}
    rest = list(arguments)
    # Keyed by identifier, so that a later flag replaces an earlier one.
    tokens: dict[str | int, str] = {}
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*tokens.values(), word, *rest]
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        flag = by_name.get(name) if word.startswith("-") else None
        if flag is None:
            tokens[len(rest)] = f"--{name}{equals}{value}" if _is_long_flag(word) else word
            continue
        tokens.pop(flag.identifier, None)
        if not equals and not flag.is_boolean and not rest:
            tokens[flag.identifier] = f"--{name}"
            continue
        if not equals:
            value = "true" if flag.is_boolean else rest.pop(0)
        tokens[flag.identifier] = f"--{name}={value}"
    return list(tokens.values())


def signature() -> inspect.Signature:
    """The signature from which cyclopts builds flags and help of `run`: one text parameter per flag."""
    from cyclopts.help import DefaultFormatter

    formatter = DefaultFormatter(column_specs=_columns)
    return inspect.Signature([_parameter(flag, formatter) for flag in flags()])


def given(arguments: Mapping[str, str | None]) -> dict[str, str]:
    """The flags of the command line by preferred name, from the arguments that cyclopts passes."""
    return {
        flag.name: value
        for flag in flags()
        if (value := arguments.get(flag.identifier)) is not None
    }


def default_text(field: SettingField) -> str:
    """The default as a user would write it; "" when it is empty."""
    value = field.default
    if isinstance(value, int | float) and field.is_duration:
        return _duration_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_long_flag(word: str) -> bool:
    """Whether a word is `-flag`, with one dash and more than one letter."""
    return word[:1] == "-" and word[1:2] != "-" and word[2:3] not in {"", "="}


def _parameter(flag: Flag, formatter: "DefaultFormatter") -> inspect.Parameter:
    text = " ".join([flag.text, f"No effect: {flag.unused}." if flag.unused else ""]).strip()
    default = default_text(flag.field) if flag.field else ""
    group, order = _group(flag), [_GENERAL, *_GROUPS.values(), _NO_EFFECT]
    annotation = Annotated[
        str | None,
        Parameter(
            name=[f"--{name}" for name in flag.names],
            help=text,
            metavar=_metavar(flag),
            show_default=(lambda _: default) if default else False,
            group=Group(group, sort_key=order.index(group), help_formatter=formatter),
        ),
    ]
    return inspect.Parameter(
        flag.identifier, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _group(flag: Flag) -> str:
    if flag.unused:
        return _NO_EFFECT
    if flag.name == DEVEL:
        return _GROUPS["logging"]
    return _GROUPS.get(flag.field.path[0], _GENERAL) if flag.field else _GENERAL


def _metavar(flag: Flag) -> str:
    if flag.is_boolean:
        return "BOOL"
    if flag.name == CONFIG:
        return "FILE"
    return "DURATION" if flag.field and flag.field.is_duration else "TEXT"


def _columns(
    console: "Console",  # noqa: ARG001  the signature is given by cyclopts
    options: "ConsoleOptions",  # noqa: ARG001
    entries: "list[HelpEntry]",
) -> "tuple[ColumnSpec, ...]":
    """Two columns, the first wide enough for every flag: a flag broken across lines cannot be searched."""
    from cyclopts.help import ColumnSpec, DescriptionRenderer, NameRenderer

    indent = 2  # of every line of a cell but the first
    width = max(len(name) + indent for entry in entries for name in entry.all_options)
    names = ColumnSpec(
        renderer=NameRenderer(max_width=width), style="cyclopts.name", min_width=width
    )
    return (names, ColumnSpec(renderer=DescriptionRenderer(), overflow="fold"))


def _duration_text(seconds: float) -> str:
    """The shortest Go duration of whole hours, minutes or seconds, such as `15m`."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size:g}{unit}"
    return f"{seconds:g}s"
