"""What `-o` prints: the same formats wherever something is shown, as kubectl has them."""

import sys
from collections.abc import Iterable
from typing import Any

from dynamoctl.options import FOR_PEOPLE
from dynamoctl.screen import show_json
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Kind


def is_for_people(output: str) -> bool:
    """Whether the format is a table or text for people."""
    return output in FOR_PEOPLE


def name_of(kind: Kind, name: str) -> str:
    """An object as `-o name` prints it: the kind in the singular, its group, and its name."""
    return f"{'.'.join(filter(None, (kind.name.lower(), kind.group)))}/{name}"


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
