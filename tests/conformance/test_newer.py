"""What the Go operator of the 1.5 line refused, stored, converted and named, against ours."""

import copy
from pathlib import Path

import pytest

from conformance.deviations import LATER
from conformance.newer import ASPECTS, findings, rows
from conformance.newer_play import status_rows
from conformance.newer_recordings import SOURCES, NewerCase, Recorded, newer_cases

EVERY_ASPECT = pytest.mark.parametrize("aspect", ASPECTS)


@EVERY_ASPECT
def test_every_difference_has_a_row(aspect: str) -> None:
    assert [] == [str(finding) for finding in findings(aspect) if finding.row is None]


def test_rows_have_documented_ids_and_explain_something() -> None:
    text = (Path(__file__).parents[2] / "docs" / "deviations.md").read_text(encoding="utf-8")
    assert [] == [row.id for row in rows() if row.id != LATER and f"| {row.id} |" not in text]
    used = {id(finding.row) for aspect in ASPECTS for finding in findings(aspect)}
    assert [] == [row for row in rows() if id(row) not in used and row not in status_rows()]


def case_of(name: str) -> NewerCase:
    return next(case for source in SOURCES for case in newer_cases(source) if case.name == name)


def with_recorded(case: NewerCase, recorded: Recorded) -> NewerCase:
    return NewerCase(case.name, case.source, case.inputs, {"none": (recorded,)}, case.output)


def differing(aspect: str, case: NewerCase) -> set[str]:
    """The paths where the aspect of a case differs."""
    return {difference.path for difference in ASPECTS[aspect].differences(case, "none", 0)}


def test_a_refusal_that_only_one_side_gives_is_noticed() -> None:
    case = case_of("volumemount-invalid")
    assert set() == differing("refusals", case)
    accepted = with_recorded(case, Recorded())
    assert {"spec.services[W].volumeMounts[0].mountPoint"} == differing("refusals", accepted)
    again = with_recorded(case_of("agg-vllm"), case.after("none", 0))
    assert {"spec.services[W].volumeMounts[0].mountPoint"} == differing("refusals", again)


@pytest.mark.parametrize("aspect", ["stored", "read in v1alpha1"])
def test_a_field_that_has_another_value_is_noticed(aspect: str) -> None:
    case = case_of("n-agg-vllm")
    before, recorded = differing(aspect, case), copy.deepcopy(case.after("none", 0))
    for body in (*recorded.objects, *recorded.in_v1alpha1):
        if body["kind"] == "DynamoGraphDeployment":
            body["spec"]["priorityClassName"] = "spoilt"
            break
    assert {"spec.priorityClassName"} == differing(aspect, with_recorded(case, recorded)) - before


def test_an_object_that_is_missing_is_noticed() -> None:
    case = case_of("n-agg-vllm")
    recorded = case.after("none", 0)
    fewer = Recorded(objects=tuple(body for body in recorded.objects if body["kind"] != "Deployment"))
    found = ASPECTS["names"].differences(with_recorded(case, fewer), "none", 0)
    assert {"Deployment"} == {it.object.partition("/")[0] for it in found if it.is_ == "extra"}
