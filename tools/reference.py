"""The pages of `docs/reference/`, one for each kind, from the same declarations as the schemas."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import yaml

from dynamo_legacy.api import RESOURCES as LEGACY
from dynamo_legacy.settings import IGNORED, LegacySettings
from dynamo_legacy.settings import rows as legacy_rows
from dynamo_operator.crds import LATER_RESOURCES, RESOURCES
from kube_runtime.crd import Definition, Field, IntOrText
from kube_runtime.schema import (
    SHAPES,
    Declared,
    declared,
    definition_of,
    rules_of,
    summary,
    transitions_of,
    unwrapped,
)
from kube_runtime.types.meta import Resource
from tools.markdown import escaped, table

FOLDER = Path(__file__).parents[1] / "docs/reference"
KUBERNETES = "https://kubernetes.io/docs/reference/kubernetes-api/"
HEAD = "<!-- Written by `make docs` from packages/dynamo-operator/src/dynamo_operator. Do not edit. -->\n"
ROWS = Path(__file__).with_name("legacy_rows.yaml")
LEGACY_HEAD = Path(__file__).with_name("legacy_head.md")
OUR_OWN = {"ExtraPodSpec": "PodSpec with `mainContainer`"}


def pages() -> dict[str, str]:
    """The content of every page by its file name."""
    by_name = {file_name(resource): page(resource) for resource in (*LATER_RESOURCES, *RESOURCES)}
    return {"README.md": index(), **by_name, "legacy.md": legacy()}


def file_name(resource: type[Resource]) -> str:
    """The file of the page of a kind, with its version if that is not the first one."""
    is_later = resource in LATER_RESOURCES
    return f"{resource.KIND.name.lower()}{f'-{resource.KIND.version}' if is_later else ''}.md"


def versions(name: str) -> str:
    """Links to the pages of a kind by its name, the newest version first."""
    kinds = (resource for resource in (*LATER_RESOURCES, *RESOURCES) if resource.KIND.name == name)
    return ", ".join(f"[`{kind.KIND.version}`]({file_name(kind)})" for kind in kinds)


def index() -> str:
    """The page that lists the kinds."""
    rows = [
        (
            resource.KIND.name,
            versions(resource.KIND.name),
            ", ".join(f"`{name}`" for name in definition_of(resource).short_names),
            summary(resource),
        )
        for resource in RESOURCES
    ]
    intro = (
        f"Every kind below belongs to `{RESOURCES[0].KIND.group}` and lives in a namespace. New manifests "
        "are of the first version; the operator [converts](../v1beta1.md) between both."
    )
    return "\n".join(
        [
            HEAD,
            "# API reference",
            "",
            f"{intro} `kubectl explain dgd.spec` shows the same texts.",
            "",
            *table(("Kind", "Versions", "Short names", "What it is"), rows),
            "",
        ]
    )


def legacy() -> str:
    """The page of the legacy kinds: settings, kinds, and the tables of their documentation."""
    settings = []
    for row in legacy_rows():
        names = " or ".join(f"`{name}`" for name in row.variables)
        value = getattr(LegacySettings(), row.name)
        text = value if isinstance(value, str) else str(value).lower() if value in (True, False) else ""
        settings.append((names, f"`{text}`" if text else "", row.text))
    ignored = ", ".join(f"`{name}`" for name in IGNORED)
    lines = [
        LEGACY_HEAD.read_text(encoding="utf-8"),
        "## Settings",
        "",
        *table(("Variable", "Default", "Effect"), settings),
        "",
        f"Accepted, without effect: {ignored}.",
        "",
    ]
    types = dict.fromkeys(struct for resource in LEGACY for struct in reachable(resource))
    for struct in types:
        lines += section(struct, title=name_of(struct))
    rows = yaml.safe_load(ROWS.read_text(encoding="utf-8"))
    lines += ["## Rows of the documentation of April 2025", ""]
    for title, effects in rows["tables"].items():
        cells = [
            (f"`{name}`", effect, f"[{test}](../../{rows['tests'][file]})")
            for name, (effect, file, test) in effects.items()
        ]
        lines += [f"{title}:", "", *table(("Row", "Effect", "Test"), cells), ""]
    return "\n".join(lines)


def page(resource: type[Resource]) -> str:
    """The page of one kind: how to list it, then one table for each type."""
    definition = definition_of(resource)
    title = f"# {resource.KIND.name}{' in v1beta1' if resource in LATER_RESOURCES else ''}"
    lines = [HEAD, title, "", summary(resource), ""]
    lines += facts(resource, definition)
    for struct in reachable(resource):
        lines += section(struct, title="The object" if struct is resource else name_of(struct))
    return "\n".join(lines) + "\n"


def facts(resource: type[Resource], definition: Definition) -> list[str]:
    """The names of a kind, its subresources and the columns of `kubectl get`."""
    subresources = ["`status`"] * definition.status + ["`scale`"] * (definition.scale is not None)
    columns = (f"{column.name} (`{escaped(column.path)}`)" for column in definition.columns)
    rows = (
        ("`apiVersion`", f"`{resource.KIND.api_version}`"),
        ("Versions", versions(resource.KIND.name)),
        ("Plural", f"`{resource.KIND.plural}`"),
        ("Short names", ", ".join(f"`{name}`" for name in definition.short_names)),
        ("Subresources", ", ".join(subresources) or "none"),
        ("Columns", ", ".join(columns)),
    )
    return [*table(("", ""), rows), ""]


def section(struct: type[msgspec.Struct], title: str) -> list[str]:
    """The table of one type."""
    lines = [f"## {title}", ""]
    if title != "The object":
        lines += [summary(struct), ""]
    lines += [*table(("Field", "Type", "Rules", "Text"), map(row, declared(struct))), ""]
    messages = [rule.message for rule in rules_of(struct)]
    messages += [rule.message for rule in transitions_of(struct)]
    for message in messages:
        lines += [f"Rule: {message}.", ""]
    return lines


def row(declaration: Declared) -> tuple[str, ...]:
    """The cells of one field."""
    field, rules = declaration.field, ", ".join(rules_text(declaration))
    return f"`{declaration.name}`", type_text(declaration.type, field), rules, field.text


def rules_text(declaration: Declared) -> Iterator[str]:
    """The rules of one field, in words."""
    field = declaration.field
    if field.default is not msgspec.UNSET:
        yield f"default `{msgspec.json.encode(field.default).decode()}`"
    elif declaration.required:
        yield "required"
    if field.minimum is not None:
        yield f"at least {field.minimum}"
    if field.maximum is not None:
        yield f"at most {field.maximum}"
    if field.min_length is not None:
        yield "not empty" if field.min_length == 1 else f"at least {field.min_length} characters"
    if field.max_length is not None:
        yield f"at most {field.max_length} characters"
    for limit in (field.max_items, field.max_properties):
        if limit is not None:
            yield f"at most {limit} entries"
    if field.pattern is not None:
        yield f"matches `{escaped(field.pattern)}`"


def type_text(type_: Any, field: Field) -> str:
    """The type of a field, linked to its own table or to Kubernetes' reference."""
    bare, marks = unwrapped(type_)
    if get_origin(bare) is tuple:
        return f"list of {type_text(get_args(bare)[0], field)}"
    if struct := struct_of(bare) or field.shape:
        return f"[{name_of(struct)}](#{name_of(struct).lower()})"
    if field.embeds:
        return f"[{OUR_OWN.get(field.embeds, field.embeds)}]({KUBERNETES})"
    if get_origin(bare) is dict and not field.free_form:
        return f"map of {type_text(get_args(bare)[1], field)}"
    return scalar_text(bare, marks, field)


def scalar_text(bare: Any, marks: tuple[Any, ...], field: Field) -> str:
    """The type of a field without a table."""
    if mark := next((mark for mark in marks if isinstance(mark, IntOrText)), None):
        return mark.name
    if field.free_form:
        return "any value" if bare is msgspec.Raw else "any fields"
    if options := field.options or (get_args(bare) if get_origin(bare) is Literal else ()):
        return " or ".join(f"`{option}`" for option in options)
    return field.format or {str: "text", bool: "true or false", int: "integer", float: "number"}[bare]


def struct_of(bare: Any) -> type[msgspec.Struct] | None:
    """The struct that declares the schema of a type, if it is a struct."""
    is_struct = isinstance(bare, type) and issubclass(bare, msgspec.Struct)
    return SHAPES.get(bare, bare) if is_struct else None


def reachable(resource: type[Resource]) -> list[type[msgspec.Struct]]:
    """The types of a page, each once, in the order of first use."""
    structs: list[type[msgspec.Struct]] = []

    def visit(struct: type[msgspec.Struct]) -> None:
        if struct in structs:
            return
        structs.append(struct)
        for declaration in declared(struct):
            for inner in structs_in(declaration.type, declaration.field):
                visit(inner)

    visit(resource)
    return structs


def name_of(struct: type[msgspec.Struct]) -> str:
    """The name of a type for readers."""
    return struct.__name__.removesuffix("Schema")


def structs_in(type_: Any, field: Field) -> Iterator[type[msgspec.Struct]]:
    """The types with their own table that a field refers to."""
    bare, _ = unwrapped(type_)
    if struct := struct_of(bare) or field.shape:
        yield struct
    elif get_origin(bare) in {tuple, dict}:
        for argument in get_args(bare):
            yield from structs_in(argument, field)
