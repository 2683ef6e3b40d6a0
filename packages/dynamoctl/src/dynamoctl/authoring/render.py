"""`dynamoctl render`: the objects that the controllers would apply, from the same code, without a cluster."""

import base64
import binascii
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from dynamo_graphs.offline import NOTHING, RENDERED, Beside, expanded, identity
from dynamo_graphs.output import write_json, write_yaml
from dynamo_graphs.schema import schema_problems
from dynamo_graphs.versions import in_version
from dynamo_operator.component.read import namespace_facts
from dynamo_operator.documents import documents
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.process.flags import text_of
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, PullSecret
from dynamo_operator.shared.problems import nearest
from dynamo_operator.shared.transforms import registries_only
from dynamoctl.authoring.lint import errors_of
from dynamoctl.authoring.manifest import DEFAULT_NAMESPACE, Manifest, position, readable
from dynamoctl.installation.manifests import render_settings
from kube_runtime.errors import ConfigError, ConfigErrors
from kube_runtime.types.kinds import ServiceAccount
from kube_runtime.types.meta import Object, from_plain

_PULL_SECRET = "kubernetes.io/dockerconfigjson"  # noqa: S105  the type of one


class FactsFile(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The facts that a user can state; None keeps the default.

    `pull_secrets` are names of Secrets by registry host.
    """

    grove_served: bool | None = None
    kai_served: bool | None = None
    lws_served: bool | None = None
    istio_served: bool | None = None
    component_service_account: str = ""
    pull_secrets: dict[str, tuple[str, ...]] = {}


def with_facts_file(facts: Facts, file: Path) -> Facts:
    """The facts, overridden by those of a file.

    Raises: ConfigError, or ConfigErrors, one for each mistake.
    """
    parsed = documents(str(file), text_of(file))
    if len(parsed) > 1:
        raise ConfigError(parsed[1].place(""), "expected one document in a facts file")
    if not parsed:
        return facts
    (document,) = parsed
    if not isinstance(document.value, dict):
        raise ConfigError(document.place(""), "expected a mapping")
    names = tuple(field.encode_name for field in msgspec.structs.fields(FactsFile))
    for key in document.value:
        if key not in names:
            hint = nearest(str(key), names)
            raise ConfigError(document.place(str(key)), f"unknown fact {key}{hint}")
    try:
        overrides = from_plain(document.value, FactsFile)
    except msgspec.ValidationError as error:
        raise ConfigError(document.place(""), str(error)) from error
    changes = {name: value for name, value in msgspec.structs.asdict(overrides).items() if value is not None}
    return replace(facts, **changes)


def surroundings(objects: Sequence[Object], facts: Facts, namespace: str) -> dict[str, tuple[Facts, Beside]]:
    """By namespace, the facts and the other objects, as found in the files.

    `namespace` is that of objects that name none. Malformed objects of other kinds are ignored: the API
    server refuses them.
    """
    groups: dict[str, list[Object]] = defaultdict(list)
    for body in objects:
        metadata = body.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
            groups[str(metadata.get("namespace") or namespace)].append(body)
    return {place: (_with_objects(facts, group), _beside(group)) for place, group in groups.items()}


def _with_objects(facts: Facts, objects: Sequence[Object]) -> Facts:
    declared = namespace_facts(
        [registries_only(secret) for secret in map(_pull_secret, objects) if secret is not None],
        [
            from_plain(body, ServiceAccount)
            for body in objects
            if (body.get("apiVersion"), body.get("kind")) == ("v1", "ServiceAccount")
        ],
    )
    secrets = {
        host: tuple(sorted({*facts.pull_secrets.get(host, ()), *declared.pull_secrets.get(host, ())}))
        for host in {*facts.pull_secrets, *declared.pull_secrets}
    }
    account = declared.component_service_account or facts.component_service_account
    return replace(facts, pull_secrets=secrets, component_service_account=account)


def _pull_secret(body: Object) -> PullSecret | None:
    if body.get("kind") != "Secret" or body.get("type") != _PULL_SECRET:
        return None
    written, encoded = (_texts(body.get(field)) for field in ("stringData", "data"))
    try:
        for text in encoded.values():
            base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    more = {name: base64.b64encode(text.encode()).decode() for name, text in written.items()}
    metadata = {"name": body["metadata"]["name"]}
    return from_plain({"metadata": metadata, "data": encoded | more}, PullSecret)


def _beside(objects: Sequence[Object]) -> Beside:
    adapters: dict[str, dict[str, DynamoGraphDeploymentScalingAdapter]] = defaultdict(dict)
    config_maps: dict[str, dict[str, str]] = {}
    for body in objects:
        if body.get("kind") == DynamoGraphDeploymentScalingAdapter.KIND.name:
            if schema_problems(body):
                continue  # reported as problems of that object
            adapter = from_plain(in_version(body, "v1alpha1"), DynamoGraphDeploymentScalingAdapter)
            if adapter.spec is not None:
                reference = adapter.spec.dgd_ref
                adapters[reference.name][reference.service_name] = adapter
        elif (body.get("apiVersion"), body.get("kind")) == ("v1", "ConfigMap"):
            config_maps[body["metadata"]["name"]] = _texts(body.get("data"))
    return Beside(dict(adapters), config_maps)


def _texts(value: object) -> dict[str, str]:
    entries = value.items() if isinstance(value, dict) else ()
    return {name: text for name, text in entries if isinstance(text, str)}


def print_objects(
    files: Sequence[str],
    *,
    orchestrator: str,
    settings: Path | None,
    namespace: str,
    output: str,
    facts: Path | None = None,
    is_recursive: bool = False,
) -> None:
    """Print the objects that the operator would create, and others unchanged, in order; nothing on any error.

    `orchestrator` is what the cluster serves beside Deployments: `lws`, `grove` or `deployment` for none.
    `facts` is a file with more facts about the cluster.

    Raises: ConfigError, or ConfigErrors, one for each problem.
    """
    cluster_facts = Facts(
        lws_served=orchestrator == "lws", grove_served=orchestrator == "grove", istio_served=True
    )
    if facts is not None:
        cluster_facts = with_facts_file(cluster_facts, facts)
    entries = readable(files, is_recursive=is_recursive)
    objects = rendered(entries, namespace, cluster_facts, render_settings(settings))
    (write_yaml if output == "yaml" else write_json)(objects, sys.stdout)


def rendered(
    entries: Sequence[Manifest | ConfigError], namespace: str, facts: Facts, settings: RenderSettings
) -> list[Object]:
    """Render all manifests together. Among them are the errors of those that could not be read.

    Raises: ConfigErrors, one for each problem, by file and line.
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
        metadata = document.get("metadata")
        own = str(metadata.get("namespace", "")) if isinstance(metadata, dict) else ""
        in_namespace, beside = by_namespace.get(own, anywhere)
        expansion = expanded(document, in_namespace, settings, beside)
        if expansion.problems:  # the first kind of them: of the schema, or of the rules
            unrendered = {manifest.problem(it.path, it.message) for it in expansion.problems}
            problems += {
                str(it): it for it in (*unrendered, *errors_of(manifest, namespace, settings))
            }.values()
            continue
        place = manifest.place()
        _, *named = identity(document)  # in whichever version
        first = places.setdefault(tuple(named), place)
        if first != place:
            text = f"duplicate object, first defined at {first}"
            problems.append(manifest.problem("metadata.name", text))
        if document["kind"] not in RENDERED:
            objects["as it is", str(index)] = manifest.value
        for body in expansion.objects:
            objects.setdefault(identity(body), body)
    if problems:
        files = [position(entry.source)[0] for entry in entries]
        problems.sort(key=lambda it: (files.index(position(it.source)[0]), position(it.source)))
        raise ConfigErrors("manifests", problems)
    return list(objects.values())
