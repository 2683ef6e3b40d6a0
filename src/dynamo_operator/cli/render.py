"""`dynamoctl render`: the objects that the controllers would apply, offline, through the same code."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dynamo_operator.cli.configuration import read_settings
from dynamo_operator.cli.expansion import expanded, identity
from dynamo_operator.cli.manifests import Manifest, manifests
from dynamo_operator.cli.yaml_writer import write_json, write_yaml
from dynamo_operator.facts import Facts
from dynamo_operator.kube.errors import ConfigError
from dynamo_operator.kube.kind import Object
from dynamo_operator.settings import RenderSettings

_DEFAULT_NAMESPACE = "default"


def print_objects(
    files: Sequence[str], *, orchestrator: str, settings: Path | None, namespace: str, output: str
) -> None:
    """Prints what the objects in the files become. Nothing is printed when anything is wrong.

    `orchestrator` is what the cluster has beside Deployments: `lws`, `grove` or nothing.

    Raises: ConfigError, or ExceptionGroup of ConfigError, one for each problem.
    """
    facts = Facts(
        lws_served=orchestrator == "lws", grove_served=orchestrator == "grove", istio_served=True
    )
    rendering = read_settings({}, file=settings, environment=os.environ).render
    if settings is None:  # which gateways the administrator allows is not known here
        rendering = msgspec.structs.replace(rendering, allowed_gateways="*")
    objects = rendered(manifests(files), namespace, facts, rendering)
    (write_yaml if output == "yaml" else write_json)(objects, sys.stdout)


def rendered(
    found: Sequence[Manifest], namespace: str, facts: Facts, settings: RenderSettings
) -> list[Object]:
    """The objects that all manifests together become.

    Raises: ExceptionGroup of ConfigError, one for each problem.
    """
    objects: dict[tuple[str, ...], Object] = {}  # what several components share is there once
    problems: list[ConfigError] = []
    places: dict[tuple[str, ...], str] = {}
    for manifest in found:
        document, refusal = _in_namespace(manifest, namespace)
        expansion = expanded(document, facts, settings)
        problems += refusal
        problems += (manifest.problem(each.path, each.message) for each in expansion.problems)
        if expansion.problems:
            continue
        place = manifest.document.place(manifest.prefix)
        first = places.setdefault(identity(document), place)
        if first != place:
            problems.append(manifest.problem("metadata.name", f"the same object as at {first}"))
        for each in expansion.objects:
            objects.setdefault(identity(each), each)
    if problems:
        raise ExceptionGroup("manifests", problems)
    return list(objects.values())


def _in_namespace(manifest: Manifest, namespace: str) -> tuple[Object, list[ConfigError]]:
    """The object with a namespace, and the refusal of one that does not go with `-n`."""
    metadata = manifest.value.get("metadata")
    if not isinstance(metadata, dict):
        return manifest.value, []
    own = metadata.get("namespace")
    if own and namespace and own != namespace:
        message = f'"{own}" is not the namespace "{namespace}" of the command line'
        return manifest.value, [manifest.problem("metadata.namespace", message)]
    chosen = own or namespace or _DEFAULT_NAMESPACE
    return {**manifest.value, "metadata": {**metadata, "namespace": chosen}}, []
