"""The page docs/log.md, from the calls that log and from the meanings in `log_lines.toml`."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kube_runtime.apply.result import Cause
from tools.markdown import table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "log.md"
SOURCES = tuple(f"packages/{package}/src" for package in ("kube-runtime", "dynamo-operator", "dynamo-legacy"))
HEAD = """\
# The operator's log

<!-- Written by `make docs`. Change the texts in `tools/log_page.py` and `tools/log_lines.toml`. -->

One line for each decision: what was created, updated, scaled or deleted and why, what was refused, what
failed and when the operator retries, and each step of a rollout, a restart, a load or a request. JSON on
standard error, or `--log-format=console` for people ([settings](settings.md)).

    kubectl logs -n NAMESPACE deploy/NAME | jq -c 'select(.graph == "chat")'
    kubectl logs -n NAMESPACE deploy/NAME | jq -c 'select(.level != "info")'

| field | meaning |
|---|---|
| `timestamp`, `level`, `logger`, `message` | on every line |
| `controller`, `namespace`, `key` | during a reconcile: kind, namespace, and `namespace/name` of the object |
| `graph` | the DynamoGraphDeployment that the object belongs to |
| `reason` | that of the [Event](failure-modes.md) recorded with the line, such as `CreateDeployment` |
| `cause` | why an object was written: one of the causes below |
| `dropped` | how many lines about this object were left out before this one |

No line contains the content of a Secret or the value of an environment variable. Texts are cut after 2,048
characters and have no control characters, because users and other programs write parts of them. An object
may have 200 lines at once and one more each second; lines of level `debug` are not limited. With
`--log-level=debug` each reconcile ends with a line: result, seconds, and requests to the API server.

"""


class Line(NamedTuple):
    """A call that logs: its message as in the code, its level and its fields."""

    message: str
    level: str
    fields: tuple[str, ...]


MEANINGS: dict[str, str] = tomllib.loads((ROOT / "tools/log_lines.toml").read_text(encoding="utf-8"))[
    "meanings"
]
ALIASES = {"message": "(that of the Event)", "text": "validate create, validate update, …"}
LEVELS = frozenset(("debug", "info", "warning", "error"))


def lines() -> Iterator[Line]:
    """Every log call of the operator."""
    for folder in SOURCES:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and (line := _line(node)):
                    yield line


def _line(call: ast.Call) -> Line | None:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in LEVELS | {"log"}:
        return None
    logger = ast.unparse(function.value)
    if logger not in ("log", "_log") and "get_logger" not in logger:
        return None
    is_variable = function.attr == "log"
    argument = call.args[1 if is_variable else 0]
    message = str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)
    fields = tuple(keyword.arg for keyword in call.keywords if keyword.arg and keyword.arg != "exc_info")
    return Line(message, "varies" if is_variable else function.attr, fields)


def page() -> str:
    """The page.

    Raises:
        KeyError: a line without a meaning, or a meaning without a line.
    """
    by_message = dict[str, list[Line]]()
    for line in lines():
        by_message.setdefault(line.message, []).append(line)
    if by_message.keys() != MEANINGS.keys():
        raise KeyError(sorted(by_message.keys() ^ MEANINGS.keys()))
    rows = []
    for message, meaning in MEANINGS.items():
        same = by_message[message]
        levels = ", ".join(dict.fromkeys(line.level for line in same))
        fields = dict.fromkeys(name for line in same for name in line.fields)
        names = ", ".join(f"`{name}`" for name in fields)
        rows.append((ALIASES.get(message, message), levels, names, meaning))
    body = table(("message", "level", "fields", "meaning"), rows)
    return HEAD + causes() + "\n".join(("## Lines", "", *body)) + "\n"


def causes() -> str:
    """The causes of writes."""
    rows = [f"- {cause}" for cause in Cause]
    return "\n".join(("## Causes", "", *rows, "", ""))
