"""Draws the Mermaid diagrams of the pages as docs/diagrams/*.svg, so that the site needs no script.

`make diagrams` runs it after a diagram was changed. It needs npm, for Mermaid's script, and Chromium, which
runs that.
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
"""The least scale at which the letters of a drawing can be read; on narrower screens it is scrolled."""
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
    """The diagrams of a page by the names of their drawings, such as `runtime-2`."""
    stem = Path(page).stem
    return {f"{stem}-{number}": source for number, source in enumerate(FENCE.findall(text), 1)}


def digest(source: str) -> str:
    """The mark of a drawing of this source; one of an older source has another."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def drawing(name: str, source: str) -> str:
    """The drawing of a diagram, as HTML.

    Raises:
        ValueError: there is none of this source.
    """
    path = FOLDER / f"{name}.svg"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if f'data-source="{digest(source)}"' not in text:
        raise ValueError(f"docs/diagrams/{name}.svg: not of this source; run `make diagrams`")
    width = float(text.partition('viewBox="')[2].partition('"')[0].split()[2])
    least = text.replace('style="', f'style="min-width: {width * SCALE:.0f}px; ', 1)
    return f'<div style="overflow-x: auto; background: #fff; padding: 0.5rem">{least.strip()}</div>'


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
            [npm, "pack", "--silent", f"mermaid@{MERMAID}"],
            cwd=folder,
            check=True,
            capture_output=True,
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
        # Without Mermaid's own notes, and with numbers to a tenth of a pixel.
        svg = re.sub(r' data-points="[^"]*"', "", html.unescape(drawn[name]))
        svg = re.sub(r"(\d\.\d)\d+", r"\1", svg)
        noted = svg.replace("<svg ", f'<svg data-source="{digest(source)}" ', 1)
        (FOLDER / f"{name}.svg").write_text(noted + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
