"""Each row of the older generation's documentation names a test that exists."""

from pathlib import Path

import yaml

from dynamo_legacy.settings import IGNORED, rows
from dynamo_operator.settings import fields

ROOT = Path(__file__).parents[4]
ROWS = yaml.safe_load((ROOT / "tools/legacy_rows.yaml").read_text(encoding="utf-8"))


def test_each_row_has_a_test() -> None:
    texts = {name: (ROOT / path).read_text(encoding="utf-8") for name, path in ROWS["tests"].items()}
    rows = [row for table in ROWS["tables"].values() for row in table.values()]
    missing = [test for _, file, test in rows if f"def {test}(" not in texts[file]]
    assert missing == []


def test_each_variable_is_read_or_accepted() -> None:
    read = {name for setting in rows() for name in setting.variables}
    of_the_operator = {field.environment for field in fields()}
    assert ROWS["tables"]["Variables"].keys() <= read | of_the_operator | set(IGNORED)
