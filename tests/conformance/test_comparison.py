"""The comparison is worth something: it finds what is broken, and explains only what it should."""

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.deviations import LATER, explanation, rows
from conformance.modes import EVERY_MODE, MODES, Mode
from conformance.play import Observed
from conformance.recordings import Case, LegacyCase, Recorded, cases, every_case
from conformance.verdict import Result, Verdict, compared, judge
from kube_runtime.types.meta import Object

NONE = MODES["none"]
CASE = Case("disagg-vllm")
DOCUMENT = Path(__file__).parents[2] / "docs" / "deviations.md"
WORKER = "Deployment/g-vllmdecodeworker"


def recorded(mode: Mode = NONE, case: Case = CASE) -> Recorded:
    found = case.recorded(mode, 0)
    assert found is not None
    return found


def verdict(
    change: Callable[[dict[str, Object]], object] = lambda _: None, mode: Mode = NONE, case: Case = CASE
) -> Verdict:
    """The verdict on an operator that does as recorded, but for a change."""
    found = recorded(mode, case)
    objects = copy.deepcopy(found.objects)
    named = {f"{each['kind']}/{each['metadata']['name']}": each for each in objects}
    change(named)
    observed = Observed([*named.values()], [], found.events)
    return judge(mode, [case], {(case.name, 0): observed})[case.name]


def main_container(objects: dict[str, Object]) -> Any:
    return objects[WORKER]["spec"]["template"]["spec"]["containers"][0]


def test_the_recorded_operator_is_equal_to_itself() -> None:
    assert Result.EQUAL == verdict().result


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each scalar of a JSON value: where it is, and what holds it under which key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in [*pairs]:
        below = f"{path}.{key}"
        if isinstance(each, dict | list):
            yield from leaves(each, below)
        else:
            yield below, value, key


ALLOWED = re.compile(
    r".*\.annotations\.nvidia\.com/last-applied-.*"  # made in another way: S8
    r"|Service\.spec\.clusterIPs?(\.0)?"  # chosen by the API server
    r"|Job.*\.annotations\.yatai\.ai/bento-request-hash"  # made in another way: Y24
)


@pytest.mark.parametrize(
    ("mode", "case"), [("none", CASE), ("legacy", LegacyCase("nd-request-only"))], ids=["none", "legacy"]
)
def test_no_field_can_change_unnoticed(mode: str, case: Case) -> None:
    unnoticed = set()
    for body in recorded(EVERY_MODE[mode], case).objects:
        theirs = Recorded([body], [], [])
        for number, (path, _, _) in enumerate(leaves(body)):
            spoilt = copy.deepcopy(body)
            _, holder, key = [*leaves(spoilt)][number]
            holder[key] = "spoilt"
            found = compared(theirs, Observed([spoilt]))
            if all(explanation(each, case.name, mode, rows()) for each in found):
                unnoticed.add(f"{body['kind']}{path}")
    assert set() == {each for each in unnoticed if not ALLOWED.fullmatch(each)}


@pytest.mark.parametrize("name", [WORKER, "Service/g-frontend", "Role/g-k8s-service-discovery-role"])
def test_an_object_that_is_missing_is_noticed(name: str) -> None:
    assert Result.DIFFERENT == verdict(lambda objects: objects.pop(name)).result


@pytest.mark.parametrize("field", ["env", "args", "command"])
def test_the_order_of_a_container_matters(field: str) -> None:
    found = verdict(lambda objects: main_container(objects)[field].reverse())
    assert Result.DIFFERENT == found.result


def test_an_event_that_is_missing_is_noticed() -> None:
    observed = Observed(recorded().objects, [], [])
    found = judge(NONE, [CASE], {(CASE.name, 0): observed})[CASE.name]
    assert any("CreateDeployment" in each for each in found.unexplained)


def test_an_input_that_is_refused_is_noticed() -> None:
    observed = Observed(recorded().objects, ["422: no"], recorded().events)
    found = judge(NONE, [CASE], {(CASE.name, 0): observed})[CASE.name]
    (line,) = found.unexplained
    assert "Input" in line


def test_a_meant_difference_is_explained_by_its_row_only() -> None:
    def leave_out(objects: dict[str, Object]) -> None:
        del objects["Service/g-frontend-d"]
        selector = objects["Service/g-frontend"]["spec"]["selector"]
        selector["nvidia.com/dynamo-component"] = "Frontend"

    found = verdict(leave_out)
    assert (Result.MEANT, ["L1", "O1"]) == (found.result, found.deviations)


def test_every_row_has_an_entry_in_the_document() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| ([A-Z]+\d+) \|", text, flags=re.MULTILINE))
    assert set() == {row.id for row in rows()} - documented - {LATER}
    assert "## Not there yet" in text


def test_every_case_belongs_to_a_mode() -> None:
    played = {each.name for mode in EVERY_MODE.values() for each in cases(mode)}
    here = {each.name for each in every_case()}
    assert here == played
