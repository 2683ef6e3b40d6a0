"""Each planted fault still fits the code (`make planted`, tests/planted/README.md)."""

import pytest

from planted.faults import ROOT, Fault, faults


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_planted_fault_changes_each_of_its_files_in_one_place(fault: Fault) -> None:
    for edit in fault.edits:
        text = (ROOT / edit.file).read_text(encoding="utf-8")
        assert text != edit.applied(text)


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_the_tests_that_should_find_it_exist(fault: Fault) -> None:
    assert [] == [part for part in fault.parts if not (ROOT / part.split()[0]).exists()]
