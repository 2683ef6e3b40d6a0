"""The pages that are made from declarations say what the code says."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("name", ["settings", "metrics"])
def test_the_page_is_up_to_date(name: str) -> None:
    page = runpy.run_path(str(ROOT / "tools" / f"{name}_page.py"))["page"]
    assert page() == (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
