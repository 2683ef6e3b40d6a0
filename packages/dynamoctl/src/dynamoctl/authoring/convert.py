"""`dynamoctl convert`: convert manifests of the older generation to current kinds."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from dynamo_graphs.offline import expanded
from dynamo_graphs.output import write_json, write_yaml
from dynamo_legacy.api import (
    DynamoDeployment,
    DynamoNim,
    DynamoNimDeployment,
    DynamoNimRequest,
    DynamoNimSpec,
)
from dynamo_legacy.convert import (
    Conversion,
    ConversionContext,
    Level,
    converted_component,
    converted_deployment,
)
from dynamo_legacy.names import DYNAMO_TAG, GRAPH_CONFIG, GRAPH_CONFIG_KEY, nim_name
from dynamo_legacy.render import GraphConfig, parse_graph_config, services_only
from dynamo_legacy.settings import read_legacy_settings
from dynamo_operator.component.api import GROUP
from dynamo_operator.crds import filled, whole_schema
from dynamo_operator.process.flags import text_of
from dynamo_operator.shared.cluster import Facts
from dynamoctl.authoring.manifest import Manifest
from dynamoctl.installation.manifests import render_settings
from dynamoctl.options import ConvertOptions, Where
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ConfigError, ConfigErrors, DecodeError
from kube_runtime.types.meta import Object, Resource
from kube_runtime.wire import decode

R = TypeVar("R", bound=Resource)

_CONVERTED = (DynamoDeployment, DynamoNimDeployment)
_READ = (DynamoNim, DynamoNimRequest)
"""Kinds that are not converted: they have the images of tags."""
_KINDS = {type_.KIND.name: type_ for type_ in (*_CONVERTED, *_READ)}


@dataclass(frozen=True, slots=True)
class _Context:
    """What objects refer to: images by DynamoNim, graph configurations by ConfigMap."""

    images: Mapping[tuple[str, str], DynamoNimSpec]
    configurations: Mapping[tuple[str, str], str]
    choices: ConvertOptions
    at: ConversionContext
    graph: GraphConfig | None


def convert(
    manifests: Sequence[Manifest], choices: ConvertOptions, *, prints_others: bool = True
) -> ExitCode:
    """Print the converted objects, with `prints_others` also the others, and each remark on stderr.

    On any error, nothing is printed on stdout. With `--strict`, dropped or guessed fields are a problem.

    Raises: ConfigErrors.
    """
    context = _context(manifests, choices)
    problems: list[ConfigError] = []
    objects: list[Object] = []
    lost = 0
    parents = {_identity(manifest) for manifest in manifests if _legacy_kind(manifest) is DynamoDeployment}
    for manifest in manifests:
        kind = _legacy_kind(manifest)
        if kind is None:
            objects += [manifest.value] if prints_others else []
            continue
        owners = manifest.metadata.get("ownerReferences")
        is_part = any(  # of a DynamoDeployment, which is converted instead of it
            isinstance(owner, dict)
            and owner.get("kind") == DynamoDeployment.KIND.name
            and (_identity(manifest)[0], str(owner.get("name"))) in parents
            for owner in (owners if isinstance(owners, list) else ())
        )
        if kind in _READ or is_part:
            continue
        try:
            result = _converted(manifest, context)
        except ConfigError as error:
            problems.append(error)
            continue
        for body in result.objects:
            if body["apiVersion"].startswith(f"{GROUP}/"):
                placed = {**body, "metadata": {"namespace": "default", **body["metadata"]}}
                facts = Facts(istio_served=True)
                problems += (
                    manifest.problem("spec", f"what it becomes is invalid: {problem}")
                    for problem in expanded(placed, facts, context.at.settings).problems
                )
        objects += result.objects
        lost += sum(remark.level is not Level.NOTE for remark in result.remarks)
        for remark in result.remarks:
            place = manifest.place(remark.path)
            print(f"{remark.level}: {place}: {remark.path}: {remark.message}", file=sys.stderr)
    if problems:
        raise ConfigErrors("manifests", problems)
    (write_yaml if choices.output == "yaml" else write_json)(objects, sys.stdout)
    return ExitCode.PROBLEMS if choices.is_strict and lost else ExitCode.OK


async def convert_cluster(where: Where, choices: ConvertOptions) -> ExitCode:
    """Convert the objects in a namespace of a cluster.

    Raises: OperatorError; ConfigErrors.
    """
    from dynamo_operator.documents import documents
    from dynamoctl.target import cluster
    from kube_runtime.types.kinds import ConfigMap

    values: list[Object] = []
    async with cluster(where) as at:
        for type_ in _KINDS.values():
            values += await at.reading.all_raw(type_.KIND, at.namespace)
        values += await at.reading.all_raw(ConfigMap.KIND, at.namespace, labels=GRAPH_CONFIG)
    manifests = [
        Manifest(body, document)
        for body in values
        for document in documents(
            f"{body['kind']}/{body['metadata']['name']}", msgspec.json.encode(body).decode()
        )
    ]
    return convert(manifests, choices, prints_others=False)


def _context(manifests: Sequence[Manifest], choices: ConvertOptions) -> _Context:
    graph = None
    if choices.graph_config is not None:
        graph = _graph(str(choices.graph_config), text_of(choices.graph_config))
    images: dict[tuple[str, str], DynamoNimSpec] = {}
    configurations: dict[tuple[str, str], str] = {}
    for manifest in manifests:
        place = _identity(manifest)
        if _legacy_kind(manifest) is DynamoNimRequest:
            request = _decoded(manifest, DynamoNimRequest)
            if image := request.spec.image:  # an image named in its status may be anybody's
                images.setdefault(place, DynamoNimSpec(tag=request.spec.bento_tag, image=image))
        elif _legacy_kind(manifest) is DynamoNim:
            images[place] = _decoded(manifest, DynamoNim).spec
        elif manifest.value.get("kind") == "ConfigMap":
            data = manifest.value.get("data")
            text = data.get(GRAPH_CONFIG_KEY) if isinstance(data, dict) else None
            if isinstance(text, str):
                configurations[place] = text
    at = ConversionContext(
        render_settings(choices.settings), read_legacy_settings(os.environ), choices.suffix
    )
    return _Context(images, configurations, choices, at, graph)


def _converted(manifest: Manifest, context: _Context) -> Conversion:
    if _legacy_kind(manifest) is DynamoNimDeployment:
        nim = _decoded(manifest, DynamoNimDeployment)
        image = _image(manifest, nim.metadata.namespace, nim.spec.dynamo_nim, context)
        return converted_component(nim, manifest.value.get("spec") or {}, image, context.at)
    deployment = _decoded(manifest, DynamoDeployment)
    tag = deployment.spec.dynamo_nim
    try:
        name = nim_name(tag)
        image = _image(manifest, deployment.metadata.namespace, name, context)
        graph = context.graph or _graph_of(manifest, deployment, name, context)
        return converted_deployment(deployment, graph, image, context.at)
    except ValueError as error:
        raise manifest.problem("spec", str(error)) from error


def _image(manifest: Manifest, namespace: str, nim: str, context: _Context) -> DynamoNimSpec:
    spec = context.images.get((namespace, nim))
    if context.choices.image:
        tag = spec.tag if spec else nim.replace("--", ":", 1)
        secrets = spec.image_pull_secrets if spec else ()
        return DynamoNimSpec(tag=tag, image=context.choices.image, image_pull_secrets=secrets)
    if spec is None:
        text = f"unknown image of {nim} (add its DynamoNim, or name one with --image)"
        raise manifest.problem("spec.dynamoNim", text)
    return spec


def _graph_of(manifest: Manifest, deployment: DynamoDeployment, name: str, context: _Context) -> GraphConfig:
    annotations = deployment.metadata.annotations
    chosen = annotations.get(GRAPH_CONFIG) or name
    text = context.configurations.get((deployment.metadata.namespace, chosen))
    if text is not None:
        return _graph(f"ConfigMap {chosen}", text)
    if not deployment.spec.services:
        text = f"unknown services of {name} (add the ConfigMap {chosen}, or name a file with --graph-config)"
        raise manifest.problem("spec.dynamoNim", text)
    return services_only(deployment, annotations.get(DYNAMO_TAG, ""))


def _graph(place: str, text: str) -> GraphConfig:
    try:
        return parse_graph_config(text)
    except ValueError as error:
        raise ConfigError(place, str(error)) from error


def _decoded(manifest: Manifest, type_: type[R]) -> R:
    try:
        return decode(type_, msgspec.json.encode(filled(manifest.value, whole_schema(type_))))
    except DecodeError as error:
        raise ConfigError(manifest.place(), error.message) from error


def _legacy_kind(manifest: Manifest) -> type[Resource] | None:
    version = str(manifest.value.get("apiVersion"))
    kind = _KINDS.get(str(manifest.value.get("kind")))
    return kind if kind and version == kind.KIND.api_version else None


def _identity(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest.metadata
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
