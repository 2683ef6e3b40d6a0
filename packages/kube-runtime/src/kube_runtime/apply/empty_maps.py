"""Maps that are to become empty, which a server-side apply cannot do in one step.

An apply takes away the fields that we applied before and do not apply any more. When these are all that a
map has, the API server makes it null and not `{}`, although `{}` is what we apply, and a custom resource's
schema refuses null (measured on v1.36). So the map is first left out, which removes it, and then applied.
"""

from typing import Any

from kube_runtime.apply.merge_schema import FieldSchema, field_of, identity
from kube_runtime.kind import Object


def without_emptied(wanted: Object, live: Object) -> Object:
    """`wanted` without the maps that are empty in it and not empty in `live`.

    Equal to `wanted` if there is no such map.
    """
    found: Object = _without(wanted, live, field_of(wanted))
    return found


def _without(wanted: object, live: object, field: FieldSchema) -> Any:
    if isinstance(wanted, dict) and isinstance(live, dict):
        return {
            name: _without(value, live.get(name), field.child(name))
            if isinstance(value, dict | list)  # looking up what a field is costs more than all else
            else value
            for name, value in wanted.items()
            if not (value == {} and isinstance(live.get(name), dict) and live[name])
        }
    keys = field.keys
    if not keys or not isinstance(wanted, list) or not isinstance(live, list):
        return wanted
    items = field.items
    theirs = {identity(item, keys): item for item in live if isinstance(item, dict)}
    return [
        _without(item, theirs.get(identity(item, keys)), items) if isinstance(item, dict) else item
        for item in wanted
    ]
