"""The page of failure modes names only what there is: reasons, events, metrics, keys, log lines."""

import ast
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dynamo_graphs.catalog import MEANINGS
from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.controller import ComponentController
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.controller import GraphController
from dynamo_operator.models.api import DynamoModel
from kube_runtime.apply.result import Obstacle, Verb
from kube_runtime.crd import object_schema

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/failure-modes.md").read_text(encoding="utf-8")

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"`([^`\n]+)`")
_METRIC = re.compile(r"dynamo_operator_\w+")
_WORD = re.compile(r"[A-Za-z_-]+")
_KEY = re.compile(r"nvidia\.com/[\w-]+")
_FIELD = re.compile(r"(spec|status)(\.\w+)+")
_PHRASE = re.compile(r"[A-Za-z]\S* [^`]+")
_COMMANDS = ("kubectl ", "dynamoctl ", "--", "/healthz", "/readyz")
_OF_KUBERNETES = frozenset(
    [
        *("True", "False", "Unknown", "Terminating", "ValidatingWebhookConfiguration"),
        *("admission webhook … denied the request", "failed calling webhook"),
    ]
)
"""What Kubernetes says, and not we."""


def tokens() -> list[str]:
    """Everything between backticks that is neither a command nor said by Kubernetes."""
    found = dict.fromkeys(_QUOTED.findall(_FENCE.sub("", PAGE)))
    return [each for each in found if not each.startswith(_COMMANDS) and each not in _OF_KUBERNETES]


@cache
def literals() -> frozenset[str]:
    """Every text in the code but docstrings; a text with values in it as the pieces around them."""
    return frozenset(
        text
        for file in ROOT.glob("packages/*/src/**/*.py")
        for text in _texts(ast.parse(file.read_text("utf-8")))
    )


def _texts(tree: ast.AST) -> Iterator[str]:
    statements = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in statements:
            yield each.value


def events() -> frozenset[str]:
    """The reasons of events that come from what was written."""
    kinds = (*GraphController.owns, *ComponentController.owns)
    return frozenset(f"{verb}{each.KIND.name}" for verb in Verb for each in kinds)


def reasons() -> frozenset[str]:
    """Reasons and types of conditions, and obstacles."""
    types = {type_ for each in MEANINGS for type_ in each.condition.split(", ")}
    return frozenset({str(each.reason) for each in MEANINGS} | types | set(Obstacle))


def causes() -> frozenset[str]:
    """Why Events were not written, as the metric of these counts them."""
    source = ROOT / "packages/kube-runtime/src/kube_runtime/controller/events.py"
    return frozenset(re.findall(r'event_dropped\("(\w+)"\)', source.read_text("utf-8")))


@cache
def metrics() -> str:
    """The page of metrics, which is made from a registry."""
    return str(runpy.run_path(str(ROOT / "tools/metrics_page.py"))["page"]())


def has_field(path: str) -> bool:
    """Whether a graph, a component or a model has that field."""
    return any(
        _find(object_schema(type_), path.split("."))
        for type_ in (DynamoGraphDeployment, DynamoComponentDeployment, DynamoModel)
    )


def _find(schema: dict[str, Any], names: list[str]) -> bool:
    if not names:
        return True
    found = schema.get("properties", {}).get(names[0])
    return found is not None and _find(found, names[1:])


def is_known(token: str) -> bool:
    """Whether the code has what the token names."""
    if _METRIC.fullmatch(token):
        return f"`{token}`" in metrics()
    if key := _KEY.match(token):
        return key.group() in labels.LABELS | labels.ANNOTATIONS
    if _FIELD.fullmatch(token):
        return has_field(token)
    return token in reasons() | events() | causes() or _is_said(token)


def _is_said(token: str) -> bool:
    """Whether a text in the code has these words, or is this one word; reasons are in tables."""
    if _WORD.fullmatch(token):
        is_reason = "_" in token
        return not is_reason and (token in literals() or _is_declared(token))
    return bool(_PHRASE.fullmatch(token)) and any(token in each for each in literals())


def _is_declared(name: str) -> bool:
    """Whether it is a field of a service, such as `ingress` or one of the fields in it."""
    schema = object_schema(DynamoComponentDeployment)["properties"]["spec"]
    ingress = schema["properties"]["ingress"]
    return name in schema["properties"] or name in ingress["properties"]


@pytest.mark.parametrize("token", tokens())
def test_what_the_page_names_is_in_the_code(token: str) -> None:
    assert is_known(token)


@pytest.mark.parametrize(
    "token", ["pods_missing", "dynamo_operator_nothing", "nvidia.com/nothing", "NoSuchReason"]
)
def test_what_is_not_in_the_code_is_noticed(token: str) -> None:
    assert not is_known(token)
