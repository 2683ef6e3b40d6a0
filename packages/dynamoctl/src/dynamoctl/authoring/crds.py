"""`dynamoctl crds`: print the CustomResourceDefinitions."""

import sys
from collections.abc import Sequence

from cyclopts import CycloptsError

from dynamo_graphs.api.crd import RESOURCES, custom_resource_definition
from dynamo_graphs.files.yaml_writer import write_json, write_yaml
from dynamo_legacy.api.crd import RESOURCES as LEGACY
from kube_runtime.crd.definition import definition_of
from kube_runtime.types.meta import Resource


def print_crds(kinds: Sequence[str], *, legacy: bool, output: str) -> None:
    """Print the CustomResourceDefinitions of these kinds, or of all current kinds.

    Raises: CycloptsError for an unknown kind.
    """
    chosen = dict.fromkeys((*selected(kinds), *(LEGACY if legacy else ())))
    definitions = [custom_resource_definition(resource) for resource in chosen]
    (write_yaml if output == "yaml" else write_json)(definitions, sys.stdout)


def selected(names: Sequence[str]) -> tuple[type[Resource], ...]:
    """The kinds with these names, in this order; without names, all current kinds.

    Raises: CycloptsError for a name that no kind has.
    """
    by_name = kinds_by_name((*RESOURCES, *LEGACY))
    for name in names:
        if name.lower() not in by_name:
            kinds = ", ".join(resource.KIND.name for resource in RESOURCES)
            raise CycloptsError(f'unknown kind "{name}" (expected one of {kinds})')
    return tuple(dict.fromkeys(by_name[name.lower()] for name in names)) or RESOURCES


def kinds_by_name(resources: Sequence[type[Resource]]) -> dict[str, type[Resource]]:
    """The kinds by every name that kubectl accepts, in lower case."""
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
