"""The page of admission rules says what the rules say."""

import runpy
from pathlib import Path

from reviews.rows import ROWS

ROOT = Path(__file__).parents[4]


def test_the_page_is_up_to_date() -> None:
    page = runpy.run_path(str(ROOT / "tools" / "admission_page.py"))["page"]
    assert page() == (ROOT / "docs" / "admission.md").read_text(encoding="utf-8")


def test_every_rule_has_an_accepted_and_a_refused_or_warned_example() -> None:
    fine = {row.id for row in ROWS if not row.refused and not row.warnings}
    told = {row.id for row in ROWS if row.refused or row.warnings}
    without_refusal, without_acceptance = {"R2", "DGDR-U"}, {"S6", "S10", "S13", "G10", "DCD-U1"}
    without_acceptance |= {"M3", "M4", "R4", "R6"}
    assert without_refusal == fine - told
    assert without_acceptance == told - fine
