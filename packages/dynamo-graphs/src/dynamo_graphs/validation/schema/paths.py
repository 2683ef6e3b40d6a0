"""Paths as problems show them: `spec.pvcs[0].name`."""

from collections.abc import Iterable


def dotted(parts: Iterable[str | int]) -> str:
    """A path as text: keys after dots, even if a key holds dots itself, and indices in brackets."""
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return "".join(steps).removeprefix(".") or "document"
