"""`Any` stands at the edges only: JSON of others, and libraries without types."""

import ast
from pathlib import Path

PACKAGES = Path(__file__).parents[2] / "packages"
MOST_PER_THOUSAND = 1.75
"""Mentions of `Any` in 1,000 lines. It can only fall: the aim is 2."""


def mentions(text: str) -> int:
    """How often a module uses the name `Any`, in quoted annotations too."""
    count = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id == "Any":
            count += 1
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            count += "[Any" in node.value or ", Any]" in node.value
    return count


def test_any_is_used_at_the_edges_only() -> None:
    texts = [path.read_text(encoding="utf-8") for path in PACKAGES.glob("*/src/**/*.py")]
    lines = sum(len(text.splitlines()) for text in texts)
    assert MOST_PER_THOUSAND >= sum(map(mentions, texts)) / lines * 1000


def test_each_use_of_any_counts() -> None:
    text = 'from typing import Any\na: dict[str, Any]\nb: "list[Any]"\nc = "Any client"\n'
    assert 2 == mentions(text)
