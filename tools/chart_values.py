"""The schema, the README and the reference page of the chart, from the comments in its values.

YAML parsers drop comments. So this reads the lines above each key as text: `# --` starts the description, `#
@schema` is JSON that refines the type.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tools.markdown import table

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts/dynamo-platform"
PARTS = {name: CHART / "charts" / name for name in ("nats", "etcd")}
"""Subcharts, by the key of their values."""
README = CHART / "README.md"
PAGE = ROOT / "docs/chart-values.md"

_TEXT = "# -- "
_SCHEMA = "# @schema "
_MORE = "# "
_TYPES: dict[type, str] = {bool: "boolean", int: "integer", str: "string", list: "array"}
_README_HEAD = """\
# dynamo-platform

<!-- Written by `make docs` from values.yaml. -->

The Kubernetes operator for NVIDIA Dynamo inference graphs. Install the chart `dynamo-crds` first.
[Install, upgrade, remove](../../docs/install.md) also has the differences from the reference chart.

```bash
helm install dynamo-crds charts/dynamo-crds --namespace default
helm install dynamo-platform charts/dynamo-platform --namespace dynamo-system --create-namespace
```

Rendering depends on values only: the chart does no cluster lookups, runs only `helm test` besides the
operator, and needs one image. It refuses unknown values and never interprets text in a value.

## Values

"""
_PAGE_HEAD = """\
# Values of the chart

<!-- Written by `make docs`. Change the texts in `charts/dynamo-platform/values.yaml`. -->

The chart refuses unknown values. Where the reference chart has a value, its name is the same.

"""


@dataclass(frozen=True, slots=True)
class Value:
    """One key of the values, with `more` properties of its schema."""

    path: tuple[str, ...]
    default: Any
    text: str
    more: dict[str, Any]

    @property
    def is_retired(self) -> bool:
        """Whether it is accepted without effect, because users of the reference chart have it."""
        return bool(self.more.get("retired"))

    @property
    def is_part(self) -> bool:
        """Whether its keys are the values of a subchart."""
        return bool(self.more.get("chart"))

    @property
    def is_group(self) -> bool:
        """Whether its keys are values."""
        is_filled = isinstance(self.default, dict) and bool(self.default)
        return is_filled and not self.text and not self.is_part


def values(chart: Path = CHART) -> Iterator[Value]:
    """Every key of a chart, including groups, in the order of the file."""
    text = (chart / "values.yaml").read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    yield from _below((), root, text.splitlines(), yaml.safe_load(text))


def _below(path: tuple[str, ...], node: Any, lines: list[str], defaults: Any) -> Iterator[Value]:
    for key_node, value_node in node.value:
        key = key_node.value
        text, more = _comment(lines, key_node.start_mark.line)
        value = Value((*path, key), defaults[key], text, more)
        yield value
        if value.is_group:
            yield from _below(value.path, value_node, lines, defaults[key])


def _comment(lines: list[str], line: int) -> tuple[str, dict[str, Any]]:
    """The description and the schema in the comment above a line."""
    above: list[str] = []
    while line and lines[line - 1].strip().startswith("#"):
        line -= 1
        above.insert(0, lines[line].strip())
    words: list[str] = []
    more: dict[str, Any] = {}
    for comment in above:
        if comment.startswith(_SCHEMA):
            more = json.loads(comment.removeprefix(_SCHEMA))
        elif comment.startswith(_TEXT):
            words = [comment.removeprefix(_TEXT)]
        elif words:
            words.append(comment.removeprefix(_MORE))
    return " ".join(words), more


def schema(chart: Path = CHART) -> dict[str, Any]:
    """The JSON schema of a chart's values, which refuses unknown keys."""
    root: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"Values of {chart.name}",
        **_object(),
    }
    if chart != CHART:
        root["properties"]["global"] = {"description": "As in the parent chart."}
    for value in values(chart):
        place = root
        for key in value.path[:-1]:
            place = place["properties"][key]
        place["properties"][value.path[-1]] = _property(value)
    return root


def _property(value: Value) -> dict[str, Any]:
    if value.is_group:
        # A parent chart passes its own globals.
        return _object() | ({"additionalProperties": True} if value.path == ("global",) else {})
    if value.is_part:
        return {"type": "object"}  # the subchart has its own schema
    text = {"description": value.text}
    if value.is_retired:
        return text
    if isinstance(value.default, dict):
        return text | {"type": "object"} | value.more
    return text | {"type": _TYPES.get(type(value.default), "string")} | value.more


def _object() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _table() -> str:
    rows = [_row(value) for value in _with_subcharts() if not value.is_group]
    return "\n".join(table(("key", "default", "description"), rows)) + "\n"


def _row(value: Value) -> tuple[str, str, str]:
    choices = value.more.get("enum")
    text = value.text + (f" One of {', '.join(f'`{c}`' for c in choices)}." if choices else "")
    default = "" if value.is_retired else f"`{json.dumps(value.default)}`"
    return f"`{'.'.join(value.path)}`", default, text


def _with_subcharts() -> Iterator[Value]:
    """The values of the chart and of its subcharts."""
    for value in values():
        if value.is_part:
            for part in values(PARTS[value.path[0]]):
                yield replace(part, path=(*value.path, *part.path))
        else:
            yield value


def files() -> dict[Path, str]:
    """The text of each file."""
    schemas = {
        chart / "values.schema.json": json.dumps(schema(chart), indent=2, ensure_ascii=False) + "\n"
        for chart in (CHART, *PARTS.values())
    }
    return {**schemas, README: _README_HEAD + _table(), PAGE: _PAGE_HEAD + _table()}
