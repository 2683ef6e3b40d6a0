"""Hooks of mkdocs for `make site`: pages beside `docs/`, and the targets of links.

Pages link to files by their paths in the repository. On the site, the examples, the READMEs of the packages
and CONTRIBUTING.md are pages too. A link to any other file, such as a test, becomes plain text.
"""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parents[1]))  # mkdocs runs this file by its path
from dynamo_operator import version
from tools import diagrams, notebooks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BESIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "packages/*/README.md")
MANIFESTS = "examples/**/*.yaml"
LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
NOTE = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)
"""Before the heading it would hide the page's title from mkdocs."""
ALONE = ("README.md", "quickstart.md")
"""Pages that are a tab each: an empty navigation would take width from their code."""
BUTTONS = """\
[Get started](quickstart.md){ .md-button .md-button--primary }
[Serve your own model](own-model.md){ .md-button }
"""
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def slug(text: str, separator: str) -> str:
    """The anchor of a heading, as on GitHub, so that links work in both places."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", separator)


def generated() -> dict[str, str]:
    """The pages outside of `docs/`, by their path on the site."""
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for pattern in BESIDE
        for path in ROOT.glob(pattern)
    }
    for path in ROOT.glob(MANIFESTS):
        texts[f"{path.relative_to(ROOT).as_posix()}.md"] = _manifest(path)
    for path in notebooks.FOLDER.glob("*.ipynb"):
        texts[f"notebooks/{path.stem}.md"] = notebooks.page(path.name)
    texts["packages/README.md"] = _contents("Packages", ROOT.glob("packages/*/README.md"))
    return texts


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Expand the folders of the navigation, which end with a slash."""
    config.mdx_configs["toc"]["slugify"] = slug
    pages = sorted({*generated(), *(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))})

    def expanded(entry: Any) -> Any:
        if isinstance(entry, list):
            return [expanded(inner) for inner in entry]
        if isinstance(entry, dict):
            return {title: expanded(inner) for title, inner in entry.items()}
        if not entry.endswith("/"):
            return entry
        inside = [page for page in pages if page.startswith(entry)]
        return sorted(inside, key=lambda page: (page != f"{entry}README.md", page))

    config.nav = expanded(config.nav)
    config.copyright = f"Version {version()}"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside of `docs/`."""
    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    return files


def boost(source: str, boosts: dict[str, float]) -> float:
    """How much a page counts in the site's search: the number of the longest beginning of its path."""
    return max((len(begin), number) for begin, number in boosts.items() if source.startswith(begin))[1]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with links to pages of the site, and its weight in the search."""
    source = page.file.src_uri
    page.meta.setdefault("search", {})["boost"] = boost(source, config.extra["search_boost"])
    is_in_docs = source.startswith("notebooks/") or (DOCS / source).exists()
    folder = posixpath.dirname(f"docs/{source}" if is_in_docs else source)

    def site_link(match: re.Match[str]) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        inside = path.removeprefix("docs/")
        inside = re.sub(r"\.ipynb$", ".md", inside)  # its page, not the file
        for name in (inside, f"{inside}.md", f"{inside}/README.md"):
            if files.get_file_from_path(name):
                here = posixpath.dirname(source) or "."
                return f"{image}[{text}]({posixpath.relpath(name, here)}{anchor})"
        return text if (ROOT / path).exists() else match[0]

    markdown = NOTE.sub("", markdown)
    if source == "README.md":
        title, summary, rest = markdown.split("\n\n", 2)
        markdown = f"{title}\n\n{summary}\n\n{BUTTONS}\n\n{rest}"
    if source in ALONE:
        page.meta["hide"] = ["navigation"]
    for name, diagram in diagrams.sources(source, markdown).items():
        try:
            drawn = diagrams.drawing(name, diagram)
        except ValueError as error:
            raise PluginError(str(error)) from error
        markdown = markdown.replace(f"```mermaid\n{diagram}```", drawn, 1)
    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(site_link, part) for part in parts)


def _contents(title: str, paths: Any) -> str:
    heads = sorted((path, path.read_text(encoding="utf-8").partition("\n")[0]) for path in paths)
    names = [(head.removeprefix("# "), path) for path, head in heads]
    rows = [f"- [{head}]({path.parent.name}/README.md)" for head, path in names]
    return f"# {title}\n\n" + "\n".join(rows) + "\n"


def _manifest(path: Path) -> str:
    """The page of an example: its leading comment as text, then the file."""
    text = path.read_text(encoding="utf-8")
    comment = re.match(r"(?:#.*\n)*", text)
    summary = comment[0].replace("# ", "").replace("\n", " ") if comment else ""
    return f"# {path.name}\n\n{summary}\n\n```yaml\n{text}```\n"
