"""Join texts within a length limit, and count those that are left out."""

from collections.abc import Sequence

_LEAST = 80
"""Fewest characters of a text that is cut."""


def fitted(texts: Sequence[str], limit: int, *, between: str = "; ") -> str:
    """The texts in their order, whole as far as they fit, then how many more there are.

    Only the first that does not fit is cut, after a word, and only if enough of it is left to be of use.
    Units: `limit` in characters.
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
    """The text, or its beginning up to the end of a word, and an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    words = head.rpartition(" ")[0]
    return (words if len(words) >= len(head) // 2 else head).rstrip(" ,;:") + "…"


def _more(count: int) -> str:
    return f" (and {count} more)" if count else ""
