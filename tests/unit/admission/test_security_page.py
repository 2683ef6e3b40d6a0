"""Every claim of the page on security names a test that there is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "security.md"
TESTS = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[str]:
    text = PAGE.read_text("utf-8")
    table = text.partition("## What is closed")[2].partition("\n## ")[0]
    return [line for line in table.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", rows())
def test_a_row_names_a_test_that_exists(row: str) -> None:
    found = TESTS.search(row)
    assert found, row
    tree = ast.parse((ROOT / found[1]).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert found[2] in {node.name for node in tree.body if isinstance(node, kinds)}


def test_the_table_is_found() -> None:
    assert len(rows()) > 30
