"""The documentation site is whole: every page is in the navigation, every link and anchor leads somewhere."""

import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tools.diagrams import FOLDER, digest, sources

ROOT = Path(__file__).parents[2]
ELSEWHERE = re.compile(r"https?://[^\"']+")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors: dead links, unknown anchors, pages outside the navigation."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        f"--site-dir={folder}",
    ]
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


class _Reader(HTMLParser):
    """What a page fetches, the pictures without a description, and the anchors that occur twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.undescribed: list[str] = []
        self.anchors = Counter[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        source = found.get("src") or (found.get("href") if tag == "link" else "")
        if source and found.get("rel") != "canonical":
            self.fetched.append(source)
        if tag == "img" and not found.get("alt"):
            self.undescribed.append(source or "")
        if "id" in found:
            self.anchors[found["id"]] += 1


def pages(site: Path) -> dict[str, _Reader]:
    found = sorted(site.rglob("*.html"))
    assert found
    return {path.relative_to(site).as_posix(): _Reader(path.read_text(encoding="utf-8")) for path in found}


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


def test_pages_fetch_nothing_from_elsewhere_and_describe_their_pictures(site: Path) -> None:
    read = pages(site)
    assert {} == {
        name: found for name, page in read.items() if (found := [*filter(ELSEWHERE.match, page.fetched)])
    }
    assert {} == {name: page.undescribed for name, page in read.items() if page.undescribed}


def test_the_navigation_shows_the_headings_of_pages(site: Path) -> None:
    text = (site / "reference" / "index.html").read_text(encoding="utf-8")
    shown = set(re.findall(r'md-ellipsis">\s*([^<>]+?)\s*<', text))
    assert {"DynamoGraphDeployment", "DynamoModel", "The older generation"} <= shown


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


def test_no_anchor_occurs_twice(site: Path) -> None:
    twice = {
        name: found
        for name, page in pages(site).items()
        if (found := [each for each, count in page.anchors.items() if count > 1])
    }
    assert {} == twice
