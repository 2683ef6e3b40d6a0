"""Every claim of the page on security names a test that there is."""

import ast
import re
from pathlib import Path

import pytest

from dynamo_operator.api.crd import custom_resource_definitions

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "security.md"
TESTS = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


VERBS = ("create", "update", "patch", "delete")
WORTH = "## What a right to write each kind is worth"


def rows(heading: str = "## What is closed") -> list[str]:
    text = PAGE.read_text("utf-8")
    table = text.partition(heading)[2].partition("\n## ")[0]
    head = ("| kind ", "| right ", "| a tenant, ")
    lines = (line for line in table.splitlines() if line.startswith("| "))
    return [line for line in lines if not line.startswith(head)]


@pytest.mark.parametrize("row", [*rows(), *rows(WORTH)])
def test_a_row_names_a_test_that_exists(row: str) -> None:
    found = TESTS.search(row)
    assert found, row
    tree = ast.parse((ROOT / found[1]).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert found[2] in {node.name for node in tree.body if isinstance(node, kinds)}


def test_the_table_is_found() -> None:
    assert len(rows()) > 30


def test_every_kind_and_verb_has_a_row() -> None:
    listed = {
        (row.split("|")[1].strip(), verb)
        for row in rows(WORTH)
        if row.count(" | ") == 4  # the table of kinds has five columns
        for verb in re.findall(r"`(\w+)`", row.split("|")[2])
    }
    wanted: set[tuple[str, str]] = set()
    for each in custom_resource_definitions():
        subresources = each["spec"]["versions"][0].get("subresources", {})
        kind = each["spec"]["names"]["kind"]
        wanted |= {(kind, verb) for verb in (*VERBS, *subresources)}
    assert wanted == listed
