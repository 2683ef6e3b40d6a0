"""The picture docs/layers.svg: the layers of the packages, from the import contracts in pyproject.toml."""

import re
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/layers.svg"
LETTERS = 26  # in a line of a box
WIDE, GAP, LINE, TOP = 236, 16, 18, 44
"""Pixels: the width of a column and the gaps between them, the height of a line, the top of the first box."""


def columns() -> list[tuple[str, list[list[str]]]]:
    """The layer contracts: the package, and the names of each layer from the highest."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return [
        (
            "".join(contract.get("containers", ["all packages"])),
            [re.findall(r"\w+", layer) for layer in contract["layers"]],
        )
        for contract in contracts
        if contract["type"] == "layers"
    ]


def picture() -> str:
    """One column for each contract, one box for each layer."""
    parts: list[str] = []
    lowest = 0
    contracts = columns()
    for number, (title, layers) in enumerate(contracts):
        left, top = GAP + number * (WIDE + GAP), TOP
        parts.append(f'<text x="{left}" y="28" font-weight="bold">{title}</text>')
        for names in layers:
            lines = wrapped(names)
            height = LINE * len(lines) + 14
            parts.append(
                f'<rect x="{left}" y="{top}" width="{WIDE}" height="{height}" rx="4"'
                ' fill="#eef3ea" stroke="#4d6b2f"/>'
            )
            parts.extend(
                f'<text x="{left + 10}" y="{top + 20 + LINE * row}">{line}</text>'
                for row, line in enumerate(lines)
            )
            top += height + 8
        lowest = max(lowest, top)
    width, height = GAP + len(contracts) * (WIDE + GAP), lowest + 8
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            "<title>The layers of the packages: each imports only what is below it</title>",
            '<rect width="100%" height="100%" fill="#fff"/>',
            '<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="13" fill="#1c2610">',
            *parts,
            "</g>",
            "</svg>\n",
        ]
    )


def wrapped(names: list[str]) -> list[str]:
    """The names as lines that fit into a box."""
    return textwrap.wrap(", ".join(names), LETTERS)
