"""How user settings override a default: pod specs, probes and environments.

The values are plain JSON, so that fields which we do not know survive. A field that is present counts, also
0 and false; null, "" and empty lists do not, since typed clients write them for "not given". A list
replaces a list. A probe that names its own handler loses the default's.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kube_runtime.kind import Object

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
"""The ways a probe can ask; a probe has exactly one."""


def pruned(value: object) -> Any:
    """The value without nulls and empty lists inside, as a copy of its own."""
    if isinstance(value, Mapping):
        kept = {name: pruned(child) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child is not None and child != []}
    if isinstance(value, list | tuple):
        return [pruned(child) for child in value if child is not None]
    return value


def merged(default: object, user: object) -> Any:
    """The default with the user's value laid over it; neither is changed."""
    if user is None or user in ("", []):
        return default
    if isinstance(default, Mapping) and isinstance(user, Mapping):
        both = {name: merged(value, user.get(name)) for name, value in default.items()}
        return both | {name: value for name, value in user.items() if name not in default}
    return user


def has_handler(probe: Object) -> bool:
    """Whether the probe says how to ask, and not only how often."""
    return any(probe.get(name) is not None for name in HANDLERS)


def merged_probe(default: Object, user: Object) -> Object:
    """The default probe with the user's fields; the user's handler replaces another kind."""
    handlers = [name for name in HANDLERS if user.get(name) is not None]
    if not handlers:
        return dict(merged(default, user))
    rest = {name: value for name, value in default.items() if name not in HANDLERS}
    kept = {name: default[name] for name in handlers if name in default}
    return dict(merged(rest | kept, user))


def merged_environment(low: Iterable[Object], high: Iterable[Object]) -> list[Object]:
    """One entry per name, sorted by name; `high` wins, and within one list the later entry."""
    entries = {entry["name"]: entry for entry in (*low, *high)}
    return [entries[name] for name in sorted(entries)]


def variable(name: str, value: str) -> Object:
    """An environment variable with a fixed value; an empty one is left out, as the API server does."""
    return {"name": name, "value": value} if value else {"name": name}


def variable_of_field(name: str, path: str) -> Object:
    """An environment variable that takes its value from the pod itself."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
