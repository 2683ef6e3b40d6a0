"""The reference pages say what the declarations say."""

import runpy
from pathlib import Path

TOOL = runpy.run_path(str(Path(__file__).parents[4] / "tools/reference.py"))


def test_every_link_leads_to_a_table_of_the_same_page() -> None:
    for name, text in TOOL["pages"]().items():
        headings = {line.removeprefix("## ").lower() for line in text.splitlines() if line[:3] == "## "}
        links = {part.partition(")")[0] for part in text.split("](#")[1:]}
        assert links <= headings, name
