"""The page of conditions says what the code says."""

import runpy
from pathlib import Path

from dynamo_operator.status.reasons import MEANINGS, ComponentReason, GraphReason

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools/conditions_page.py"))


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert TOOL["page"]() == TOOL["PAGE"].read_text("utf-8")


def test_every_reason_is_explained() -> None:
    assert {*GraphReason, *ComponentReason} == {each.reason for each in MEANINGS}
