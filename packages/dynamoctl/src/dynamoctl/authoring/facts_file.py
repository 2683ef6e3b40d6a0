"""Facts about the cluster for `dynamoctl render`: from `--facts`, and from objects in the files."""

import base64
import binascii
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.facts import Facts
from dynamo_graphs.files.yaml_reader import Document, documents
from dynamo_graphs.offline import Beside
from dynamo_graphs.types.secrets import PullSecret
from dynamo_graphs.validation.schema import schema_problems
from dynamo_graphs.validation.syntax import nearest
from dynamo_operator.cli.configuration import text_of
from dynamo_operator.reconcile.read import namespace_facts
from dynamo_operator.reconcile.transforms import registries_only
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object
from kube_runtime.types.core import ServiceAccount

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

    Raises: ConfigError, or ExceptionGroup of ConfigError, one for each mistake.
    """
    parsed = documents(str(file), text_of(file))
    if len(parsed) > 1:
        raise ConfigError(parsed[1].place(""), "expected one document in a facts file")
    if not parsed:
        return facts
    overrides = _decoded(parsed[0])
    changes = {
        name: value
        for name, value in msgspec.structs.asdict(overrides).items()
        if value is not None
    }
    return replace(facts, **changes)


def _decoded(document: Document) -> FactsFile:
    if not isinstance(document.value, dict):
        raise ConfigError(document.place(""), "expected a mapping")
    names = tuple(field.encode_name for field in msgspec.structs.fields(FactsFile))
    for key in document.value:
        if key not in names:
            hint = nearest(str(key), names)
            raise ConfigError(document.place(str(key)), f"unknown fact {key}{hint}")
    try:
        return msgspec.convert(document.value, FactsFile)
    except msgspec.ValidationError as error:
        raise ConfigError(document.place(""), str(error)) from error


def surroundings(
    objects: Sequence[Object], facts: Facts, namespace: str
) -> dict[str, tuple[Facts, Beside]]:
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
    """The facts, with the pull secrets and the ServiceAccount among the objects."""
    declared = namespace_facts(
        [registries_only(secret) for secret in map(_pull_secret, objects) if secret is not None],
        [
            msgspec.convert(body, ServiceAccount)
            for body in objects
            if (body.get("apiVersion"), body.get("kind")) == ("v1", "ServiceAccount")
        ],
    )
    secrets = {
        host: tuple(
            sorted({*facts.pull_secrets.get(host, ()), *declared.pull_secrets.get(host, ())})
        )
        for host in {*facts.pull_secrets, *declared.pull_secrets}
    }
    account = declared.component_service_account or facts.component_service_account
    return replace(facts, pull_secrets=secrets, component_service_account=account)


def _pull_secret(body: Object) -> PullSecret | None:
    """The pull secret in a manifest, from `data` and `stringData`."""
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
    return msgspec.convert({"metadata": metadata, "data": encoded | more}, PullSecret)


def _beside(objects: Sequence[Object]) -> Beside:
    adapters: dict[str, dict[str, DynamoGraphDeploymentScalingAdapter]] = defaultdict(dict)
    config_maps: dict[str, dict[str, str]] = {}
    for body in objects:
        if body.get("kind") == DynamoGraphDeploymentScalingAdapter.KIND.name:
            if schema_problems(body):
                continue  # reported as problems of that object
            adapter = msgspec.convert(body, DynamoGraphDeploymentScalingAdapter)
            if adapter.spec is not None:
                reference = adapter.spec.dgd_ref
                adapters[reference.name][reference.service_name] = adapter
        elif (body.get("apiVersion"), body.get("kind")) == ("v1", "ConfigMap"):
            config_maps[body["metadata"]["name"]] = _texts(body.get("data"))
    return Beside(dict(adapters), config_maps)


def _texts(value: object) -> dict[str, str]:
    """The string entries of a mapping; others are left out."""
    entries = value.items() if isinstance(value, dict) else ()
    return {name: text for name, text in entries if isinstance(text, str)}
