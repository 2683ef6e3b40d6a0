"""docs/defaults.md lists what is rendered today."""

import runpy
from pathlib import Path

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools/defaults_page.py"))


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert TOOL["page"]() == TOOL["PAGE"].read_text("utf-8")
