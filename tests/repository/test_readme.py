"""The paths that pages name exist, and the example in the README of a package runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"),
    *sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("packages/*/README.md")]),
]
PATH = re.compile(r"(?<!\[)`(\w[\w.-]*/[\w./*-]*)(?:::\w+)?`")
"""A file or a folder in a code span that is not the text of a link, with the name of a test if it has one."""
IMPORTED = {folder.name: folder.parent for folder in ROOT.glob("packages/*/src/*")}
"""Where the modules of each package are."""
FOLDERS = frozenset(("bench", "charts", "docs", "examples", "packages", "tests", "tools"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_of_the_code_exists(page: Path) -> None:
    named = {path: root_of(path) for path in PATH.findall(page.read_text(encoding="utf-8"))}
    assert [] == [
        path
        for path, root in named.items()
        if root is not None and "quill" not in path and not any(root.glob(path.rstrip("/")))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_text_of_a_link_to_a_page_is_not_its_file_name(page: Path) -> None:
    assert [] == re.findall(r"\[`?[\w./-]+\.(?:md|ipynb)`?\]\([^)]*\)", page.read_text(encoding="utf-8"))


def root_of(path: str) -> Path | None:
    """The folder that a path of a page is relative to. None means: it is not one of our files."""
    first = path.split("/", maxsplit=1)[0]
    if first in IMPORTED:
        return IMPORTED[first]
    return ROOT if first in FOLDERS else None


def test_every_folder_of_cluster_tests_is_run() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = re.search(r"^PARTS := ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    assert listed is not None
    parts = re.findall(r"(?:tests/cluster/|(?<![/\w]))([a-z]+)(?![/\w])", listed[1])
    folders = sorted({each.parent.name for each in (ROOT / "tests/cluster").glob("*/test_*.py")})
    assert folders == sorted(parts)


PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
NAMES = [path.name for path in PACKAGES]


@pytest.mark.parametrize("package", PACKAGES, ids=NAMES)
def test_the_example_runs(package: Path, tmp_path: Path) -> None:
    text = (package / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    done = subprocess.run(  # noqa: S603  # our own page
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("package", PACKAGES, ids=NAMES)
def test_the_package_ships_the_license(package: Path) -> None:
    assert (ROOT / "LICENSE").read_bytes() == (package / "LICENSE").read_bytes()
