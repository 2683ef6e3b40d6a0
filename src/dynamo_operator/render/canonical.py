"""One order for all maps: equal wishes are equal bytes however the user wrote them."""

from typing import Any

from dynamo_operator.kube.kind import Object


def canonical(wanted: Object) -> Object:
    """The object with every map sorted by key, as a copy that shares nothing."""
    found: Object = _sorted(wanted)
    return found


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted(each) for each in value]
    return value
