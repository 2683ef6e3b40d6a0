"""Every row of the page on what replaces pods names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rollouts.md").read_text("utf-8")
TESTS = re.compile(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)::(\w+)`")
ROWS = [
    line
    for line in PAGE.partition("## What changes beside a graph")[2]
    .partition("\n## ")[0]
    .splitlines()
    if line.startswith("| ") and not line.startswith("| what changes")
]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_tests_that_exist(row: str) -> None:
    found = TESTS.findall(row)
    assert found
    for path, name in found:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert name in {node.name for node in tree.body if isinstance(node, kinds)}


def test_the_table_is_found() -> None:
    assert len(ROWS) > 15
