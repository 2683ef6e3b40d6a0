"""The page of labels and annotations says what the code says."""

import runpy
from pathlib import Path

from dynamo_operator.labels import ANNOTATIONS, LABELS

TOOL = runpy.run_path(str(Path(__file__).parents[4] / "tools/labels_page.py"))


def test_every_key_has_its_row_and_its_use() -> None:
    explained = [(row["key"], row["use"] == "label") for row in TOOL["KEYS"]]
    assert len(explained) == len(set(explained))
    declared = {(key, True) for key in LABELS} | {(key, False) for key in ANNOTATIONS}
    assert declared == set(explained)
