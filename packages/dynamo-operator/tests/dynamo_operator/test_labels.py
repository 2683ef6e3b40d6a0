"""The page of labels and annotations says what the code says."""

import runpy
from pathlib import Path

from dynamo_operator.labels import ENTRIES

TOOL = runpy.run_path(str(Path(__file__).parents[4] / "tools/labels_page.py"))


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert TOOL["page"]() == TOOL["PAGE"].read_text("utf-8")


def test_no_key_of_one_use_is_declared_twice() -> None:
    keys = [(entry.key, entry.use) for entry in ENTRIES]
    assert len(keys) == len(set(keys))
