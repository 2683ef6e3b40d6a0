"""The documentation site is whole: every page is in the navigation, every link and anchor leads somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.diagrams import FOLDER, digest, sources

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors: dead links, unknown anchors, pages outside the navigation."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", f"--site-dir={folder}"]
    built = subprocess.run(  # noqa: S603  # our own interpreter
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert 0 == built.returncode, built.stdout + built.stderr
    return folder


def test_every_page_of_the_repository_is_on_the_site(site: Path) -> None:
    documents = {each.relative_to(ROOT / "docs") for each in (ROOT / "docs").rglob("*.md")}
    built = {each.relative_to(site) for each in site.rglob("*.html")}
    expected = {
        each.with_name("index.html") if each.stem == "README" else each.with_suffix("") / "index.html"
        for each in documents
    }
    assert set() == expected - built
    assert (site / "examples" / "vllm-aggregated.yaml" / "index.html").exists()
    assert (site / "search" / "search_index.json").exists()


def test_diagrams_are_drawn_and_described(site: Path) -> None:
    diagrams = {
        name: source
        for path in (ROOT / "docs").rglob("*.md")
        for name, source in sources(path.name, path.read_text(encoding="utf-8")).items()
    }
    assert {f"{name}.svg" for name in diagrams} == {each.name for each in FOLDER.iterdir()}
    for name, source in diagrams.items():
        (title,) = re.findall("accTitle: (.+)", source)
        text = (site / name.rpartition("-")[0] / "index.html").read_text(encoding="utf-8")
        assert f'data-source="{digest(source)}"' in text, "python tools/diagrams.py"
        assert f"{title}</title>" in text
