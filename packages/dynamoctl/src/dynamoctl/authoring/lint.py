"""`dynamoctl lint`: check objects in files with the rules of the webhooks, without a cluster.

Rules and messages are those of the webhooks; each finding has the line of its field.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import msgspec
from cyclopts import CycloptsError
from rich.console import RenderableType
from rich.text import Text

from dynamo_graphs.ages import counted
from dynamo_graphs.schema import closed, schema_problems, without
from dynamo_graphs.versions import LATER
from dynamo_graphs.written import unreadable, written_of
from dynamo_operator import version
from dynamo_operator.admission.decide import RULES, ReviewContext, Rules, size_problem
from dynamo_operator.admission.written import may_be_on_grove, rules_of_written
from dynamo_operator.component.api import GROUP
from dynamo_operator.crds import KINDS as DEFINED
from dynamo_operator.crds import filled, resource_of, whole_schema
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.features.scaling.decide import adapter_problems
from dynamo_operator.graph.warnings import UNKNOWN, ClusterContext
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import Problem, nearest, service_path
from dynamo_operator.versions.shapes import ConversionError
from dynamoctl.authoring.manifest import (
    DEFAULT_NAMESPACE,
    KINDS,
    Manifest,
    kinds_by_name,
    position,
    readable,
    selected,
)
from dynamoctl.installation.manifests import render_settings
from dynamoctl.screen import Styled, show, show_json, table
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ConfigError, ConfigErrors, DecodeError
from kube_runtime.types.meta import Object, Resource
from kube_runtime.wire import decode

Output = Literal["table", "json", "sarif"]
Level = Literal["error", "warning"]

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_STYLES: Mapping[Level, str] = {"error": "red", "warning": "yellow"}
# Autoscalers write adapters all the time, so no webhook reviews them: their status has the problems.
_OF_ADAPTERS = Rules(
    DynamoGraphDeploymentScalingAdapter, problems=lambda adapter, _: adapter_problems(adapter)
)
_BY_KIND: Mapping[str, Rules[Any]] = {rules.type_.KIND.name: rules for rules in (*RULES, _OF_ADAPTERS)}


@cache
def _legacy() -> tuple[Mapping[str, type[Resource]], Mapping[str, Rules[Any]]]:
    """The kinds of the older generation, and their rules, which few files need."""
    from dynamo_legacy.admission import LEGACY_RULES
    from dynamo_legacy.api import RESOURCES as LEGACY

    kinds = {resource.KIND.name: resource for resource in LEGACY}
    return kinds, {rules.type_.KIND.name: rules for rules in LEGACY_RULES}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A problem or warning. `place` is `FILE:LINE:COLUMN`."""

    place: str
    level: Level
    object: str
    path: str
    message: str


def lint(
    files: Sequence[str], *, settings: Path | None, namespace: str, output: Output, is_recursive: bool = False
) -> ExitCode:
    """Print the findings about objects of our kinds, by file and line, and a summary on stderr.

    A file that cannot be read is a finding, and the others are checked.

    Raises: ConfigErrors if none can be read.
    """
    rendering = render_settings(settings)
    chosen = namespace or DEFAULT_NAMESPACE
    entries = readable(files, is_recursive=is_recursive)
    manifests = [entry for entry in entries if isinstance(entry, Manifest)]
    if not manifests:
        raise ConfigErrors("files", [it for it in entries if isinstance(it, ConfigError)])
    contexts = neighbours(manifests, chosen)
    findings: list[Finding] = []
    for _, group in groupby(entries, key=_file_of):
        of_file: list[Finding] = []
        for entry in group:
            if isinstance(entry, Manifest):
                of_file += findings_of(entry, chosen, rendering, contexts)
            else:
                of_file.append(Finding(entry.source, "error", "", "", entry.message))
        findings += sorted(of_file, key=lambda finding: (position(finding.place), finding.level))
    if output == "table" and findings:
        rows = ((it.place, Styled(it.level, _STYLES[it.level]), it.object, it.message) for it in findings)
        show(table(("PLACE", "LEVEL", "OBJECT", "PROBLEM"), rows))
    elif output != "table":
        driver = {"name": "dynamoctl lint", "version": version()}
        run = {"tool": {"driver": driver}, "results": [_result(it) for it in findings]}
        body = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
        encoded = msgspec.json.encode(body if output == "sarif" else findings)
        print(msgspec.json.format(encoded, indent=2).decode())
    checked = sum(isinstance(entry, Manifest) and _is_checked(entry) for entry in entries)
    scope = f"{counted(checked, 'object')} in {counted(len(set(map(_file_of, entries))), 'file')}"
    errors = sum(finding.level == "error" for finding in findings)
    warnings = counted(len(findings) - errors, "warning")
    print(f"{scope}: {counted(errors, 'error')}, {warnings}", file=sys.stderr)
    return ExitCode.PROBLEMS if errors else ExitCode.OK


def findings_of(
    manifest: Manifest,
    namespace: str,
    settings: RenderSettings,
    contexts: Mapping[str, ClusterContext] | None = None,
) -> Iterator[Finding]:
    """The problems and warnings of one object. `contexts` are by namespace."""
    if not _is_checked(manifest):
        return
    placed = manifest.placed("", namespace)
    kind = str(placed.get("kind"))
    is_legacy = kind not in DEFINED and kind in _legacy()[0]
    kinds, by_kind = _legacy() if is_legacy else (DEFINED, _BY_KIND)
    wrong = schema_problems(placed, kinds)
    yield from (_finding(manifest, "error", problem) for problem in wrong)
    rules = by_kind.get(kind)
    if rules is None:
        return
    reported = {problem.path for problem in wrong}
    for level, problem in _broken(rules, manifest, without(placed, wrong), settings, contexts or {}):
        # The schema may have reported a problem there, or above it.
        path = problem.path
        above = (path[:end] for end in range(len(path)) if path[end] in ".[")
        if reported.isdisjoint((path, *above)):
            yield _finding(manifest, level, problem)


def _broken(
    rules: Rules[Any],
    manifest: Manifest,
    sound: Object,
    settings: RenderSettings,
    contexts: Mapping[str, ClusterContext],
) -> Iterator[tuple[Level, Problem]]:
    """The problems and warnings by the rules, in the words of the object's version.

    `sound` is the object without what breaks its schema.
    """
    try:
        written = written_of(sound)
    except ConversionError as error:
        yield "error", unreadable(error)
        return
    type_: type[Resource] = rules.type_
    seen = filled(sound, whole_schema(type_)) if written is None else written.seen
    text = msgspec.json.encode(seen)
    if problem := size_problem(rules.type_, text, settings):
        yield "error", problem
    try:
        decoded = decode(rules.type_, text)
    except DecodeError:
        return  # a required field is missing, which the schema has reported
    at = ReviewContext(settings, cluster=contexts.get(decoded.metadata.namespace, UNKNOWN))
    problems, warnings = rules.problems(decoded, at), rules.warnings(decoded, at)
    if written is None:
        warnings = chain(warnings, _without_switch(manifest.value))
    else:
        own = rules_of_written(rules.type_.KIND.name)
        grove = may_be_on_grove(seen, at)
        problems = chain(map(written.problem, problems), own.problems(written.written, grove))
        warnings = chain(map(written.problem, warnings), own.warnings(written.written))
    for problem in dict.fromkeys(problems):
        yield "error", problem
    for problem in dict.fromkeys(warnings):
        yield "warning", problem


def errors_of(manifest: Manifest, namespace: str, settings: RenderSettings) -> list[ConfigError]:
    """The problems of one object, without warnings, by their lines."""
    findings = findings_of(manifest, namespace or DEFAULT_NAMESPACE, settings)
    errors = sorted((it for it in findings if it.level == "error"), key=lambda it: position(it.place))
    return [ConfigError(it.place, it.message) for it in errors]


def _is_checked(manifest: Manifest) -> bool:
    """Whether the object is of our kinds, or meant to be; others may be in the same folder."""
    version, kind = manifest.value.get("apiVersion"), manifest.value.get("kind")
    return manifest.is_ours and (str(kind) in KINDS or str(version).partition("/")[0] == GROUP)


def _file_of(entry: Manifest | ConfigError) -> str:
    return position(entry.source)[0]


def _finding(manifest: Manifest, level: Level, problem: Problem) -> Finding:
    document = manifest.value
    name = manifest.metadata.get("name", "")
    return Finding(
        manifest.place(problem.path), level, f"{document.get('kind')}/{name}", problem.path, str(problem)
    )


def _result(finding: Finding) -> Object:
    file, line, column = position(finding.place)
    place: Object = {"artifactLocation": {"uri": file}}
    if line:
        place["region"] = {"startLine": line, "startColumn": column}
    return {
        "ruleId": finding.path,
        "level": finding.level,
        "message": {"text": ": ".join(filter(None, (finding.object, finding.message)))},
        "locations": [{"physicalLocation": place}],
    }


def neighbours(manifests: Sequence[Manifest], namespace: str) -> dict[str, ClusterContext]:
    """By namespace, the PVCs and ConfigMaps in the files; the rest of the cluster is unknown.

    `namespace` is that of objects that name none.
    """
    claims: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    maps: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for manifest in manifests:
        value, metadata = manifest.value, manifest.metadata
        name, place = metadata.get("name"), metadata.get("namespace") or namespace
        if value.get("apiVersion") != "v1" or not (isinstance(name, str) and isinstance(place, str)):
            continue
        if value.get("kind") == "PersistentVolumeClaim":
            modes = _mapping(value, "spec").get("accessModes")
            texts = modes if isinstance(modes, list) else ()
            claims[place][name] = tuple(text for text in texts if isinstance(text, str))
        elif value.get("kind") == "ConfigMap":
            keys = (_mapping(value, field) for field in ("data", "binaryData"))
            maps[place][name] = frozenset(str(key) for mapping in keys for key in mapping)
    return {
        place: ClusterContext(written_claims=claims[place], config_maps=maps[place])
        for place in {*claims, *maps}
    }


def _mapping(value: Object, field: str) -> Object:
    inner = value.get(field)
    return inner if isinstance(inner, dict) else {}


_DRAFT = "http://json-schema.org/draft-07/schema#"
"""The newest draft that common YAML language servers support."""

_NOTES = ("description", "default")
_RULES = ("enum", "minimum", "minLength", "maxLength", "maxItems", "maxProperties", "pattern", "format")


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """A field: its path in an object, its schema, and whether it is required."""

    path: str
    schema: Object
    is_required: bool


def print_field(path: str, output: str, api_version: str = "") -> None:
    """Print a field and the fields below it; `path` may begin with a kind (default: the graph).

    Raises: CycloptsError if there is no such field.
    """
    resource, field = field_of(path, api_version)
    if output == "json":
        show_json({"kind": resource.KIND.name, "path": field.path, "schema": closed(field.schema, _NOTES)})
    else:
        show(*explained(resource, field))


def editor_schema(resources: Sequence[type[Resource]]) -> Object:
    """A JSON schema of these kinds, with descriptions and defaults."""
    schemas = []
    for resource in resources:
        schema = closed(whole_schema(resource), _NOTES)
        head = {"apiVersion": resource.KIND.api_version, "kind": resource.KIND.name}
        constants = {field: {"const": value} for field, value in head.items()}
        required = ["apiVersion", "kind", "metadata"]
        properties = schema["properties"] | constants
        schemas.append(
            {**schema, "properties": properties, "required": required, "additionalProperties": False}
        )
    if len(schemas) == 1:
        return {"$schema": _DRAFT, **schemas[0]}
    versions: dict[str, list[str]] = {}
    for resource in resources:
        versions.setdefault(resource.KIND.name, []).append(resource.KIND.api_version)
    of_kinds = [
        _case({"kind": {"const": name}}, {"properties": {"apiVersion": {"enum": of_kind}}})
        for name, of_kind in versions.items()
    ]
    of_versions = [
        _case({field: schema["properties"][field] for field in ("apiVersion", "kind")}, schema)
        for schema in schemas
    ]
    return {
        "$schema": _DRAFT,
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": {"enum": [*dict.fromkeys(chain(*versions.values()))]},
            "kind": {"enum": [*versions]},
        },
        "allOf": [*of_kinds, *of_versions],
    }


def _case(properties: Object, schema: Object) -> Object:
    """The schema of the objects with these properties."""
    return {"if": {"properties": properties, "required": [*properties]}, "then": schema}


def in_api_versions(resources: Sequence[type[Resource]], api_version: str = "") -> list[type[Resource]]:
    """The kinds in a version, or each in all that it has, the newest first.

    Raises: CycloptsError if none of them has the version.
    """
    found = []
    for resource in resources:
        for version_ in (api_version,) if api_version else (LATER, resource.KIND.api_version):
            kind = resource_of({"apiVersion": version_, "kind": resource.KIND.name}) or resource
            if kind.KIND.api_version == version_:
                found.append(kind)
    if not found:
        raise CycloptsError(f"{resources[0].KIND.name} has no version {api_version}")
    return found


def field_of(path: str, api_version: str = "") -> tuple[type[Resource], FieldSchema]:
    """The field at a path such as `dgd.spec.components.replicas`; keys of maps may be left out.

    Without a version, it is the newest one that has the field. The error is that of the version in which more
    of the path is right.

    Raises: CycloptsError.
    """
    parts = [part for part in path.split(".") if part]
    resource = selected(())[0]
    if parts and not parts[0].islower():
        kinds = {type_.KIND.name: type_ for type_ in selected(())}
        resource = kinds.get(parts[0], resource)
        parts = parts[1:] if parts[0] in kinds else parts
    elif parts and parts[0] in (by_name := kinds_by_name(selected(()))):
        resource = by_name[parts.pop(0)]
    mistakes: list[tuple[int, CycloptsError]] = []
    for kind in in_api_versions([resource], api_version):
        schema, right = whole_schema(kind), 0
        # `spec` may be left out.
        steps = parts if not parts or parts[0] in schema["properties"] else ["spec", *parts]
        field = FieldSchema("", schema, is_required=True)
        try:
            for part, following in zip_longest(steps, steps[1:], fillvalue=""):
                field = _below(field, part, following)
                right += 1
        except CycloptsError as error:
            mistakes.append((right, error))
        else:
            return kind, field
    raise max(mistakes, key=itemgetter(0))[1]


def explained(resource: type[Resource], field: FieldSchema) -> list[RenderableType]:
    """The parts of a screen: the field, its rules, and a row for each field below it."""
    rows = [
        ("KIND", resource.KIND.name),
        ("VERSION", resource.KIND.api_version),
        ("FIELD", field.path or "(the object)"),
        ("TYPE", type_of(field.schema)),
    ]
    if field.path:
        rows.append(("REQUIRED", "yes" if field.is_required else "no"))
    if "default" in field.schema:
        rows.append(("DEFAULT", str(field.schema["default"])))
    inner = _inner(field.schema)
    for rule in _RULES:
        if rule in field.schema:
            value = field.schema[rule]
            texts = map(str, value) if isinstance(value, list | tuple) else (str(value),)
            rows.append((rule.upper(), ", ".join(texts)))
    parts: list[RenderableType] = [table((), [(Styled(name, "bold"), text) for name, text in rows])]
    if text := field.schema.get("description"):
        parts += ["", Text(text)]
    required = inner.get("required", ())
    fields = [
        (
            Styled(name, "bold"),
            type_of(schema) + (" *" if name in required else ""),
            str(schema.get("description", "")).partition(". ")[0].rstrip("."),
        )
        for name, schema in inner.get("properties", {}).items()
    ]
    if fields:
        parts += ["", table(("FIELD", "TYPE", "DESCRIPTION"), fields)]
        if required:
            parts.append("* is required")
    return parts


def type_of(schema: Object) -> str:
    """The type of a value in words, such as `map of objects` or `list of strings`."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    name = str(schema.get("type", "any value"))
    if "additionalProperties" in schema:
        return f"map of {type_of(schema['additionalProperties'])}s"
    if "items" in schema:
        return f"list of {type_of(schema['items'])}s"
    return name


def _below(field: FieldSchema, part: str, following: str) -> FieldSchema:
    if "additionalProperties" in field.schema:
        entry = field.schema["additionalProperties"]
        field = FieldSchema(f"{field.path}.<name>", entry, is_required=False)
        fields = entry.get("properties", {})
        if part.startswith("<") or not fields or (part not in fields and following in fields):
            return field  # a key that the user chose
    elif "items" in field.schema:
        field = FieldSchema(f"{field.path}[]", field.schema["items"], is_required=False)
    fields = field.schema.get("properties", {})
    name = part.removesuffix("[]")
    if name not in fields:
        listing = f" (fields: {', '.join(sorted(fields))})" if fields else " (it has no fields)"
        hint = nearest(name, fields) or listing
        raise CycloptsError(f'unknown field "{name}" of {field.path or "the object"}{hint}')
    is_required = name in field.schema.get("required", ())
    return FieldSchema(f"{field.path}.{name}".lstrip("."), fields[name], is_required)


def _inner(schema: Object) -> Object:
    for keyword in ("additionalProperties", "items"):
        if keyword in schema:
            return _inner(schema[keyword])
    return schema


def _without_switch(document: Object) -> Iterator[Problem]:
    """In a document as it was written: the API server adds the default, which hides what a user meant."""
    spec = document.get("spec")
    services = spec.get("services") if isinstance(spec, dict) else None
    places = {"spec": spec}
    if isinstance(services, dict):
        places = {service_path(key): service for key, service in services.items()}
    for path, place in places.items():
        adapter, ingress = (
            (place.get(field) if isinstance(place, dict) else None) for field in ("scalingAdapter", "ingress")
        )
        if isinstance(adapter, dict) and "enabled" not in adapter:
            yield Problem(f"{path}.scalingAdapter", "has no effect without enabled: true")
        if isinstance(ingress, dict) and ingress and "enabled" not in ingress:
            yield Problem(f"{path}.ingress", "exposes nothing without enabled: true")
