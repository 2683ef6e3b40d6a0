"""The keyword arguments of the Python library: TypedDicts whose fields are those of a kind's struct.

A type checker reads them from the source, so their lines are written into the modules.
"""

import ast
import inspect
import re
from pathlib import Path

import msgspec

from dynamo_graphs import objects, others
from dynamo_operator.component import api
from dynamo_operator.graph.api import DynamoGraphDeploymentSpec
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec

_DECLARED = (
    (objects.ComponentFields, api.ComponentSpec, ()),
    (objects.GraphFields, DynamoGraphDeploymentSpec, ("services",)),
    (others.RequestFields, DynamoGraphDeploymentRequestSpec, ("model", "backend")),
)
"""Each TypedDict with its struct, and the fields that are arguments of their own."""


def files() -> dict[Path, str]:
    """The text of the modules that declare the TypedDicts."""
    texts: dict[Path, str] = {}
    for declared, struct, besides in _DECLARED:
        path = Path(inspect.getfile(declared))
        text = texts.get(path) or path.read_text(encoding="utf-8")
        fields = "".join(f"    {name}: {type_}\n" for name, type_ in _types(struct) if name not in besides)
        body = rf'(class {declared.__name__}\(.*\):\n    """.*"""\n\n)(?:    \w+: .*\n)+'
        texts[path] = re.sub(body, rf"\g<1>{fields}", text)
    return texts


def are_rewritten() -> bool:
    """Write the modules that are not up to date; whether there were any."""
    old = {path: text for path, text in files().items() if text != path.read_text(encoding="utf-8")}
    for path, text in old.items():
        path.write_text(text, encoding="utf-8")
    return bool(old)


def _types(struct: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """The fields of a struct with the text of their types, as its module declares them."""
    found: list[tuple[str, str]] = []
    for line in ast.walk(ast.parse(inspect.getsource(struct))):
        match line:
            case ast.AnnAssign(ast.Name(name), ast.Subscript(ast.Name("Annotated"), ast.Tuple([type_, *_]))):
                found.append((name, ast.unparse(type_)))
            case _:
                continue
    if struct.__module__ != api.__name__:
        return found
    ours = "|".join(
        each for each, value in vars(api).items() if getattr(value, "__module__", "") == api.__name__
    )
    return [(name, re.sub(rf"\b({ours})\b", r"api.\1", text)) for name, text in found]
