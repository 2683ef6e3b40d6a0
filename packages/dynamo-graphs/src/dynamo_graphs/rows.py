"""Results as Jupyter draws them. All text comes from a cluster or a user, so it is escaped."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Rows(tuple[T_co, ...]):
    """A tuple of dataclasses, which Jupyter draws as a table; `print` has a line for each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        if not self:
            return "<p>none</p>"
        first: Any = self[0]
        names = [field.name for field in fields(first) if not isinstance(getattr(first, field.name), dict)]
        return table(names, ([getattr(row, name) for name in names] for row in self))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table of texts."""
    lines = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    names = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def paragraph(text: str, *, bold: bool = False) -> str:
    """A paragraph of text, in which backticks mark code."""
    shown = re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
    return f"<p><b>{shown}</b></p>" if bold else f"<p>{shown}</p>"


def _cell(value: object) -> str:
    parts = value if isinstance(value, tuple | list) else (value,)
    text = "<br>".join(escape(str(part)) for part in parts)
    return f"<td style='text-align:left'>{text}</td>"
