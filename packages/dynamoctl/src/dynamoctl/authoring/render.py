"""`dynamoctl render`: the objects that the controllers would apply, from the same code, without a cluster."""

import base64
import binascii
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cyclopts import CycloptsError
from msgspec.structs import replace

from dynamo_graphs.ages import counted
from dynamo_graphs.offline import NOTHING, RENDERED, Beside, expanded, identity
from dynamo_graphs.output import write_json, write_yaml
from dynamo_graphs.schema import schema_problems
from dynamo_legacy.api import RESOURCES as LEGACY
from dynamo_operator.component.api import GROUP
from dynamo_operator.component.read import namespace_facts
from dynamo_operator.crds import RESOURCES
from dynamo_operator.documents import Document, documents
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.process.flags import text_of
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, PullSecret
from dynamo_operator.shared.problems import nearest
from dynamo_operator.shared.transforms import registries_only
from dynamoctl.installation.manifests import render_settings
from kube_runtime.errors import ConfigError, ConfigErrors, leaves, visible
from kube_runtime.schema import definition_of
from kube_runtime.types.kinds import ServiceAccount
from kube_runtime.types.meta import Object, Resource, from_plain

STANDARD_INPUT = "-"
DEFAULT_NAMESPACE = "default"
"""The namespace of objects where neither they nor the command line name one."""
KINDS = frozenset(resource.KIND.name for resource in RESOURCES)
_SUFFIXES = (".yaml", ".yml", ".json")
_POSITION = re.compile(r":([0-9]+):([0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and its position: a document, or an item of a List."""

    value: Object
    document: Document
    prefix: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether the object is of our kinds, is probably meant to be, or has no kind at all."""
        version, kind = self.value.get("apiVersion"), self.value.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str) or kind in KINDS:
            return True
        if version.partition("/")[0] != GROUP:
            return False  # of another project, even with a similar name
        return kind.startswith("Dynamo") or bool(nearest(kind, KINDS))

    @property
    def metadata(self) -> Object:
        """The metadata; {} unless it is a mapping."""
        metadata = self.value.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def source(self) -> str:
        """The file that contains it."""
        return self.document.source

    def problem(self, path: str, message: str) -> ConfigError:
        """A problem of one field, with its position."""
        return ConfigError(self.place(path), f"{path}: {message}")

    def placed(self, given: str, default: str) -> Object:
        """The object with its namespace: its own, else the given one, else the default.

        Raises: ConfigError if its own differs from the given one.
        """
        metadata = self.value.get("metadata")
        if not isinstance(metadata, dict):
            return self.value
        own = metadata.get("namespace")
        if own and given and own != given:
            message = f'"{own}" does not match the namespace "{given}" of the command line'
            raise self.problem("metadata.namespace", message)
        return {**self.value, "metadata": {**metadata, "namespace": own or given or default}}

    def place(self, path: str = "") -> str:
        """The file, line and column of a field, or of the object."""
        parts = filter(None, (self.prefix, path))
        return self.document.place(".".join(parts))


def position(place: str) -> tuple[str, int, int]:
    """The file, line and column of `FILE:LINE:COLUMN` or `FILE`; line and column are 0 without them."""
    match = _POSITION.search(place)
    return (place[: match.start()], int(match[1]), int(match[2])) if match else (place, 0, 0)


def read_manifests(files: Sequence[str], *, is_recursive: bool = False) -> list[Manifest]:
    """The objects in files, in the YAML and JSON files of folders, and in standard input (`-`).

    Raises: ConfigErrors, one for each mistake in any of them.
    """
    entries = readable(files, is_recursive=is_recursive)
    if mistakes := [entry for entry in entries if isinstance(entry, ConfigError)]:
        raise ConfigErrors("manifests", mistakes)
    return [entry for entry in entries if isinstance(entry, Manifest)]


def readable(files: Sequence[str], *, is_recursive: bool = False) -> list[Manifest | ConfigError]:
    """The objects as of `read_manifests`, with the mistakes of those that cannot be read, in their order.

    As for kubectl, the sub-folders of a folder count if `is_recursive`; if not, stderr names them.
    """
    entries: list[Manifest | ConfigError] = []
    for file in files:
        for source in _sources(file, is_recursive=is_recursive):
            if isinstance(source, ConfigError):
                entries.append(source)
                continue
            try:
                entries += _objects(source)
            except* ConfigError as group:
                entries += leaves(group)
    if not entries:
        names = ("<stdin>" if file == STANDARD_INPUT else file for file in files)
        entries.append(ConfigError(", ".join(names), "no objects found"))
    return entries


def _sources(file: str, *, is_recursive: bool) -> list[str | ConfigError]:
    """The files that a path stands for, and what prevents reading a folder.

    Hidden folders, such as `.github`, are no part of a folder: their YAML files are seldom manifests.
    """
    root = Path(file)
    if file == STANDARD_INPUT or not root.is_dir():
        return [file]
    sources: list[str | ConfigError] = []
    beside: dict[str, None] = {}  # sub-folders with manifests that are not read

    def report(error: OSError) -> None:
        sources.append(ConfigError(str(error.filename), f"cannot read it: {error.strerror}"))

    for folder, folders, names in os.walk(root, onerror=report):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        manifests = sorted(name for name in names if name.endswith(_SUFFIXES))
        if is_recursive or Path(folder) == root:
            sources += [str(Path(folder, name)) for name in manifests]
        elif manifests:
            beside[Path(folder).relative_to(root).parts[0]] = None
    hint = f"{counted(len(beside), 'sub-folder')} with manifests not read: {', '.join(beside)}; -R reads them"
    if not sources:
        return [ConfigError(file, f"no YAML or JSON file found{f'; {hint}' if beside else ''}")]
    if beside:
        print(f"note: {visible(file)}: {visible(hint)}", file=sys.stderr)
    return sources


def _objects(source: str) -> Iterator[Manifest]:
    name, is_file = ("<stdin>", False) if source == STANDARD_INPUT else (source, True)
    try:
        text = text_of(Path(source)) if is_file else sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(name, "expected UTF-8 text") from error
    for document in documents(name, text):
        yield from _unlisted(document)


def _unlisted(document: Document) -> Iterator[Manifest]:
    """The object of a document, or each item of a List: kubectl prints several objects as one."""
    value = document.value
    is_list = isinstance(value, dict) and value.get("kind") == "List"
    items: object = value.get("items") if is_list else None
    entries = enumerate(items) if isinstance(items, list) else [(None, value)]
    for index, body in entries:
        prefix = "" if index is None else f"items[{index}]"
        if not isinstance(body, dict):
            message = "expected an object with apiVersion and kind"
            raise ConfigError(document.place(prefix), message)
        yield Manifest(body, document, prefix)


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
            adapter = from_plain(body, DynamoGraphDeploymentScalingAdapter)
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
    from dynamoctl.authoring.lint import errors_of  # which reads its files with this module

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
        first = places.setdefault(identity(document), place)
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
