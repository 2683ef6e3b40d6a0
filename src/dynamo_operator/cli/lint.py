"""`dynamoctl lint`: everything that admission would say about the objects in files, without a cluster.

The same rules as in the webhooks and the same words, with the line where each field stands.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

import msgspec

from dynamo_operator.admission.judgement import judged
from dynamo_operator.admission.rules import RULES, Circumstances
from dynamo_operator.api.component import GROUP
from dynamo_operator.cli.configuration import read_settings
from dynamo_operator.cli.errors import ExitCode
from dynamo_operator.cli.manifests import Manifest, manifests
from dynamo_operator.kube.kind import Object
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation import Problem
from dynamo_operator.validation.schema import defaulted, schema_problems
from dynamo_operator.version import version

Output = Literal["table", "json", "sarif"]
Level = Literal["error", "warning"]

_DEFAULT_NAMESPACE = "default"
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_BY_KIND = {each.type_.KIND.name: each for each in RULES}


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
    """Prints what is wrong with the objects of our kinds in files; other objects are not looked at.

    Raises: ExceptionGroup of ConfigError, for what cannot be read.
    """
    rendering = rendering_settings(settings)
    findings = [
        finding
        for manifest in manifests(files)
        for finding in findings_of(manifest, namespace, rendering)
    ]
    _PRINTERS[output](findings, sys.stdout)
    is_wrong = any(each.level == "error" for each in findings)
    return ExitCode.PROBLEMS if is_wrong else ExitCode.OK


def rendering_settings(file: Path | None) -> RenderSettings:
    """The operator's settings from a file. None means: those of an operator that lacks nothing."""
    found = read_settings({}, file=file, environment=os.environ).render
    if file is not None:
        return found
    return msgspec.structs.replace(
        found,
        epp_cluster_role_name="epp",
        mpi_secret_name="mpi",  # noqa: S106  # a name
        allowed_gateways="*",
    )


def findings_of(manifest: Manifest, namespace: str, settings: RenderSettings) -> Iterator[Finding]:
    """What is wrong with one object, and what is odd about it."""
    document = manifest.value
    if str(document.get("apiVersion", "")).partition("/")[0] != GROUP:
        return
    placed = _in_namespace(document, namespace)
    wrong = schema_problems(placed)
    yield from (_finding(manifest, "error", each) for each in wrong)
    rules = _BY_KIND.get(str(document.get("kind")))
    if rules is None:
        return
    text = msgspec.Raw(msgspec.json.encode(defaulted(placed)))
    verdict = judged(rules, text, None, Circumstances(settings))
    told = {each.path for each in wrong}
    yield from (
        _finding(manifest, "error", each) for each in verdict.problems if each.path not in told
    )
    yield from (_finding(manifest, "warning", each) for each in verdict.odd)


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


def _table(findings: Sequence[Finding], out: TextIO) -> None:
    if not findings:
        return
    rows = [("PLACE", "LEVEL", "OBJECT", "PROBLEM")]
    rows += [(each.place, each.level, each.object, each.message) for each in findings]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *cells, last in rows:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        out.write("  ".join((*padded, last)) + "\n")


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
