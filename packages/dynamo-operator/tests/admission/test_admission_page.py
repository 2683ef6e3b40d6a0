"""The page of admission rules has an example of each."""

from reviews.rows import ROWS


def test_every_rule_has_an_accepted_and_a_refused_or_warned_example() -> None:
    fine = {row.id for row in ROWS if not row.refused and not row.warnings}
    told = {row.id for row in ROWS if row.refused or row.warnings}
    without_refusal, without_acceptance = {"R2", "DGDR-U"}, {"S6", "S10", "S13", "G10", "DCD-U1"}
    without_acceptance |= {"M3", "M4", "R4", "R6"}
    assert without_refusal == fine - told
    assert without_acceptance == told - fine
