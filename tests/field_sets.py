"""Sets of fields in the format FieldsV1 as sets of paths, and entries of `managedFields`, for tests."""

from typing import Any

from hypothesis import strategies as st

from kube_runtime.types.meta import Object

Paths = frozenset[tuple[str, ...]]
names = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
paths = st.frozensets(st.lists(names, min_size=1, max_size=4).map(tuple), max_size=12)


def fields(members: Paths) -> Object:
    """A set of paths in the format FieldsV1."""
    result: dict[str, Any] = {}
    for path in sorted(members, key=len):
        at = result
        for name in path:
            at = at.setdefault(name, {})
    for path in members:
        at = result
        for name in path:
            at = at[name]
        if at:
            at["."] = {}
    return result


def members(found: Object, at: tuple[str, ...] = ()) -> Paths:
    """The paths of a set in the format FieldsV1."""
    result: set[tuple[str, ...]] = set()
    for name, inside in found.items():
        if name == ".":
            result.add(at)
        elif inside:
            result |= members(inside, (*at, name))
        else:
            result.add((*at, name))
    return frozenset(result)


def entry(manager: str, operation: str, owned: Object, **more: str) -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
        **more,
    }
