"""`dynamoctl lint`: everything that admission would say about the objects in files, without a cluster.

The same rules as in the webhooks and the same words, with the line where each field stands.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal, TextIO

import msgspec

from dynamo_graphs.api.component import GROUP
from dynamo_graphs.api.defaults import KINDS as DEFINED
from dynamo_graphs.api.defaults import filled, whole_schema
from dynamo_graphs.product import version
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.cluster_context import UNKNOWN, ClusterContext
from dynamo_graphs.validation.schema import schema_problems, without
from dynamo_legacy.api.crd import RESOURCES as LEGACY
from dynamo_operator.admission.legacy import LEGACY_RULES
from dynamo_operator.admission.rules import RULES, Circumstances
from dynamoctl.installed import rendering_settings
from dynamoctl.manifests import KINDS, Manifest, manifests
from dynamoctl.neighbours import neighbours
from dynamoctl.screen import Styled, show, table
from kube_runtime.commandline.errors import ExitCode
from kube_runtime.decode import decode
from kube_runtime.errors import DecodeError
from kube_runtime.kind import Object

Output = Literal["table", "json", "sarif"]
Level = Literal["error", "warning"]

_DEFAULT_NAMESPACE = "default"
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_STYLES: Mapping[Level, str] = {"error": "red", "warning": "yellow"}
_BY_KIND = {each.type_.KIND.name: each for each in (*RULES, *LEGACY_RULES)}
_LEGACY_KINDS = {each.KIND.name: each for each in LEGACY}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One problem or warning, and where it is. `place` is `FILE:LINE:COLUMN`."""

    place: str
    level: Level
    object: str
    path: str
    message: str


def lint(
    files: Sequence[str], *, settings: Path | None, namespace: str, output: Output
) -> ExitCode:
    """Validates the objects of our kinds in files, by file and line; others are not checked.

    A summary goes to stderr. Raises: ExceptionGroup of ConfigError, for what cannot be read.
    """
    rendering = rendering_settings(settings)
    chosen = namespace or _DEFAULT_NAMESPACE
    found = manifests(files)
    known = neighbours(found, chosen)
    findings = [
        finding
        for _, group in groupby(found, key=lambda each: each.source)
        for finding in sorted(
            (
                each
                for manifest in group
                for each in findings_of(manifest, chosen, rendering, known)
            ),
            key=_position,
        )
    ]
    _PRINTERS[output](findings, sys.stdout)
    print(_summary(found, findings), file=sys.stderr)
    is_wrong = any(each.level == "error" for each in findings)
    return ExitCode.PROBLEMS if is_wrong else ExitCode.OK


def findings_of(
    manifest: Manifest,
    namespace: str,
    settings: RenderSettings,
    known: Mapping[str, ClusterContext] | None = None,
) -> Iterator[Finding]:
    """Problems and warnings of one object. `known` is by namespace."""
    if not _is_checked(manifest):
        return
    placed = _in_namespace(manifest.value, namespace)
    kind = str(placed.get("kind"))
    kinds = _LEGACY_KINDS if kind in _LEGACY_KINDS else DEFINED
    wrong = schema_problems(placed, kinds)
    yield from (_finding(manifest, "error", each) for each in wrong)
    rules = _BY_KIND.get(kind)
    if rules is None:
        return
    try:
        sound = decode(
            rules.type_,
            msgspec.json.encode(filled(without(placed, wrong), whole_schema(kinds[kind]))),
        )
    except DecodeError:
        return  # a required field is missing, which the schema has said
    place = (known or {}).get(sound.metadata.namespace, UNKNOWN)
    at = Circumstances(settings, surroundings=place)
    told = {each.path for each in wrong}
    both: tuple[tuple[Level, Iterable[Problem]], ...] = (
        ("error", rules.problems(sound, at)),
        ("warning", rules.warnings(sound, at)),
    )
    for level, problems in both:
        for each in dict.fromkeys(problems):
            if not _is_told(each.path, told):
                yield _finding(manifest, level, each)


def _is_checked(manifest: Manifest) -> bool:
    """Whether it is an object of ours, or is meant to be one; other files may be in the same folder."""
    version, kind = manifest.value.get("apiVersion"), manifest.value.get("kind")
    return manifest.is_ours and (kind in KINDS or str(version).partition("/")[0] == GROUP)


def _is_told(path: str, told: AbstractSet[str]) -> bool:
    """Whether the path, or a part of the document above it, has a problem of the schema."""
    if path in told:
        return True
    return any(path[end] in ".[" and path[:end] in told for end in range(len(path)))


def _position(finding: Finding) -> tuple[int, int, str]:
    """Line and column, as numbers; errors before warnings."""
    _, *numbers = finding.place.rsplit(":", 2)
    line, column = (int(each) if each.isdecimal() else 0 for each in (*numbers, "", "")[:2])
    return line, column, finding.level


def _summary(found: Sequence[Manifest], findings: Sequence[Finding]) -> str:
    checked = sum(map(_is_checked, found))
    places = len({each.source for each in found})
    what = f"{_counted(checked, 'object')} in {_counted(places, 'file')}"
    errors = sum(each.level == "error" for each in findings)
    return f"{what}: {_counted(errors, 'error')}, {_counted(len(findings) - errors, 'warning')}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _finding(manifest: Manifest, level: Level, problem: Problem) -> Finding:
    document = manifest.value
    metadata = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    path = f"{manifest.prefix}.{problem.path}" if manifest.prefix else problem.path
    return Finding(
        manifest.document.place(path),
        level,
        f"{document.get('kind')}/{name}",
        problem.path,
        str(problem),
    )


def _in_namespace(document: Object, namespace: str) -> Object:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    chosen = metadata.get("namespace") or namespace or _DEFAULT_NAMESPACE
    return {**document, "metadata": {**metadata, "namespace": chosen}}


def _table(findings: Sequence[Finding], _: TextIO) -> None:
    if findings:
        rows = (
            (each.place, Styled(each.level, _STYLES[each.level]), each.object, each.message)
            for each in findings
        )
        show(table(("PLACE", "LEVEL", "OBJECT", "PROBLEM"), rows))


def _json(findings: Sequence[Finding], out: TextIO) -> None:
    out.write(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode() + "\n")


def _sarif(findings: Sequence[Finding], out: TextIO) -> None:
    driver = {"name": "dynamoctl lint", "version": version()}
    run = {"tool": {"driver": driver}, "results": [_result(each) for each in findings]}
    body = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
    out.write(msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n")


def _result(finding: Finding) -> Object:
    file, *numbers = finding.place.rsplit(":", 2)
    place: Object = {"artifactLocation": {"uri": file}}
    if len(numbers) == 2 and all(each.isdecimal() for each in numbers):  # noqa: PLR2004  line, column
        place["region"] = {"startLine": int(numbers[0]), "startColumn": int(numbers[1])}
    return {
        "ruleId": finding.path,
        "level": finding.level,
        "message": {"text": f"{finding.object}: {finding.message}"},
        "locations": [{"physicalLocation": place}],
    }


_PRINTERS = {"table": _table, "json": _json, "sarif": _sarif}
