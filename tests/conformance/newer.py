"""Our operator beside that of the 1.5 line, in what needs no control plane.

`python -m conformance.newer` counts the cases, in `tests`. What is rendered is not compared, because defaults
of pods differ between the lines.
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec import Raw

from conformance import conversions
from conformance.compare import ABSENT, Difference
from conformance.deviations import Row, explanation
from conformance.modes import MODES
from conformance.newer_recordings import FOLDER, SOURCES, NewerCase, Recorded, newer_cases, patched
from conformance.takeover import settings_of
from dynamo_graphs.offline import expanded
from dynamo_graphs.schema import schema_problems
from dynamo_operator.admission.decide import RULES, ReviewContext, decide
from dynamo_operator.admission.written import decide_written
from dynamo_operator.crds import KINDS, defaulted, is_later
from dynamo_operator.graph.warnings import ClusterContext
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import Problem
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Object

Stage = tuple[NewerCase, str, int]
"""A case, the mode in which it ran, and how many of its steps had been applied."""

FACTS: Final = {
    "none": Facts(inference_pools_served=True),
    "lws": Facts(inference_pools_served=True, lws_served=True),
    "grove": Facts(inference_pools_served=True, grove_served=True),
}
"""What the cluster of each mode serves."""

_RULES: Final = {rules.type_.KIND.name: rules for rules in RULES}
_PLANNED: Final = ("DynamoGraphDeployment", "DynamoComponentDeployment")
"""The kinds whose objects need no results of a Job."""

_BY_CONTROLLERS: Final = ("nvidia.com/current-worker-hash-v2", "nvidia.com/generated-dgd-spec")

_REFUSAL: Final = re.compile(
    r'(?:admission webhook "[^"]+" denied the request: )?(\w+)\.nvidia\.com "([^"]+)" is invalid: (.*)',
    re.DOTALL,
)
_BETWEEN: Final = re.compile(r", (?=(?:spec|metadata|<nil>)[.\[:])")
_ERROR: Final = re.compile(
    r"(\S+): (?:Required value|Invalid value|Forbidden|Unsupported value|Duplicate value)(?:: (.*))?",
    re.DOTALL,
)
_VALUE: Final = re.compile(r'("(?:[^"\\]|\\.)*"|null): ')
_SERVICE: Final = re.compile(r"\bspec\.services\.([^.\[ ]+)")


def stages() -> Iterator[Stage]:
    """Every stage of every case in each mode in which it was recorded."""
    for source in SOURCES:
        for case in newer_cases(source):
            for mode in case.recorded:
                yield from ((case, mode, number) for number in range(len(case.inputs)))


def refusals(case: NewerCase, mode: str, number: int) -> Iterator[Difference]:
    """What is refused, at which path, and with which words."""
    recorded = case.after(mode, number)
    theirs = dict(chain.from_iterable(map(_errors, recorded.apply_errors)))
    before = case.after(mode, number - 1) if number else Recorded()
    ours: dict[tuple[str, str], str] = {}
    for document in case.inputs[number]:
        old, new = _change(document, before)
        if new is None or new.get("kind") not in KINDS:
            continue
        for problem in _problems(_placed(new, case), None if old is None else _placed(old, case), mode):
            path = _SERVICE.sub(r"spec.services[\1]", problem.path)
            text = problem.message.removeprefix(f"{path} ").removeprefix(f"{path}: ")
            name = f"{new['kind']}/{new['metadata']['name']}"
            known = ours.get((name, path))
            ours[name, path] = text if known is None or text in known else f"{known}; {text}"
    for name, path in sorted(theirs.keys() | ours.keys()):
        their, our = theirs.get((name, path), ABSENT), ours.get((name, path), ABSENT)
        if their != our:
            yield Difference(name, path, their, our)


def _errors(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    """The errors of a refusal by object and path; none where an object of another kind is not there."""
    refusal = _REFUSAL.fullmatch(text)
    if refusal is None:
        assert text.endswith("not found"), text
        return
    name = f"{refusal[1]}/{refusal[2]}"
    body = refusal[3][1:-1] if refusal[3].startswith("[") else refusal[3]
    for entry in _BETWEEN.split(body):
        error = _ERROR.fullmatch(entry)
        assert error is not None, entry
        if not error[1].startswith("<nil>"):  # that CEL rules were not evaluated
            path = _SERVICE.sub(r"spec.services[\1]", error[1])
            yield (name, path), _VALUE.sub("", error[2] or "", count=1)


def _change(document: Object, before: Recorded) -> tuple[Object | None, Object | None]:
    """The object before and after a document of a step; None where there is none."""
    if "$delete" in document:
        return None, None
    patch = document.get("$patch")
    if patch is None:
        old = before.object(document["kind"], document["metadata"]["name"], document["apiVersion"])
        return old, _with_annotations_of(old, document)
    versions = ("nvidia.com/v1beta1", "nvidia.com/v1alpha1")
    kept = (before.object(patch["kind"], patch["name"], version) for version in versions)
    old = next(filter(None, kept), None)
    return old, None if old is None else patched(old, patch)


def _with_annotations_of(old: Object | None, document: Object) -> Object:
    """The document as it is stored by an apply, which keeps the annotations of others."""
    if old is None:
        return document
    metadata = document["metadata"]
    annotations = {**(old["metadata"].get("annotations") or {}), **(metadata.get("annotations") or {})}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _placed(document: Object, case: NewerCase) -> Object:
    metadata = {key: value for key, value in document["metadata"].items() if key != "ownerReferences"}
    return {**document, "metadata": {**metadata, "namespace": case.namespace}}


def _problems(new: Object, old: Object | None, mode: str) -> tuple[Problem, ...]:
    """Why our API server, or the webhook behind it, refuses a document."""
    if problems := schema_problems(new) or tuple(_nulls(new.get("spec"), "spec")):
        return problems
    rules = _RULES.get(new["kind"])
    if rules is None:
        return ()
    cluster = ClusterContext(
        pools_served=FACTS[mode].inference_pools_served, grove_served=FACTS[mode].grove_served
    )
    context = ReviewContext(settings_of(MODES[mode]), "alice", cluster=cluster)
    decided = (decide_written if is_later(new) else decide)(
        rules, _text(new), None if old is None else _text(old), context
    )
    return decided.problems


def _text(document: Object) -> Raw:
    return Raw(msgspec.json.encode(defaulted(document)))


def _nulls(value: Any, path: str) -> Iterator[Problem]:
    """Nulls, which our offline check takes for absent fields, as kubectl does, and the API server refuses."""
    if value is None:
        yield Problem(path, f'{path} in body must be of type object: "null"')
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from _nulls(inner, f"{path}.{key}")


def stored(case: NewerCase, mode: str, number: int) -> Iterator[Difference]:
    """What is stored of an input: by conversion and by defaults. Only of what was created by it."""
    for document, theirs in _created(case, mode):
        ours = defaulted(document)
        if ours["apiVersion"] != theirs["apiVersion"]:
            ours = defaulted(convert(ours, theirs["apiVersion"]))
        yield from conversions.differences(_name(theirs), *map(_of_admission, (theirs, ours)))


def _created(case: NewerCase, mode: str) -> Iterator[tuple[Object, Object]]:
    """The documents of the input, each with the object that it became."""
    for document in case.inputs[0]:
        if document.get("kind") in KINDS:
            body = case.after(mode, 0).object(document["kind"], document["metadata"]["name"])
            if body is not None:
                yield document, body


def _of_admission(body: Object) -> Object:
    """The object without what controllers write once it is stored."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "finalizers"}
    annotations = metadata.get("annotations") or {}
    metadata["annotations"] = {key: value for key, value in annotations.items() if key not in _BY_CONTROLLERS}
    spec = {key: value for key, value in body["spec"].items() if key != "hardware"}
    return {**body, "metadata": metadata, "spec": spec, "status": None}


def read_in_v1alpha1(case: NewerCase, mode: str, number: int) -> Iterator[Difference]:
    """What a client of v1alpha1 reads, status included."""
    recorded = case.after(mode, number)
    for theirs in recorded.in_v1alpha1:
        kind, name = theirs["kind"], theirs["metadata"]["name"]
        source = recorded.object(kind, name, "nvidia.com/v1beta1")
        assert source is not None, name
        ours = convert(source, theirs["apiVersion"])
        yield from conversions.differences(f"{kind}/{name}", theirs, ours)


def names(case: NewerCase, mode: str, number: int) -> Iterator[Difference]:
    """Which objects a graph or a component has when it is created."""
    documents = [document for document in case.inputs[0] if document.get("kind") in _PLANNED]
    recorded = case.after(mode, number)
    expansions = [
        expanded(_placed(document, case), FACTS[mode], settings_of(MODES[mode])) for document in documents
    ]
    given = {_name(document) for document in case.inputs[0]}
    theirs = {*revisions_left_out([_name(each) for each in recorded.objects], recorded)} - given
    ours = {_name(each) for expansion in expansions for each in expansion.objects} - given
    for name in sorted(theirs ^ ours):
        yield Difference(name, "", *((name, ABSENT) if name in theirs else (ABSENT, name)))


def _name(body: Object) -> str:
    return f"{body.get('kind')}/{(body.get('metadata') or {}).get('name')}"


def revisions_left_out(value: Any, recorded: Recorded) -> Any:
    """The value with names as they are without the hash of the workers' revision."""
    digests = {
        digest
        for body in recorded.objects
        if (digest := (body["metadata"].get("labels") or {}).get("nvidia.com/dynamo-worker-hash"))
    }
    text = json.dumps(value)
    for digest in sorted(digests):
        text = text.replace(f"-{digest}", "")
    return json.loads(text)


@dataclass(frozen=True, slots=True)
class Aspect:
    """What is compared of a stage, and of which stages."""

    differences: Callable[[NewerCase, str, int], Iterator[Difference]]
    applies: Callable[[NewerCase, str, int], bool]


def _is_planned(case: NewerCase, mode: str, number: int) -> bool:
    """Whether it is a created graph or component, and nothing else of ours."""
    kinds = {document.get("kind") for document in case.inputs[0]} & KINDS.keys()
    return not number and bool(kinds) and kinds <= {*_PLANNED} and not case.after(mode, 0).apply_errors


ASPECTS: Final = {
    "refusals": Aspect(refusals, lambda *_: True),
    "stored": Aspect(stored, lambda case, mode, number: not number and any(_created(case, mode))),
    "read in v1alpha1": Aspect(
        read_in_v1alpha1, lambda case, mode, number: bool(case.after(mode, number).in_v1alpha1)
    ),
    "names": Aspect(names, _is_planned),
}


@cache
def rows() -> tuple[Row, ...]:
    """The rows of `newer.yaml`; each object in them begins with the aspect."""
    return msgspec.yaml.decode(FOLDER.with_suffix(".yaml").read_bytes(), type=tuple[Row, ...])


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference of one aspect, and the row that explains it, if there is one."""

    aspect: str
    case: str
    mode: str
    stage: int
    difference: Difference
    row: Row | conversions.Row | None

    def __str__(self) -> str:
        return f"{self.aspect}: {self.case} {self.mode} {self.stage}: {self.difference}"


@cache
def findings(aspect: str) -> tuple[Finding, ...]:
    """All differences of an aspect."""
    return tuple(
        Finding(aspect, case.name, mode, number, difference, _explained(aspect, case, mode, difference))
        for case, mode, number in stages()
        if ASPECTS[aspect].applies(case, mode, number)
        for difference in ASPECTS[aspect].differences(case, mode, number)
    )


def _explained(
    aspect: str, case: NewerCase, mode: str, difference: Difference
) -> Row | conversions.Row | None:
    named = replace(difference, object=f"{aspect} {difference.object}")
    row = explanation(named, case.name, mode, rows())
    if row is not None or ASPECTS[aspect] not in (ASPECTS["stored"], ASPECTS["read in v1alpha1"]):
        return row
    return next((known for known in conversions.rows() if known.explains(difference)), None)


def main() -> None:
    """Print how many stages of cases are equal, and what differs without a row."""
    arguments = argparse.ArgumentParser(prog="python -m conformance.newer", description=__doc__)
    arguments.add_argument("--all", action="store_true", help="print differences that a row explains, too")
    shows_all = arguments.parse_args().all
    print(f"{'stages':18}{'equal':>8}{'deviations':>12}{'different':>11}")
    for aspect, compared in ASPECTS.items():
        total = sum(compared.applies(*stage) for stage in stages())
        results = defaultdict[tuple[str, str, int], list[bool]](list)
        for finding in findings(aspect):
            results[finding.case, finding.mode, finding.stage].append(finding.row is not None)
        different = sum(not all(explained) for explained in results.values())
        print(f"{aspect:18}{total - len(results):8}{len(results) - different:12}{different:11}")
    everything = [finding for aspect in ASPECTS for finding in findings(aspect)]
    for finding in everything:
        if shows_all or finding.row is None:
            print(f"{_id(finding):5} {str(finding)[:400]}")
    counted = Counter(map(_id, everything))
    print(*(f"{row} {number}" for row, number in counted.most_common()), sep=", ")


def _id(finding: Finding) -> str:
    return finding.row.id if finding.row else "?"


if __name__ == "__main__":
    main()
