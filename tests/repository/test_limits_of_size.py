"""Modules and functions stay small enough to be read at one go (see CONTRIBUTING.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGES = Path(__file__).parents[2] / "packages"
MODULE_LINES = 400
FUNCTION_LINES = 50


def modules() -> Iterator[tuple[str, str]]:
    """The path and the text of each module of the packages."""
    for path in sorted(PACKAGES.glob("*/src/**/*.py")):
        yield str(path.relative_to(PACKAGES)), path.read_text(encoding="utf-8")


def functions(text: str) -> Iterator[tuple[str, int]]:
    """The name of each function, and how many lines it has from its `def` to its end."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_module_is_shorter_than_the_limit() -> None:
    lines = {path: len(text.splitlines()) for path, text in modules()}
    assert {} == {path: count for path, count in lines.items() if count >= MODULE_LINES}
    folders = {path.name for path in PACKAGES.iterdir() if (path / "pyproject.toml").is_file()}
    assert folders == {path.split("/")[0] for path in lines}


def test_every_function_is_shorter_than_the_limit() -> None:
    long = {
        f"{path}: {name}": lines
        for path, text in modules()
        for name, lines in functions(text)
        if lines >= FUNCTION_LINES
    }
    assert {} == long


def test_lines_are_counted_from_the_first_to_the_last_of_a_function() -> None:
    text = "class A:\n    async def b(\n        self,\n    ) -> None:\n        def c(): ...\n        c()\n"
    assert [("b", 5), ("c", 1)] == list(functions(text))
