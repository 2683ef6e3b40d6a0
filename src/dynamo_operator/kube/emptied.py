"""Maps that are to become empty, which a server-side apply cannot do in one step.

An apply takes away the fields that we applied before and do not apply any more. When these are all that a
map has, the API server makes it null and not `{}`, although `{}` is what we apply, and a custom resource's
schema refuses null (measured on v1.36). So the map is first left out, which removes it, and then applied.
"""

from typing import Any

from dynamo_operator.kube.contained import LIST_KEYS, identity


def without_emptied(wanted: Any, live: Any, field: str = "") -> Any:
    """`wanted` without the maps that are empty in it and not empty in `live`; `field` is the name above them.

    Equal to `wanted` if there is no such map.
    """
    if isinstance(wanted, dict) and isinstance(live, dict):
        return {
            name: without_emptied(value, live.get(name), name)
            for name, value in wanted.items()
            if not (value == {} and isinstance(live.get(name), dict) and live[name])
        }
    keys = LIST_KEYS.get(field)
    if keys is None or not isinstance(wanted, list) or not isinstance(live, list):
        return wanted
    theirs = {identity(item, keys): item for item in live if isinstance(item, dict)}
    return [
        without_emptied(item, theirs.get(identity(item, keys))) if isinstance(item, dict) else item
        for item in wanted
    ]
