"""Markdown for the generated pages."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [_row(head), f"|{'---|' * len(head)}", *map(_row, rows)]


def escaped(text: str) -> str:
    """The text of a cell, in which `|` would end the cell."""
    return text.replace("|", "\\|")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
