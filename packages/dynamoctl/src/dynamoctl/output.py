"""What `-o` prints: the same formats wherever something is shown, as kubectl has them."""

import sys
from collections.abc import Iterable
from typing import Any

from dynamoctl.screen import show_json
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Kind

FORMATS = ("wide", "json", "yaml", "name", "jsonpath=")
_FOR_PEOPLE = ("", "text", "table", "wide")


def is_for_people(output: str) -> bool:
    """Whether the format is a table or text for people."""
    return output in _FOR_PEOPLE


def name_of(kind: Kind, name: str) -> str:
    """An object as `-o name` prints it: the kind in the singular, its group, and its name."""
    return f"{'.'.join(filter(None, (kind.name.lower(), kind.group)))}/{name}"


def checked(_type: object, output: str) -> None:
    """Raises: ValueError for an unknown format, or a JSONPath that kubectl would not understand."""
    name, _, path = output.partition("=")
    if name == "jsonpath" and path:
        from dynamoctl.jsonpath import template

        template(path)
    elif not is_for_people(output) and output not in FORMATS[:-1]:
        raise ValueError(f"expected one of {', '.join(FORMATS[:-1])}, jsonpath={{.metadata.name}}")


def show_document(output: str, document: Any, names: Iterable[str]) -> None:
    """Print a document in a format for programs; `names` are those of its objects, for `-o name`.

    Raises: ConfigError for an index that an array of the document does not have.
    """
    name, _, path = output.partition("=")
    if name == "json":
        show_json(document)
    elif name == "yaml":
        from dynamo_graphs.output import write_yaml

        write_yaml([document], sys.stdout)
    elif name == "name":
        sys.stdout.write("".join(f"{line}\n" for line in names))
    else:
        from dynamoctl.jsonpath import template

        try:
            sys.stdout.write(template(path)(document))
        except ValueError as error:
            raise ConfigError("jsonpath", str(error)) from None
    sys.stdout.flush()
