"""Paths of fields: as problems show them, and as the sentences of the Go operator do."""

from collections.abc import Iterable

_SERVICES = "spec.services."


def dotted(parts: Iterable[str | int]) -> str:
    """A path as text: keys after dots, even if a key holds dots itself, and indices in brackets."""
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return "".join(steps).removeprefix(".") or "document"


def component_path(component: str) -> str:
    """The path of a component in such a sentence: `spec.services[w]`, or `spec` of one that stands alone."""
    if not component.startswith(_SERVICES):
        return component
    return f"spec.services[{component.removeprefix(_SERVICES)}]"
