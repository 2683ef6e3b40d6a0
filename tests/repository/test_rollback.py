"""After a rollback the Go operator can read what this operator wrote, and remove it.

The recordings hold what it writes itself. It reads a status with the types that it writes, so the types of
both must agree, and it removes its own finalizer only.
"""

from pathlib import Path

import pytest

from conformance.recordings import documents
from dynamo_graphs.schema import status_problems
from dynamo_operator.crds import KINDS
from dynamo_operator.labels import FINALIZER

CASES = Path(__file__).parents[2] / "tests/conformance/cases"
RECORDED = [document for path in sorted(CASES.glob("*/none*.yaml")) for document in documents(path)]
OBJECTS = [body for recorded in RECORDED for body in recorded["objects"] if body["kind"] in KINDS]


@pytest.mark.parametrize("kind", sorted({body["kind"] for body in OBJECTS}))
def test_a_status_has_the_same_types_for_both(kind: str) -> None:
    statuses = [body["status"] for body in OBJECTS if body["kind"] == kind and "status" in body]
    assert statuses
    problems = [it for status in statuses for it in status_problems(KINDS[kind], status)]
    # The recordings have no times.
    assert [] == [it for it in problems if not it.path.endswith(("Time", "since"))]


def test_the_finalizer_is_one_that_both_remove() -> None:
    finalizers = {name for body in OBJECTS for name in body["metadata"].get("finalizers", ())}
    assert {FINALIZER} == {name for name in finalizers if "nvidia.com" in name}
