"""`dynamoctl lint`: check objects in files with the rules of the webhooks, without a cluster.

Rules and messages are those of the webhooks; each finding has the line of its field.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Literal, TextIO

import msgspec

from dynamo_graphs.api.component import GROUP
from dynamo_graphs.api.crd import KINDS as DEFINED
from dynamo_graphs.api.crd import filled, whole_schema
from dynamo_graphs.product import version
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.cluster_context import UNKNOWN, ClusterContext
from dynamo_graphs.validation.ineffective import without_switch
from dynamo_graphs.validation.schema import schema_problems, without
from dynamo_graphs.validation.versions import later_version
from dynamo_legacy.api.crd import RESOURCES as LEGACY
from dynamo_operator.admission.legacy import LEGACY_RULES
from dynamo_operator.admission.rules import RULES, ReviewContext
from dynamoctl.ages import counted
from dynamoctl.authoring.manifests import DEFAULT_NAMESPACE, KINDS, Manifest, readable
from dynamoctl.installation.manifests import render_settings
from dynamoctl.screen import Styled, show, table
from kube_runtime.commandline.errors import ExitCode
from kube_runtime.decode import decode
from kube_runtime.errors import ConfigError, DecodeError
from kube_runtime.kind import Object

Output = Literal["table", "json", "sarif"]
Level = Literal["error", "warning"]

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_POSITION = re.compile(r":[0-9]+:[0-9]+\Z")
_STYLES: Mapping[Level, str] = {"error": "red", "warning": "yellow"}
_BY_KIND = {rules.type_.KIND.name: rules for rules in (*RULES, *LEGACY_RULES)}
_LEGACY_KINDS = {resource.KIND.name: resource for resource in LEGACY}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A problem or warning. `place` is `FILE:LINE:COLUMN`."""

    place: str
    level: Level
    object: str
    path: str
    message: str


def lint(
    files: Sequence[str], *, settings: Path | None, namespace: str, output: Output
) -> ExitCode:
    """Print the findings about objects of our kinds, by file and line, and a summary on stderr.

    A file that cannot be read is a finding, and the others are checked.

    Raises: ExceptionGroup of ConfigError if none can be read.
    """
    rendering = render_settings(settings)
    chosen = namespace or DEFAULT_NAMESPACE
    entries = readable(files)
    manifests = [entry for entry in entries if isinstance(entry, Manifest)]
    if not manifests:
        raise ExceptionGroup("files", [it for it in entries if isinstance(it, ConfigError)])
    contexts = neighbours(manifests, chosen)
    findings: list[Finding] = []
    for _, group in groupby(entries, key=_file_of):
        of_file: list[Finding] = []
        for entry in group:
            if isinstance(entry, Manifest):
                of_file += findings_of(entry, chosen, rendering, contexts)
            else:
                of_file.append(Finding(entry.source, "error", "", "", entry.message))
        findings += sorted(of_file, key=_position)
    _PRINTERS[output](findings, sys.stdout)
    print(_summary(entries, findings), file=sys.stderr)
    is_wrong = any(finding.level == "error" for finding in findings)
    return ExitCode.PROBLEMS if is_wrong else ExitCode.OK


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
    kinds = _LEGACY_KINDS if kind in _LEGACY_KINDS else DEFINED
    wrong = schema_problems(placed, kinds)
    yield from (_finding(manifest, "error", problem) for problem in wrong)
    rules = _BY_KIND.get(kind)
    if rules is None or later_version(placed):
        return
    try:
        sound = decode(
            rules.type_,
            msgspec.json.encode(filled(without(placed, wrong), whole_schema(kinds[kind]))),
        )
    except DecodeError:
        return  # a required field is missing, which the schema has reported
    place = (contexts or {}).get(sound.metadata.namespace, UNKNOWN)
    at = ReviewContext(settings, cluster=place)
    reported = {problem.path for problem in wrong}
    both: tuple[tuple[Level, Iterable[Problem]], ...] = (
        ("error", rules.problems(sound, at)),
        ("warning", chain(rules.warnings(sound, at), without_switch(manifest.value))),
    )
    for level, problems in both:
        for problem in dict.fromkeys(problems):
            if not _is_reported(problem.path, reported):
                yield _finding(manifest, level, problem)


def _is_checked(manifest: Manifest) -> bool:
    """Whether the object is of our kinds, or meant to be; others may be in the same folder."""
    version, kind = manifest.value.get("apiVersion"), manifest.value.get("kind")
    return manifest.is_ours and (str(kind) in KINDS or str(version).partition("/")[0] == GROUP)


def _is_reported(path: str, reported: AbstractSet[str]) -> bool:
    """Whether the schema has reported a problem at the path or above it."""
    if path in reported:
        return True
    return any(path[end] in ".[" and path[:end] in reported for end in range(len(path)))


def _position(finding: Finding) -> tuple[int, int, str]:
    """The sort key: line, column, errors before warnings."""
    _, *numbers = finding.place.rsplit(":", 2)
    line, column = (int(number) if number.isdecimal() else 0 for number in (*numbers, "", "")[:2])
    return line, column, finding.level


def _file_of(entry: Manifest | ConfigError) -> str:
    """The file of an object or of a mistake, whose source is `FILE:LINE:COLUMN` or `FILE`."""
    return _POSITION.sub("", entry.source)


def _summary(entries: Sequence[Manifest | ConfigError], findings: Sequence[Finding]) -> str:
    checked = sum(isinstance(entry, Manifest) and _is_checked(entry) for entry in entries)
    places = len(set(map(_file_of, entries)))
    scope = f"{counted(checked, 'object')} in {counted(places, 'file')}"
    errors = sum(finding.level == "error" for finding in findings)
    return f"{scope}: {counted(errors, 'error')}, {counted(len(findings) - errors, 'warning')}"


def _finding(manifest: Manifest, level: Level, problem: Problem) -> Finding:
    document = manifest.value
    name = manifest.metadata.get("name", "")
    return Finding(
        manifest.place(problem.path),
        level,
        f"{document.get('kind')}/{name}",
        problem.path,
        str(problem),
    )


def _table(findings: Sequence[Finding], _: TextIO) -> None:
    if findings:
        rows = (
            (
                finding.place,
                Styled(finding.level, _STYLES[finding.level]),
                finding.object,
                finding.message,
            )
            for finding in findings
        )
        show(table(("PLACE", "LEVEL", "OBJECT", "PROBLEM"), rows))


def _json(findings: Sequence[Finding], out: TextIO) -> None:
    out.write(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode() + "\n")


def _sarif(findings: Sequence[Finding], out: TextIO) -> None:
    driver = {"name": "dynamoctl lint", "version": version()}
    run = {"tool": {"driver": driver}, "results": [_result(finding) for finding in findings]}
    body = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
    out.write(msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n")


def _result(finding: Finding) -> Object:
    file, *numbers = finding.place.rsplit(":", 2)
    place: Object = {"artifactLocation": {"uri": file}}
    if len(numbers) == 2 and all(number.isdecimal() for number in numbers):  # noqa: PLR2004  line, column
        place["region"] = {"startLine": int(numbers[0]), "startColumn": int(numbers[1])}
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
        if value.get("apiVersion") != "v1" or not (
            isinstance(name, str) and isinstance(place, str)
        ):
            continue
        if value.get("kind") == "PersistentVolumeClaim":
            claims[place][name] = tuple(_texts(_mapping(value, "spec").get("accessModes")))
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


def _texts(value: object) -> Iterator[str]:
    yield from (
        text for text in (value if isinstance(value, list) else ()) if isinstance(text, str)
    )


_PRINTERS = {"table": _table, "json": _json, "sarif": _sarif}
