"""The page docs/python-api.md: the reference of the Python library, from signatures and docstrings."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import is_typeddict

import dynamo_graphs
from dynamo_graphs import __all__ as exported
from dynamo_graphs import fields
from dynamo_graphs.fields import ComponentFields, GraphFields, RequestFields
from dynamo_graphs.objects import ServiceOptions
from dynamo_profiler.candidates import Candidate
from dynamo_profiler.study import Study, study

PAGE = Path(__file__).parents[1] / "docs" / "python-api.md"
HEAD = """\
# Python API

<!-- Written by `make docs` from the docstrings of the modules that it names. Do not edit. -->

What to import from `dynamo_graphs` and `dynamo_profiler.study`. A tutorial: [Graphs in Python](python.md).
"""
_LONGEST = 72
"""Maximum length of a signature on one line."""
FIELDS = {
    GraphFields: "fields of the [spec of a graph](reference/dynamographdeployment.md)",
    ComponentFields: "fields of a [component](reference/dynamocomponentdeployment.md)",
    ServiceOptions: "fields of a [component](reference/dynamocomponentdeployment.md), and short forms",
    RequestFields: "fields of the [spec of a request](reference/dynamographdeploymentrequest.md)",
}


NESTED = """\
Types of dictionaries with some of these keys: `{"name": "models", "mount_point": "/models"}` is a
`VolumeMount`, and so is `VolumeMount(name="models", mount_point="/models")`. The names of the API, such as
`mountPoint`, work as well. The types that `dynamo_graphs` does not export are in `dynamo_graphs.fields`.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## dynamo_graphs\n"]
    described = [getattr(dynamo_graphs, name) for name in exported]
    parts += [_described(it, it.__name__) for it in described if not is_typeddict(it)]
    parts += ["### Keyword arguments\n", *(_fields(declared) for declared in FIELDS)]
    nested = [it for it in vars(fields).values() if is_typeddict(it) and it not in FIELDS]
    parts += ["### Dictionaries in arguments\n", NESTED, *map(_dictionary, nested)]
    parts.append("## dynamo_profiler.study\n")
    parts += [_described(documented, documented.__name__) for documented in (study, Study, Candidate)]
    return "\n".join(parts).rstrip() + "\n"


def _described(documented: Callable[..., object], name: str) -> str:
    parts = [f"### {name}", _text(documented)]
    if not inspect.isclass(documented):
        return "\n\n".join((parts[0], _signature(documented, name), parts[1])) + "\n"
    if "__init__" in vars(documented) and not issubclass(documented, Exception):
        parts += [_signature(documented, name), _text(documented.__init__)]
    bases = [base.__name__ for base in documented.__mro__[1:] if base.__name__ in exported]
    if bases:
        parts.append(f"It has all that [{bases[0]}](#{bases[0].lower()}) has.")
    parts += _members(documented, name)
    return "\n\n".join(filter(None, parts)) + "\n"


def _members(class_: type, owner: str) -> Iterator[str]:
    """The sections of the public properties and methods."""
    # Bases that are not exported belong to the class, unless an exported base has them.
    others = [base for base in class_.__mro__[1:] if base.__name__ in exported]
    inherited = {part for base in others for part in base.__mro__[:-1]}
    parts = [base for base in class_.__mro__ if base not in inherited]
    own = {name: member for base in reversed(parts[:-1]) for name, member in vars(base).items()}
    for name, member in sorted(own.items()):
        plain = member.__func__ if isinstance(member, classmethod) else member
        if name.startswith("_") or not (inspect.isfunction(plain) or isinstance(plain, property)):
            continue
        yield f"#### {owner}.{name}"
        getter = plain.fget if isinstance(plain, property) else None
        if getter is not None:
            returned = _type(inspect.signature(getter).return_annotation)
            yield f"```python\n{name}: {returned}\n```"
        elif inspect.isfunction(plain):
            yield _signature(plain, name)
        yield _text(plain)


def _signature(documented: Callable[..., object], name: str) -> str:
    """The signature on one line, or with one line for each parameter."""
    signature = inspect.signature(documented)
    words: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        type_ = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        equals = " = " if type_ else "="
        default = "" if parameter.default is parameter.empty else f"{equals}{_default(parameter.default)}"
        words.append(f"{star}{parameter.name}{type_}{default}")
    head = "async def" if inspect.iscoroutinefunction(documented) else "def"
    is_made = inspect.isclass(documented) or signature.return_annotation in (signature.empty, None)
    end = "" if is_made else f" -> {_type(signature.return_annotation)}"
    head = f"class {name}" if inspect.isclass(documented) else f"{head} {name}"
    line = f"{head}({', '.join(words)}){end}"
    if len(line) > _LONGEST:
        inner = "".join(f"    {word},\n" for word in words)
        line = f"{head}(\n{inner}){end}"
    return f"```python\n{line}\n```"


def _type(annotation: object) -> str:
    """A type as in source code, without the modules of its names."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"<enum '(\w+)'>|<class '([\w.]+)'>", r"\1\2", text)
    text = re.sub(r"ForwardRef\('([^']+)'\)", r"\1", text)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", text).replace("'", '"').replace("~A", "Self")
    text = re.sub(r"^Optional\[(.*)\]$", r"\1 | None", text)
    return re.sub(r"^\*(\w+)$", r"Unpack[\1]", text)


def _default(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if str(value) == "<factory>":  # of a dataclass
        return "..."
    return value.__name__ if inspect.isfunction(value) else repr(value)


def _text(documented: object) -> str:
    """A docstring as Markdown paragraphs."""
    paragraphs = inspect.cleandoc(getattr(documented, "__doc__", None) or "").split("\n\n")
    return "\n\n".join(map(_paragraph, paragraphs))


def _paragraph(text: str) -> str:
    if text.startswith("    "):
        return f"```python\n{inspect.cleandoc(text)}\n```"
    head, _, errors = text.partition("Raises:\n")
    if head or not errors:
        return " ".join(text.split())
    items = re.split(r"\n(?=\S)", inspect.cleandoc(errors))
    return "\n".join(("Raises:\n", *(f"- {' '.join(item.split())}" for item in items)))


def _keys(declared: type) -> list[str]:
    return [name for base in reversed(declared.__mro__) for name in vars(base).get("__annotations__", ())]


def _dictionary(declared: type) -> str:
    names = ", ".join(f"`{name}`" for name in _keys(declared))
    return f"**{declared.__name__}**: {_text(declared).rstrip('.')}: {names}.\n"


def _fields(declared: type) -> str:
    hints = _keys(declared)
    names = ", ".join(f"`{name}`" for name in hints)
    return f"**{declared.__name__}**: {FIELDS[declared]}: {names}.\n"
