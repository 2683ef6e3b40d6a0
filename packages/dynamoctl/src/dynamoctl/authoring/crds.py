"""`dynamoctl crds`: prints our CustomResourceDefinitions."""

import sys
from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import CycloptsError, Parameter

from dynamo_graphs.api.crd import RESOURCES, custom_resource_definition
from dynamo_graphs.files.yaml_writer import write_json, write_yaml
from dynamo_legacy.api.crd import RESOURCES as LEGACY
from kube_runtime.commandline.application import application
from kube_runtime.crd.definition import definition_of
from kube_runtime.types.meta import Resource

app = application("crds", "Print the CustomResourceDefinitions.")


@app.default
def crds(
    *kinds: str,
    legacy: bool = False,
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])] = "yaml",
) -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply --server-side -f -`.

    Parameters
    ----------
    kinds:
        Kinds, plurals or short names, for example `dgd` (default: all of today).
    legacy:
        Add those of the older generation, such as DynamoDeployment.
    output:
        Output format: `yaml` prints a stream of documents, `json` one List.
    """
    chosen = dict.fromkeys((*selected(kinds), *(LEGACY if legacy else ())))
    definitions = [custom_resource_definition(resource) for resource in chosen]
    write = write_yaml if output == "yaml" else write_json
    write(definitions, sys.stdout)


def selected(names: Sequence[str]) -> tuple[type[Resource], ...]:
    """The kinds with these names, in the order asked for; all kinds of today if there is no name.

    Raises: CycloptsError for a name that no kind has.
    """
    by_name = kinds_by_name((*RESOURCES, *LEGACY))
    for name in names:
        if name.lower() not in by_name:
            kinds = ", ".join(resource.KIND.name for resource in RESOURCES)
            raise CycloptsError(f'unknown kind "{name}" (expected one of {kinds})')
    return tuple(dict.fromkeys(by_name[name.lower()] for name in names)) or RESOURCES


def kinds_by_name(resources: Sequence[type[Resource]]) -> dict[str, type[Resource]]:
    """The kinds by every name that kubectl takes, in lower case."""
    return {
        name.lower(): resource
        for resource in resources
        for name in (
            resource.KIND.name,
            resource.KIND.plural,
            str(resource.KIND),
            *definition_of(resource).short_names,
        )
    }
