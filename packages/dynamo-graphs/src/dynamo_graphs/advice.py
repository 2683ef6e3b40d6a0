"""Causes of messages, and what to do about them.

The messages are those of Kubernetes, of container runtimes, engines and registries. `advice.toml` has a row
for each of them; `make docs` writes the table in docs/failure-modes.md from it.
"""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from dynamo_operator.shared.cluster import registry_of_image

LOG = "Log"
"""The word of evidence whose message is the end of a log."""

_OUTPUT = frozenset((LOG, "Error", "Completed", "OOMKilled", "CrashLoopBackOff"))
"""Words of evidence whose message a container wrote."""

_EXITS = "CrashLoopBackOff"
"""What the rows about the output of containers show."""

_TEXT_LIMIT = 4096
"""Most characters of a message that are searched, its last ones."""

_LINE_LIMIT = 500
_WINDOW = 3
"""Lines of a log that are searched together: an error and its explanation are often on two lines."""

_VALUE_LIMIT = 300
"""Most characters of a value in a sentence."""


@dataclass(frozen=True, slots=True)
class Row:
    """A message: the words in which kubectl shows it, its cause, what to do, and a true example."""

    shows: tuple[str, ...]
    expression: str
    cause: str
    remedies: tuple[str, ...]
    example: str

    @property
    def match(self) -> re.Pattern[str]:
        """The compiled expression, from the cache of `re`."""
        return re.compile(self.expression)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message about an object of a graph: the reason in one word, and the text.

    `values` are names for commands, such as `pod` or `pvc`. `service` is "" if it is about the whole graph.
    """

    word: str
    message: str
    service: str = ""
    values: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def texts(self) -> Iterator[str]:
        """The texts to search, each in one line: of a log the last lines first, since an error ends it."""
        if self.word != LOG:
            yield _line(f"{self.word}: {self.message[-_TEXT_LIMIT:]}")
            return
        lines = [line[-_LINE_LIMIT:] for line in self.message.splitlines()]
        for end in range(len(lines), 0, -1):
            yield _line(" ".join(lines[max(0, end - _WINDOW) : end]))


@dataclass(frozen=True, slots=True)
class Cause:
    """Why services are not ready, what to do about it, and the message that shows it."""

    text: str
    remedies: tuple[str, ...]
    services: tuple[str, ...]
    message: str


@cache
def rows() -> tuple[Row, ...]:
    """The rows of `advice.toml`, in its order: a row that is more specific comes first."""
    import tomllib

    table = tomllib.loads(files("dynamo_graphs").joinpath("advice.toml").read_text("utf-8"))
    return tuple(
        Row(tuple(row["shows"]), row["match"], row["cause"], tuple(row["do"]), row["example"])
        for row in table["row"]
    )


_OPEN = re.compile(r"(?:\((?:[^()\\\[]|\\.|\[[^\]]*\])*\)|\[[^\]]*\]|\\.)(?:[?*+]|\{[\d,]*\})?\??")
"""What matches several texts, or one of another spelling: innermost groups, sets and escaped characters."""
_WORDS = re.compile(r"[\w \"':=/-]+(?![\w \"':=/-]|[?*{])")


@cache
def literals(expression: str) -> tuple[str, ...]:
    """Texts of which each text that a regular expression matches contains one; "" if none is certain.

    They rule out most rows: to compile all expressions takes longer than a request to the API server.
    """
    replaced = 1
    while replaced:
        expression, replaced = _OPEN.subn(".", expression)
    return tuple(max(_WORDS.findall(part), key=len, default="") for part in expression.split("|"))


def causes(evidence: Iterable[Evidence], names: Mapping[str, str]) -> tuple[Cause, ...]:
    """The cause of each service's trouble, the most specific first; empty if no message is known.

    Messages about the whole graph count only if none about a service does: they repeat those. `names` are
    those of the object: its `kind` for kubectl, `name`, `namespace` and `graph`.
    """
    by_service: dict[str, _Match] = {}
    for found in evidence:
        match, best = _match_of(found), by_service.get(found.service)
        if match is None or (not found.service and _lacks_names(match, names)):
            continue
        if best is None or match.number < best.number:
            by_service[found.service] = match
    if len(by_service) > 1:
        by_service.pop("", None)
    # Services with the same cause in the same words, such as a missing Secret, share it.
    by_text: dict[str, list[_Match]] = defaultdict(list)
    for match in sorted(by_service.values(), key=lambda match: match.number):
        by_text[_filled(match.row.cause, _values(match, names))].append(match)
    return tuple(_cause(text, matches, names) for text, matches in by_text.items())


@dataclass(frozen=True, slots=True)
class _Match:
    number: int
    row: Row
    found: Evidence
    text: str


def _match_of(found: Evidence) -> _Match | None:
    for text in found.texts:
        for number, row in enumerate(rows()):
            is_about_output = _EXITS in row.shows
            if not is_about_output and found.word in _OUTPUT:
                continue
            if any(it in text for it in literals(row.expression)) and row.match.search(text):
                return _Match(number, row, found, text)
    return None


def _lacks_names(match: _Match, names: Mapping[str, str]) -> bool:
    """Whether the cause would not say which object it is about."""
    return any(name and name not in _values(match, names) for name in _PLACEHOLDER.findall(match.row.cause))


def _cause(text: str, matches: Sequence[_Match], names: Mapping[str, str]) -> Cause:
    values = _values(matches[0], names)
    remedies = tuple(filter(None, (_filled(remedy, values) for remedy in matches[0].row.remedies)))
    services = tuple(match.found.service for match in matches if match.found.service)
    return Cause(text, remedies, services, matches[0].text)


def _values(match: _Match, names: Mapping[str, str]) -> dict[str, str]:
    searched = match.row.match.search(match.text)
    groups = {name: value for name, value in (searched.groupdict() if searched else {}).items() if value}
    values = {**names, **match.found.values, **groups}
    if match.found.service:
        values["service"] = match.found.service
    elif "graph" in values:
        values.setdefault("service", values["graph"])
    if "image" in values:
        values["registry"] = registry_of_image(values["image"])
    last = values.get("last", "")
    values["ending"] = f"; its log ends: {last[:_VALUE_LIMIT]}" if last else "."
    return values


def _line(text: str) -> str:
    return " ".join(text.split())


_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_NOUN = re.compile(
    r"(?P<article>\b[Tt]he )?\b(?P<noun>[Pp]od|[Nn]ode|[Cc]ontainer|image|PVC) \{(?P<name>\w+)\}"
)
"""A noun before the name of an object, which may be unknown."""

_COMMANDS = {
    "edit": "kubectl edit {kind} {name} -n {namespace}",
    "logs": "kubectl logs {pod} -n {namespace} -c {container}",
    "previous": "kubectl logs {pod} -n {namespace} -c {container} --previous",
    "describe": "kubectl describe pod {pod} -n {namespace}",
}


class _Unknown(Exception):
    pass


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its values; "" if a command lacks one. Values in commands are quoted for a shell."""
    parts = text.split("`")
    try:
        for position, part in enumerate(parts):
            parts[position] = _command(part, values) if position % 2 else _sentence(part, values)
    except _Unknown:
        return ""
    return "`".join(parts)


def _sentence(text: str, values: Mapping[str, str]) -> str:
    def named(match: re.Match[str]) -> str:
        if match["name"] in values:
            return match[0]
        article = match["article"] or (
            "The " if match["noun"][0].isupper() and match.start() == 0 else "the "
        )
        return article + (match["noun"] if match["noun"] == "PVC" else match["noun"].lower())

    return _PLACEHOLDER.sub(
        lambda match: _literal(match) or values.get(match[1], f"the {match[1]}")[:_VALUE_LIMIT],
        _NOUN.sub(named, text),
    )


def _command(text: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if literal := _literal(match):
            return literal
        if name in _COMMANDS:
            return _command(_COMMANDS[name], values)
        if name not in values:
            raise _Unknown
        return shlex.quote(values[name])

    return _PLACEHOLDER.sub(value, text)


def _literal(match: re.Match[str]) -> str:
    return "" if match[1] else match[0][0]


def in_general(text: str) -> str:
    """A cause or a remedy without an object: names in capitals, for a page."""

    def word(match: re.Match[str]) -> str:
        name = match[1]
        if literal := _literal(match):
            return literal
        if name in _COMMANDS:
            command = _COMMANDS[name].replace("{kind}", "dgd")
            return _PLACEHOLDER.sub(lambda inner: inner[1].upper(), command)
        return {"ending": ".", "last": "…", "why": "…"}.get(name, name.upper())

    return _PLACEHOLDER.sub(word, text).replace("PVC PVC", "PVC")
