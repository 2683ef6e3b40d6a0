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
    found: Object = dict(value) if isinstance(value, Mapping) else {}
    for name, each in patch.items():
        if each is None:
            found.pop(name, None)
        else:
            found[name] = merge_patched(found.get(name), each)
    return found


def merged_variables(common: Iterable[Object], specific: Iterable[Object]) -> list[Object]:
    """One entry for each name: the common ones, then those of the service, which win in their place.

    The order is kept, since a variable may refer to those before it.
    """
    own = {each.get("name"): each for each in specific}
    both = {each.get("name"): own.get(each.get("name"), each) for each in common} | own
    return list(both.values())
