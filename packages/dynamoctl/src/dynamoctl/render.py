"""`dynamoctl render`: the objects that the controllers would apply, offline, through the same code."""

import sys
from collections.abc import Sequence
from pathlib import Path

from dynamo_graphs.facts import Facts
from dynamo_graphs.files.yaml_writer import write_json, write_yaml
from dynamo_graphs.offline.expansion import NOTHING, RENDERED, expanded, identity
from dynamo_graphs.settings import RenderSettings
from dynamoctl.facts_file import surroundings, with_facts_file
from dynamoctl.installed import rendering_settings
from dynamoctl.manifests import Manifest, manifests
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object

_DEFAULT_NAMESPACE = "default"


def print_objects(
    files: Sequence[str],
    *,
    orchestrator: str,
    settings: Path | None,
    namespace: str,
    output: str,
    facts: Path | None = None,
) -> None:
    """Prints what the objects in the files become. Nothing is printed when anything is wrong.

    Objects that do not become others, of whatever kind, are printed as they are, where they stand.
    `orchestrator` is what the cluster has beside Deployments: `lws`, `grove` or nothing. `facts` is a file
    that says more of the cluster.

    Raises: ConfigError, or ExceptionGroup of ConfigError, one for each problem.
    """
    known = Facts(
        lws_served=orchestrator == "lws", grove_served=orchestrator == "grove", istio_served=True
    )
    if facts is not None:
        known = with_facts_file(known, facts)
    objects = rendered(manifests(files), namespace, known, rendering_settings(settings))
    (write_yaml if output == "yaml" else write_json)(objects, sys.stdout)


def rendered(
    found: Sequence[Manifest], namespace: str, facts: Facts, settings: RenderSettings
) -> list[Object]:
    """The objects that all manifests together become.

    Raises: ExceptionGroup of ConfigError, one for each problem.
    """
    values = [each.value for each in found]
    known = surroundings(values, facts, namespace or _DEFAULT_NAMESPACE)
    anywhere = (facts, NOTHING)
    objects: dict[tuple[str, ...], Object] = {}  # what several components share is there once
    problems: list[ConfigError] = []
    places: dict[tuple[str, ...], str] = {}
    for index, manifest in enumerate(found):
        if not manifest.is_ours:
            objects["as it is", str(index)] = manifest.value
            continue
        document, refusal = _in_namespace(manifest, namespace)
        in_namespace, beside = known.get(_namespace(document), anywhere)
        expansion = expanded(document, in_namespace, settings, beside)
        problems += refusal
        problems += (manifest.problem(each.path, each.message) for each in expansion.problems)
        if expansion.problems:
            continue
        place = manifest.document.place(manifest.prefix)
        first = places.setdefault(identity(document), place)
        if first != place:
            problems.append(
                manifest.problem("metadata.name", (f"duplicate object, first defined at {first}"))
            )
        if document["kind"] not in RENDERED:
            objects["as it is", str(index)] = manifest.value
        for each in expansion.objects:
            objects.setdefault(identity(each), each)
    if problems:
        raise ExceptionGroup("manifests", problems)
    return list(objects.values())


def _namespace(document: Object) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("namespace", "")) if isinstance(metadata, dict) else ""


def _in_namespace(manifest: Manifest, namespace: str) -> tuple[Object, list[ConfigError]]:
    """The object with a namespace, and the refusal of one that does not go with `-n`."""
    metadata = manifest.value.get("metadata")
    if not isinstance(metadata, dict):
        return manifest.value, []
    own = metadata.get("namespace")
    if own and namespace and own != namespace:
        message = f'"{own}" does not match the namespace "{namespace}" of the command line'
        return manifest.value, [manifest.problem("metadata.namespace", message)]
    chosen = own or namespace or _DEFAULT_NAMESPACE
    return {**manifest.value, "metadata": {**metadata, "namespace": chosen}}, []
