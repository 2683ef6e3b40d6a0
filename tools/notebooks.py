"""The notebooks docs/notebooks/*.ipynb, from docs/python.md, whose programs become cells.

`make notebooks STORE=1` runs them and stores their outputs, which stay while a cell and those before it do.
"""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "notebooks"
TITLES = {
    "fleet-and-policies.ipynb": ("A fleet of graphs", ("A fleet", "Policies, tested without a cluster")),
    "disaggregated.ipynb": (
        "Disaggregated serving and its sizes",
        ("Prefill and decode apart", "Sizes of prefill and decode", "Disaggregated serving on a cluster"),
    ),
    "latency-targets.ipynb": ("From latency targets to a graph", ("From latency targets to a graph",)),
    "lora.ipynb": ("LoRAs", ("LoRAs", "A LoRA on a cluster")),
    "canary.ipynb": ("A canary of two graphs", ("A canary of two graphs",)),
}
"""Notebooks with their titles and sections of the page; the first notebook has the other sections."""
FIRST = "first-graph.ipynb"
SECTION = re.compile(r"^##+ ", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n.*?^```$)?", re.MULTILINE | re.DOTALL)
"""A program, and its output, which a notebook has as the output of its cell."""
LINK = re.compile(r"\]\((?!https?://)([^)]+)\)")
IMPORT = "from dynamo_graphs import Graph\n"

Cell = dict[str, Any]


def notebooks() -> dict[str, str]:
    """The text of each notebook, by the name of its file."""
    _, *parts = SECTION.split((DOCS / "python.md").read_text(encoding="utf-8"))
    sections = {title: body for title, _, body in (part.partition("\n") for part in parts)}
    texts = {
        name: _notebook(name, title, {section: sections.pop(section) for section in titles})
        for name, (title, titles) in TITLES.items()
    }
    return {FIRST: _notebook(FIRST, "A first graph", sections), **texts}


def page(name: str) -> str:
    """A notebook with its outputs as a page of the site."""
    return "\n\n".join(
        part
        for cell in _read(FOLDER / name)
        for part in (_source(cell), *map(_drawn, cell.get("outputs", ())))
    )


def store(executed: Path) -> None:
    """Keep the outputs of a notebook that was run, without what changes with each run."""
    cells = _read(FOLDER / executed.name)
    for cell, run in zip(cells, _read(executed), strict=True):
        if cell["cell_type"] == "code":
            cell |= {"execution_count": run["execution_count"], "outputs": list(_kept(run["outputs"]))}
    (FOLDER / executed.name).write_text(_text(cells), encoding="utf-8")


def _notebook(name: str, title: str, sections: dict[str, str]) -> str:
    cells: list[Cell] = [_cell(f"# {title}\n\nA part of [Graphs in Python](python.md).", 0, is_code=False)]
    programs = [program for body in sections.values() for program in BLOCK.findall(body)]
    if "Graph(" in "".join(programs) and not any(IMPORT in program for program in programs):
        cells.append(_cell(IMPORT.strip(), 1, is_code=True))
    for section, body in sections.items():
        text = body if section == title else f"## {section}\n{body}"
        for number, part in enumerate(BLOCK.split(text)):
            if part.strip():
                cells.append(_cell(part.strip(), len(cells), is_code=number % 2 == 1))
    return _text(list(_with_outputs(cells, FOLDER / name)))


def _with_outputs(cells: list[Cell], path: Path) -> Iterator[Cell]:
    """The cells with their stored outputs, up to the first cell that has changed."""
    stored = iter([cell for cell in _read(path) if cell["cell_type"] == "code"] if path.exists() else ())
    for cell in cells:
        if cell["cell_type"] == "code":
            before = next(stored, None)
            if before is None or before["source"] != cell["source"]:
                stored = iter(())
            else:
                cell |= {name: before[name] for name in ("execution_count", "outputs")}
        yield cell


def _cell(text: str, number: int, *, is_code: bool) -> Cell:
    shown = text if is_code else LINK.sub(r"](../\1)", text)
    cell: Cell = {
        "cell_type": "code" if is_code else "markdown",
        "id": f"cell-{number}",
        "metadata": {},
        "source": shown.splitlines(keepends=True),
    }
    return {**cell, "execution_count": None, "outputs": []} if is_code else cell


def _read(path: Path) -> list[Cell]:
    cells: list[Cell] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def _text(cells: list[Cell]) -> str:
    body = {
        "cells": cells,
        "metadata": {"kernelspec": {"display_name": "Python 3", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _kept(outputs: list[Cell]) -> Iterator[Cell]:
    """The outputs without warnings; what a cell prints is one text, however it arrived."""
    printed: Cell = {}
    for output in outputs:
        if output["output_type"] != "stream":
            printed = {}
            texts = {name: "".join(text).splitlines(keepends=True) for name, text in output["data"].items()}
            yield {name: value for name, value in output.items() if name != "transient"} | {"data": texts}
        elif output["name"] != "stderr":
            text = "".join((*printed.get("text", ()), *output["text"]))
            if not printed:
                yield (printed := output)
            printed["text"] = text.splitlines(keepends=True)


def _source(cell: Cell) -> str:
    text = "".join(cell["source"])
    return f"```python\n{text}\n```" if cell["cell_type"] == "code" else text


def _drawn(output: Cell) -> str:
    """An output as Markdown; HTML in one line, because an empty line would end it."""
    data = output.get("data", {})
    if "text/html" in data:
        return f"<div>{''.join(''.join(data['text/html']).splitlines())}</div>"
    text = html.escape("".join(output.get("text") or data.get("text/plain", "")).rstrip("\n"), quote=False)
    return f"<pre><code>{text}</code></pre>" if text else ""
