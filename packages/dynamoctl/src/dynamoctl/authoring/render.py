"""`dynamoctl render`: the objects that the controllers would apply, from the same code, without a cluster."""

import sys
from collections.abc import Sequence
from pathlib import Path

from dynamo_graphs.facts import Facts
from dynamo_graphs.files.yaml_writer import write_json, write_yaml
from dynamo_graphs.offline import NOTHING, RENDERED, expanded, identity
from dynamo_graphs.settings import RenderSettings
from dynamoctl.authoring.facts_file import surroundings, with_facts_file
from dynamoctl.authoring.manifests import DEFAULT_NAMESPACE, Manifest, readable
from dynamoctl.installation.manifests import render_settings
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object


def print_objects(
    files: Sequence[str],
    *,
    orchestrator: str,
    settings: Path | None,
    namespace: str,
    output: str,
    facts: Path | None = None,
) -> None:
    """Print the objects that the operator would create, and others unchanged, in order; nothing on any error.

    `orchestrator` is what the cluster serves beside Deployments: `lws`, `grove` or `deployment` for none.
    `facts` is a file with more facts about the cluster.

    Raises: ConfigError, or ExceptionGroup of ConfigError, one for each problem.
    """
    cluster_facts = Facts(
        lws_served=orchestrator == "lws", grove_served=orchestrator == "grove", istio_served=True
    )
    if facts is not None:
        cluster_facts = with_facts_file(cluster_facts, facts)
    entries = readable(files)
    objects = rendered(entries, namespace, cluster_facts, render_settings(settings))
    (write_yaml if output == "yaml" else write_json)(objects, sys.stdout)


def rendered(
    entries: Sequence[Manifest | ConfigError],
    namespace: str,
    facts: Facts,
    settings: RenderSettings,
) -> list[Object]:
    """Render all manifests together. Among them are the errors of those that could not be read.

    Raises: ExceptionGroup of ConfigError, one for each problem.
    """
    manifests = [entry for entry in entries if isinstance(entry, Manifest)]
    values = [manifest.value for manifest in manifests]
    by_namespace = surroundings(values, facts, namespace or DEFAULT_NAMESPACE)
    anywhere = (facts, NOTHING)
    objects: dict[tuple[str, ...], Object] = {}  # objects that components share appear once
    problems = [entry for entry in entries if isinstance(entry, ConfigError)]
    places: dict[tuple[str, ...], str] = {}
    for index, manifest in enumerate(manifests):
        if not manifest.is_ours:
            objects["as it is", str(index)] = manifest.value
            continue
        document = manifest.value
        try:
            document = manifest.placed(namespace, DEFAULT_NAMESPACE)
        except ConfigError as error:
            problems.append(error)
        in_namespace, beside = by_namespace.get(_namespace(document), anywhere)
        expansion = expanded(document, in_namespace, settings, beside)
        problems += (
            manifest.problem(problem.path, problem.message) for problem in expansion.problems
        )
        if expansion.problems:
            continue
        place = manifest.place()
        first = places.setdefault(identity(document), place)
        if first != place:
            problems.append(
                manifest.problem("metadata.name", (f"duplicate object, first defined at {first}"))
            )
        if document["kind"] not in RENDERED:
            objects["as it is", str(index)] = manifest.value
        for body in expansion.objects:
            objects.setdefault(identity(body), body)
    if problems:
        raise ExceptionGroup("manifests", problems)
    return list(objects.values())


def _namespace(document: Object) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("namespace", "")) if isinstance(metadata, dict) else ""
