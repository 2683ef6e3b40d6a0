"""`dynamoctl crds`: prints our CustomResourceDefinitions."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import yaml
from cyclopts import Parameter

from dynamo_operator.api.crd import RESOURCES, custom_resource_definition, definition_of
from dynamo_operator.cli.application import application
from dynamo_operator.kube.errors import ConfigError
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.meta import Resource

app = application("crds", "Print our CustomResourceDefinitions.")


@app.default
def crds(
    *kinds: str,
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])] = "yaml",
) -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply --server-side -f -`.

    Parameters
    ----------
    kinds:
        Kinds, plurals or short names, such as `dgd`. Without any, all are printed.
    output:
        `yaml` prints a stream of documents, `json` one list.
    """
    definitions = [custom_resource_definition(each) for each in selected(kinds)]
    sys.stdout.write(as_yaml(definitions) if output == "yaml" else as_json(definitions))


def selected(names: Sequence[str]) -> tuple[type[Resource], ...]:
    """The kinds with these names, in the order asked for; all kinds if there is no name.

    Raises: ConfigError for a name that no kind has.
    """
    known = {
        name.lower(): resource
        for resource in RESOURCES
        for name in (
            resource.KIND.name,
            resource.KIND.plural,
            str(resource.KIND),
            *definition_of(resource).short_names,
        )
    }
    for name in names:
        if name.lower() not in known:
            kinds = ", ".join(resource.KIND.name for resource in RESOURCES)
            raise ConfigError("dynamoctl crds", f'no kind is called "{name}"; there are {kinds}')
    return tuple(dict.fromkeys(known[name.lower()] for name in names)) or RESOURCES


def as_yaml(objects: Sequence[Object]) -> str:
    """The objects as a stream of YAML documents, in the order of their fields."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=100, explicit_start=True)


def as_json(objects: Sequence[Object]) -> str:
    """The objects as a `List` that kubectl takes, indented."""
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


class _Dumper(yaml.CSafeDumper):
    """Writes shared parts of a schema out each time; kubectl need not follow YAML aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is the library's
        return True
