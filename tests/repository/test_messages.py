"""What messages refer to exists: files, pages and commands."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from dynamoctl.main import app

ROOT = Path(__file__).parents[2]
FILE = re.compile(r"(?<![\w/.<-])((?:[\w.-]+/)*[\w-]+\.(?:md|yaml|toml|ipynb))(?![\w/])")
COMMAND = re.compile(r"`dynamoctl ([a-z][a-z-]+)")
URL = re.compile(r"https?://\S+")


def texts() -> Iterator[tuple[str, str]]:
    """The texts of all modules and chart templates, with the file that has them."""
    for path in sorted(ROOT.glob("packages/*/src/**/*.py")):
        place = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield place, URL.sub("", node.value)
    for path in sorted(ROOT.glob("charts/**/templates/*")):
        if path.suffix in (".tpl", ".txt", ".yaml"):
            yield str(path.relative_to(ROOT)), URL.sub("", path.read_text(encoding="utf-8"))


def test_every_page_that_is_named_exists() -> None:
    missing = {
        (place, name)
        for place, text in texts()
        for name in FILE.findall(text)
        if name.endswith(".md") or name.startswith(("docs/", "charts/"))
        if not (ROOT / name).exists() and not any(ROOT.glob(f"docs/**/{name}"))
    }
    assert set() == missing


def test_every_command_that_is_named_exists() -> None:
    known = set(app())
    named = {(place, name) for place, text in texts() for name in COMMAND.findall(text)}
    assert named
    assert set() == {(place, name) for place, name in named if name not in known}
