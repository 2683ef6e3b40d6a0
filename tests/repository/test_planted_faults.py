"""Each planted fault still fits the code (`make planted`, tests/planted/README.md)."""

import pytest

from planted.faults import ROOT, Fault, faults


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_planted_fault_fits_its_files_and_its_tests_exist(fault: Fault) -> None:
    for edit in fault.edits:
        text = (ROOT / edit.file).read_text(encoding="utf-8")
        assert text != edit.applied(text)
    assert [] == [part for part in fault.parts if not (ROOT / part.split()[0]).exists()]
