"""The notebooks docs/notebooks/*.ipynb, from docs/python.md, whose programs become cells."""

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "notebooks"
TITLES = {
    "fleet-and-policies.ipynb": ("A fleet of graphs", ("A fleet", "Policies, tested without a cluster")),
    "disaggregated.ipynb": (
        "Disaggregated serving and its sizes",
        ("Prefill and decode apart", "Sizes of prefill and decode", "Disaggregated serving on a cluster"),
    ),
    "latency-targets.ipynb": ("From latency targets to a graph", ("From latency targets to a graph",)),
    "lora.ipynb": ("LoRA", ("LoRAs", "A LoRA on a cluster")),
    "canary.ipynb": ("A canary", ("A canary of two graphs",)),
}
"""Notebooks with their titles and sections of the page; the first notebook has the other sections."""
SECTION = re.compile(r"^##+ ", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)]+)\)")
IMPORT = "from dynamo_graphs import Graph\n"

Cell = dict[str, object]


def notebooks() -> dict[str, str]:
    """The text of each notebook, by the name of its file."""
    head, *parts = SECTION.split((DOCS / "python.md").read_text(encoding="utf-8"))
    sections = {section.partition("\n")[0]: section for section in parts}
    titled = {
        name: _notebook(
            [f"# {title}\n\n```python\n{IMPORT}```\n", *(f"## {sections.pop(section)}" for section in titles)]
        )
        for name, (title, titles) in TITLES.items()
    }
    return {
        "first-graph.ipynb": _notebook([head, *(f"## {section}" for section in sections.values())]),
        **titled,
    }


def _notebook(parts: list[str]) -> str:
    cells: list[Cell] = []
    for part in parts:
        for number, text in enumerate(BLOCK.split(part)):
            if text.strip():
                cells.append(_cell(text.strip(), len(cells), is_code=number % 2 == 1))
    body = {
        "cells": cells,
        "metadata": {"kernelspec": {"display_name": "Python 3", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _cell(text: str, number: int, *, is_code: bool) -> Cell:
    shown = text if is_code else LINK.sub(r"](../\1)", text)
    cell: Cell = {
        "cell_type": "code" if is_code else "markdown",
        "id": f"cell-{number}",
        "metadata": {},
        "source": shown.splitlines(keepends=True),
    }
    return {**cell, "execution_count": None, "outputs": []} if is_code else cell
