"""The module `dynamo_graphs.fields`: TypedDicts of the kinds' structs and of the Kubernetes types in them.

A type checker reads them from the source. They have the names that Python programs use, in snake case.
"""

import re
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

import dynamo_graphs
from dynamo_graphs.spelling import snake
from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.graph.api import DynamoGraphDeploymentSpec
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec
from kube_runtime.crd import Field, definitions
from kube_runtime.schema import unwrapped
from kube_runtime.types.meta import Object

MODULE = Path(dynamo_graphs.__file__).with_name("fields.py")
_HEAD = '''\
"""The keyword arguments of the builders, and the dictionaries in them, under names in snake case.

Written by `make docs` from the structs of the operator and the types of Kubernetes. Do not edit.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

if TYPE_CHECKING:
    import dynamo_operator.component.api
    import dynamo_operator.graph.api
    import dynamo_operator.requests.api

Json = Mapping[str, Any]
"""JSON with the names of the API, or with names in snake case."""
'''
_ARGUMENTS: dict[type[msgspec.Struct], tuple[str, tuple[str, ...]]] = {
    ComponentSpec: ("ComponentFields", ()),
    DynamoGraphDeploymentSpec: ("GraphFields", ("services",)),
    DynamoGraphDeploymentRequestSpec: ("RequestFields", ("model", "backend")),
}
"""Each struct whose fields are keyword arguments: the TypedDict, and fields that are left out."""

_NAMES = {"PersistentVolumeClaimSpec": "PersistentVolumeClaim"}
_KUBERNETES = ("EnvVar", "Probe", "Toleration")
"""Types of Kubernetes that are spelled out; the others are `Json`, whose names Kubernetes documents."""
Classes = dict[str, str]
"""The text of each TypedDict by its name, those before it that it needs."""
_SCALARS = {"string": "str", "boolean": "bool", "integer": "int", "number": "float"}


def files() -> dict[Path, str]:
    """The text of the module."""
    classes: Classes = {}
    for struct in _ARGUMENTS:
        _of_struct(struct, classes)
    return {MODULE: "\n\n".join((_HEAD, *classes.values()))}


def are_rewritten() -> bool:
    """Write the module unless it is up to date; whether it was not."""
    old = {path: text for path, text in files().items() if text != path.read_text(encoding="utf-8")}
    for path, text in old.items():
        path.write_text(text, encoding="utf-8")
    return bool(old)


def _of_struct(struct: type[msgspec.Struct], classes: Classes) -> str:
    """Add the TypedDict of a struct after those that it needs; its name."""
    name, besides = _ARGUMENTS.get(struct, (_NAMES.get(struct.__name__, struct.__name__), ()))
    lines = []
    for field in msgspec.structs.fields(struct):
        if field.name in besides:
            continue
        text = _type(field.type, classes)
        is_required = field.required and struct not in _ARGUMENTS
        lines.append(f"{field.name}: {f'Required[{text}]' if is_required else text}")
    doc = (struct.__doc__ or "").partition("\n")[0]
    if struct in _ARGUMENTS:
        doc = f"Fields of `{struct.__name__}`; None removes a field."
        lines = [_as_argument(line, struct) for line in lines]
    return _added(name, doc, lines, classes)


def _as_argument(line: str, struct: type[msgspec.Struct]) -> str:
    """A line that also accepts the struct of a nested field, and None."""
    module = sys.modules[struct.__module__]
    structs = {_NAMES.get(name, name): it for name, it in vars(module).items() if _is_struct(it)}
    name, _, text = line.partition(": ")
    for word in re.findall(r"\w+", text):
        if word in structs:
            own = f"{structs[word].__module__}.{structs[word].__name__}"
            return f'{name}: "{text.replace(word, f"{word} | {own}")} | None"'
    return f"{line} | None"


def _is_struct(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct)


def _of_kubernetes(name: str, classes: Classes) -> str:
    schema = definitions()[name]
    needed = schema.get("required", ())
    lines = []
    for field, value in schema["properties"].items():
        text = _of_schema(value, classes)
        lines.append(f"{snake(field)}: {f'Required[{text}]' if field in needed else text}")
    return _added(name, f"`{name}` of Kubernetes.", lines, classes)


def _added(name: str, doc: str, lines: list[str], classes: Classes) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    classes[name] = f'class {name}(TypedDict, total=False):\n    """{doc}"""\n\n{body}'
    return name


def _type(annotated: object, classes: Classes) -> str:
    """The text of a field's type; nested fields are left out rather than None."""
    bare, marks = unwrapped(annotated)
    return _bare(bare, next((mark for mark in marks if isinstance(mark, Field)), None), classes)


def _bare(type_: Any, field: Field | None, classes: Classes) -> str:
    arguments = get_args(type_)
    origin = get_origin(type_)
    if origin is tuple:
        return f"Sequence[{_bare(unwrapped(arguments[0])[0], field, classes)}]"
    if origin is dict and arguments[1] is not Any:
        return f"Mapping[str, {_bare(unwrapped(arguments[1])[0], None, classes)}]"
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]".replace("'", '"')
    if field is not None and field.embeds in _KUBERNETES:
        return f"{_of_kubernetes(field.embeds, classes)} | Json"
    if _is_struct(type_):
        return _of_struct(type_, classes)
    if origin is not dict and set(arguments) == {int, str}:
        return "int | str"
    return type_.__name__ if type_ in (str, int, bool, float) else "Json"


def _of_schema(schema: Object, classes: Classes) -> str:
    if name := schema.get("$ref"):
        if name in ("IntOrString", "Quantity"):
            return "int | str"
        return _of_kubernetes(name, classes)
    if schema.get("type") == "array":
        return f"Sequence[{_of_schema(schema['items'], classes)}]"
    return _SCALARS.get(schema.get("type", ""), "Json")
