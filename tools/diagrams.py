"""Draw the Mermaid diagrams of the pages as docs/diagrams/*.svg, so that the site needs no script.

Run `python tools/diagrams.py` after a change of a diagram. It needs npm, to download Mermaid, and Chromium.
"""

import hashlib
import html
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "diagrams"
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MERMAID = "11.12.0"
SCALE = 0.6
"""Smallest scale at which a drawing is readable; narrower screens scroll."""
PAGE = """<!doctype html><meta charset="utf-8"><body><script src="SCRIPT"></script><script>
mermaid.initialize(
  {startOnLoad: false, theme: "neutral", fontFamily: "sans-serif", flowchart: {wrappingWidth: 420}}
);
(async () => {
  for (const [name, source] of Object.entries(SOURCES)) {
    const drawn = document.createElement("textarea");
    drawn.className = name;
    drawn.textContent = (await mermaid.render(name, source)).svg;
    document.body.append(drawn);
  }
})().catch(error => document.body.append("failed: " + error));
</script>"""


def sources(page: str, text: str) -> dict[str, str]:
    """The diagrams of a page by name, such as `runtime-2`."""
    stem = Path(page).stem
    return {f"{stem}-{number}": source for number, source in enumerate(FENCE.findall(text), 1)}


def digest(source: str) -> str:
    """The digest of a diagram's source, which its drawing contains."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def drawing(name: str, source: str) -> str:
    """The drawing of a diagram, as HTML.

    Raises:
        ValueError: the drawing is missing or outdated, or the diagram has no description.
    """
    if "accTitle: " not in source:
        raise ValueError(f"{name}: a diagram needs an accTitle")
    path = FOLDER / f"{name}.svg"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if f'data-source="{digest(source)}"' not in text:
        raise ValueError(f"docs/diagrams/{name}.svg: outdated; run `python tools/diagrams.py`")
    width = float(text.partition('viewBox="')[2].partition('"')[0].split()[2])
    scaled = text.replace('style="', f'style="min-width: {width * SCALE:.0f}px; ', 1)
    return f'<div style="overflow-x: auto; background: #fff; padding: 0.5rem">{scaled.strip()}</div>'


def main() -> None:
    """Draw all diagrams."""
    diagrams = {
        name: source
        for path in sorted(DOCS.rglob("*.md"))
        for name, source in sources(path.name, path.read_text(encoding="utf-8")).items()
    }
    chromium = shutil.which("chromium")
    npm = shutil.which("npm")
    if chromium is None or npm is None:
        raise SystemExit("needs npm and chromium")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(  # noqa: S603  a fixed command
            [npm, "pack", "--silent", f"mermaid@{MERMAID}"], cwd=folder, check=True, capture_output=True
        )
        with tarfile.open(Path(folder, f"mermaid-{MERMAID}.tgz")) as archive:
            archive.extractall(folder, filter="data")
        page = Path(folder, "page.html")
        text = PAGE.replace("SCRIPT", "package/dist/mermaid.min.js")
        page.write_text(text.replace("SOURCES", json.dumps(diagrams)), encoding="utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        done = subprocess.run(  # noqa: S603  a fixed command
            [*command, "--virtual-time-budget=30000", page.as_uri()],
            capture_output=True,
            check=True,
            text=True,
        )
    drawn = dict(re.findall(r'<textarea class="([\w-]+)">(.*?)</textarea>', done.stdout, re.DOTALL))
    if drawn.keys() != diagrams.keys():
        raise SystemExit(done.stdout.rpartition("failed: ")[2])
    for name, source in diagrams.items():
        # Remove Mermaid's data attributes and round numbers to a tenth of a pixel.
        svg = re.sub(r' data-points="[^"]*"', "", html.unescape(drawn[name]))
        svg = re.sub(r"(\d\.\d)\d+", r"\1", svg)
        marked = svg.replace("<svg ", f'<svg data-source="{digest(source)}" ', 1)
        (FOLDER / f"{name}.svg").write_text(marked + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
