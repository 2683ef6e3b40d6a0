"""JSON values of rendered objects: merging the user's settings over defaults, and a canonical form.

Values are plain JSON, so that unknown fields survive. 0 and false count as set; null, "" and empty lists
do not, since typed clients write them for unset fields. Lists are replaced, not merged. A probe with its
own handler drops that of the default.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dynamo_graphs.api.component import ResourceItem, Resources
from dynamo_graphs.api.devices import GPU
from kube_runtime.kind import Object
from kube_runtime.quantity import amount

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(Object)

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
"""Handlers of a probe, which has exactly one."""


def canonical(desired: Object) -> Object:
    """Return a deep copy with the keys of every map sorted.

    Encoding and decoding JSON is ten times as fast as sorting map by map.
    """
    return _DECODER.decode(_ENCODER.encode(desired))


def pruned(value: object) -> Any:
    """Copy the value without nulls and empty lists."""
    if isinstance(value, Mapping):
        kept = {name: pruned(child) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child is not None and child != []}
    if isinstance(value, list | tuple):
        return [pruned(child) for child in value if child is not None]
    return value


def merged(default: object, user: object) -> Any:
    """Merge the user's value over the default."""
    if user is None or user in ("", []):
        return default
    if isinstance(default, Mapping) and isinstance(user, Mapping):
        both = {name: merged(value, user.get(name)) for name, value in default.items()}
        return both | {name: value for name, value in user.items() if name not in default}
    return user


def has_handler(probe: Object) -> bool:
    """Whether the probe has a handler, and not only periods and thresholds."""
    return any(probe.get(name) is not None for name in HANDLERS)


def merged_probe(default: Object, user: Object) -> Object:
    """Merge the user's probe over the default; the user's handler replaces another kind of handler."""
    handlers = [name for name in HANDLERS if user.get(name) is not None]
    if not handlers:
        return dict(merged(default, user))
    rest = {name: value for name, value in default.items() if name not in HANDLERS}
    kept = {name: default[name] for name in handlers if name in default}
    return dict(merged(rest | kept, user))


def merged_environment(low: Iterable[Object], high: Iterable[Object]) -> list[Object]:
    """Merge variables by name, sorted; `high` wins, and within a list the last entry."""
    entries = {entry["name"]: entry for entry in (*low, *high)}
    return [entries[name] for name in sorted(entries)]


def variable(name: str, value: str) -> Object:
    """An environment variable; an empty value is omitted, as the API server does."""
    return {"name": name, "value": value} if value else {"name": name}


def variable_of_field(name: str, path: str) -> Object:
    """An environment variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resources(short: Resources | None) -> Object:
    """Convert the short form to resources of a container; {} if it is empty.

    A GPU request that repeats the limit is omitted, as the Go operator does, so that templates stay the same.
    """
    if short is None:
        return {}
    requests, limits = short.requests or ResourceItem(), short.limits or ResourceItem()
    gpu = requests.gpu_type or limits.gpu_type or GPU
    upper = _side(limits, limits.gpu_type or requests.gpu_type or GPU)
    lower = _side(requests, gpu)
    if requests.gpu and gpu not in requests.custom and _is_amount(lower[gpu], upper.get(gpu)):
        del lower[gpu]
    sides: Object = {"requests": lower, "limits": upper, "claims": list(short.claims)}
    return {name: value for name, value in sides.items() if value}


def with_device_limits(requirements: Object) -> Object:
    """Add a limit for every device that is only requested.

    Kubernetes cannot overcommit devices: a request requires an equal limit, and a limit alone is also
    the request.
    """
    requests: Mapping[str, object] = requirements.get("requests", {})
    limits: Mapping[str, object] = requirements.get("limits", {})
    missing = {
        name: value
        for name, value in requests.items()
        if name not in limits and cannot_be_overcommitted(name)
    }
    return {**requirements, "limits": {**limits, **missing}} if missing else requirements


def cannot_be_overcommitted(name: str) -> bool:
    """Whether Kubernetes requires request and limit to be equal: for devices and huge pages."""
    is_native = "/" not in name or "kubernetes.io/" in name
    return name.startswith("hugepages-") if is_native else not name.startswith("requests.")


def _is_amount(request: str, limit: str | None) -> bool:
    return limit is not None and (request == limit or amount(request) == amount(limit))


def _side(item: ResourceItem, gpu: str) -> dict[str, str]:
    fixed = {"cpu": item.cpu, "memory": item.memory, gpu: item.gpu}
    return {name: value for name, value in (fixed | item.custom).items() if value}
