"""Join texts within a limit of length, and count those that are left out."""

from collections.abc import Sequence

_LEAST = 80
"""Least length of a truncated text."""


def fitted(texts: Sequence[str], limit: int, *, between: str = "; ") -> str:
    """Join as many texts as fit into `limit` characters, then the number of the others.

    The first text that does not fit is truncated after a word, if enough of it is left.
    """
    whole = between.join(texts)
    if len(whole) <= limit:
        return whole
    kept: list[str] = []
    for at, text in enumerate(texts):
        more = _more(len(texts) - at - 1)
        room = limit - len(between.join((*kept, ""))) - len(more)
        if len(text) <= room:
            kept.append(text)
        elif room >= _LEAST or not kept:
            return between.join((*kept, cut(text, room))) + more
        else:
            return between.join(kept) + _more(len(texts) - at)
    return between.join(kept)


def cut(text: str, limit: int) -> str:
    """Truncate a text after a word, with an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    words = head.rpartition(" ")[0]
    return (words if len(words) >= len(head) // 2 else head).rstrip(" ,;:") + "…"


def _more(count: int) -> str:
    return f" (and {count} more)" if count else ""
