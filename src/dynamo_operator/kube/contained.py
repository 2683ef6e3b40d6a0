"""Whether a live object still says what we applied.

The API server fills in defaults, other managers add fields of their own, and both leave what we wrote
in place. So the question is not "equal" but "contained": every value that we want is there. The hard
part is lists: items of an associative list may stand beside items of others, any other list is one value.
"""

from typing import Any

import msgspec

from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.quantity import amount
from dynamo_operator.kube.types.meta import Resource

# Source: `x-kubernetes-list-map-keys` of these fields in the API server's OpenAPI, v1.36.
LIST_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "port", "protocol"),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "ownerReferences": ("uid",),
}
_QUANTITIES = frozenset(("limits", "requests", "sizeLimit", "storage", "divisor"))


def contained(wanted: Any, live: Any, field: str = "") -> bool:
    """Whether `live` holds every value of `wanted`; both are plain JSON, `field` is the name above them."""
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return not wanted and not live
        quantities = field in _QUANTITIES
        return all(
            contained(value, live.get(name), field if quantities else name)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return _list_contained(list(wanted), live, field)
    if wanted == live and type(wanted) is type(live):
        return True
    if live is None:
        return not wanted  # the API server leaves out zero values
    return field in _QUANTITIES and _same_amount(wanted, live)


def _list_contained(wanted: list[Any], live: Any, field: str) -> bool:
    if not isinstance(live, list):
        return not wanted and not live
    keys = LIST_KEYS.get(field)
    if keys is None or not all(isinstance(item, dict) for item in (*wanted, *live)):
        return len(wanted) == len(live) and all(map(contained, wanted, live))
    theirs = {identity(item, keys): item for item in live}
    ours = [identity(item, keys) for item in wanted]
    order = [identity for identity in theirs if identity in set(ours)]
    return order == ours and all(
        contained(item, theirs[identity]) for item, identity in zip(wanted, ours, strict=True)
    )


def identity(item: dict[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    """What tells an item of an associative list from the others."""
    defaults = {"protocol": "TCP"}
    return tuple(item.get(key, defaults.get(key)) for key in keys)


def _same_amount(wanted: Any, live: Any) -> bool:
    if not isinstance(wanted, str | int) or not isinstance(live, str | int):
        return False
    left, right = amount(wanted), amount(live)
    return left is not None and left == right


def content(body: Object) -> Object:
    """Everything that an object to be applied sets, but for what names and guards it."""
    rest = {name: value for name, value in body.items() if name not in _NAMING}
    return {**rest, "metadata": _claims(body["metadata"])}


def content_of(live: Resource) -> Object:
    """A live object as plain JSON, without its status and without what the API server counts."""
    body: Object = msgspec.json.decode(msgspec.json.encode(live))
    body.pop("status", None)
    return {**body, "metadata": _claims(body.get("metadata", {}))}


_NAMING = frozenset(("apiVersion", "kind", "metadata"))


def _claims(metadata: Object) -> Object:
    names = ("labels", "annotations", "ownerReferences")
    return {name: metadata[name] for name in names if name in metadata}
