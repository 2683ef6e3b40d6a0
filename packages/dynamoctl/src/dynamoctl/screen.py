"""Print tables, trees and JSON: in colour and at its width on a terminal, as unwrapped plain text elsewhere.

rich reads `NO_COLOR` and `FORCE_COLOR`. Cells come from a cluster, so control characters are replaced.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Literal, TextIO

from cyclopts import CycloptsError
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kube_runtime.errors import visible

_UNLIMITED = 10_000
"""Columns where there is no terminal, so that nothing is wrapped."""

_READABLE = 40
"""Least columns for a text in the last column; where there are fewer, it goes below its row."""

_STYLES = {
    **dict.fromkeys(("True", "ready", "Ready", "successful", "Running", "loaded"), "green"),
    **dict.fromkeys(("False", "failed", "Failed", "Warning", "error"), "red"),
    **dict.fromkeys(("pending", "Pending", "Unknown", "initializing"), "yellow"),
}
"""Colours of words that name a state."""


@dataclass(frozen=True, slots=True)
class Styled:
    """A cell with a style of its own, such as `bold`."""

    text: str
    style: str

    def drawn(self) -> Text:
        """The text, ready for printing."""
        return Text(visible(self.text), style=self.style)


Cell = str | Styled


def console(file: TextIO | None = None) -> Console:
    """Standard output, as wide as the terminal; plain text of unlimited width elsewhere."""
    width = None if file is None and sys.stdout.isatty() else _UNLIMITED
    colours: Literal["auto"] | None = None if file else "auto"
    return Console(highlight=False, markup=False, emoji=False, width=width, color_system=colours, file=file)


class _Table(Table):
    """A table whose last columns go below each row where the terminal has no room beside the first.

    With short texts in the last column its cells are wrapped instead: figures need their heads.
    """

    cells: Sequence[Sequence[Text]] = ()
    """The rows, after the head if there is one."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [max(cell.cell_len for cell in column) for column in zip(*self.cells, strict=True)]
        *others, last = widths or [0]
        before = sum(others) + 2 * len(others)
        if not others or (before > options.max_width and last <= _READABLE):
            return super().__rich_console__(console, options)
        if before + min(last, _READABLE) <= options.max_width:
            return super().__rich_console__(console, options)
        while len(others) > 1 and sum(others) + 2 * len(others) > options.max_width:
            others.pop()
        return self._stacked(others)

    def _stacked(self, widths: Sequence[int]) -> RenderResult:
        for number, row in enumerate(self.cells):
            first = row[: len(widths)]
            for cell, width in zip(first, widths, strict=True):
                cell.pad_right(width - cell.cell_len)
            yield Text("  ").join(first)
            below = [cell for cell in row[len(widths) :] if cell.plain]
            if below and not (self.show_header and number == 0):
                yield Padding(Text("  ").join(below), (0, 0, 0, 2))


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """Rows below a head, the columns two spaces apart; long cells are wrapped.

    Where a terminal is too narrow for the last column, its cells stand below their rows.
    """
    grid = _Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        show_edge=False,
        show_header=bool(head),
        header_style="bold",
    )
    count = len(head)
    ready = [
        tuple(
            Text(visible(cell.text), style=cell.style)
            if isinstance(cell, Styled)
            else Text(visible(cell), style=_STYLES.get(cell, ""))
            for cell in row
        )
        for row in rows
    ]
    for title in head or ("",) * max(map(len, ready), default=0):
        grid.add_column(title, overflow="fold")
    padded = [(*row, *(Text() for _ in range(count - len(row)))) for row in ready]
    for row in padded:
        grid.add_row(*row)
    grid.cells = [*([[Text(title, style="bold") for title in head]] if head else []), *padded]
    return grid


def show(*parts: RenderableType) -> None:
    """Print the parts."""
    screen = console()
    if screen.is_terminal:
        screen.print(*parts, sep="\n")
        return
    sys.stdout.write(plain(*parts))
    sys.stdout.flush()


def plain(*parts: RenderableType) -> str:
    """The parts as text without colour and trailing spaces."""
    stream = StringIO()
    console(stream).print(*parts, sep="\n")
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def show_json(body: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(body, indent=2), flush=True)


def redrawing() -> Live:
    """A display that is redrawn in place; its last state stays on the screen."""
    return Live(console=console(), auto_refresh=False, vertical_overflow="visible")


def visible_lines(text: str) -> str:
    """The text without control characters other than line ends."""
    return "\n".join(map(visible, text.split("\n")))


_LONGEST_INTERVAL = 3600
_DURATION = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str) -> int:
    """A duration such as `10m`, in seconds. Raises: CycloptsError."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise CycloptsError(
            f'invalid duration "{duration}" (expected a number and s, m, h or d, for example 10m)'
        )
    return int(match[1]) * _SECONDS[match[2]]


def interval_seconds(duration: str) -> int:
    """The time between two readings of metrics, in seconds. Raises: CycloptsError."""
    length = seconds(duration)
    if not 1 <= length <= _LONGEST_INTERVAL:
        raise CycloptsError(f'invalid interval "{duration}" (expected 1s to 1h, for example 5s)')
    return length
