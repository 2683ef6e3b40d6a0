"""The page of the log has every line that the operator can write."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools/log_page.py"))


def test_the_page_is_what_the_code_logs() -> None:
    assert TOOL["page"]() == (ROOT / "docs/log.md").read_text(encoding="utf-8"), "run `make docs`"


def test_the_line_that_users_search_for_is_logged() -> None:
    """The guide of DynamoModel has `kubectl logs … | grep "Failed to load"`."""
    page = (ROOT / "docs/log.md").read_text(encoding="utf-8")
    assert "| Failed to load LoRA | warning |" in page
    assert "as `Failed to load LoRA`" in (ROOT / "docs/models.md").read_text(encoding="utf-8")
