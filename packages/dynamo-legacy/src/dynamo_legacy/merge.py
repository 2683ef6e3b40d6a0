"""What wins: overrides over what a graph says, and variables of a service over those of all."""

from collections.abc import Iterable, Mapping
from typing import Any

from kube_runtime.kind import Object


def merge_patched(value: object, patch: object) -> Any:
    """The value with a JSON merge patch (RFC 7396) in effect; neither is changed.

    A key that is in the patch wins, with false, 0 and "" as well; null removes the key.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged: Object = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patched(merged.get(name), change)
    return merged


def merged_variables(common: Iterable[Object], specific: Iterable[Object]) -> list[Object]:
    """One entry for each name: the common ones, then those of the service, which win in their place.

    The order is kept, since a variable may refer to those before it.
    """
    own = {entry.get("name"): entry for entry in specific}
    both = {entry.get("name"): own.get(entry.get("name"), entry) for entry in common} | own
    return list(both.values())


def first_of_each_name(entries: Iterable[Object]) -> list[Object]:
    """The first entry of each name, in their order."""
    first: dict[str | None, Object] = {}
    for entry in entries:
        first.setdefault(entry.get("name"), entry)
    return list(first.values())
