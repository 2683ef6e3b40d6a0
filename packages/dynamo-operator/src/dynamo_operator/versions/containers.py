"""Containers: the one named `main`, what is laid over what, and which ones are the same."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dynamo_operator.versions.resources import comparable_resources
from kube_runtime.types.meta import Fields, Object

MAIN: Final = "main"
"""Name of the container that gets the operator's defaults."""
SIDECAR: Final = "sidecar-frontend"
"""Name of the container that the field `frontendSidecar` of v1alpha1 becomes."""
PROBES: Final = ("livenessProbe", "readinessProbe")

_ZERO: Final[tuple[object, ...]] = (None, "", 0, False, [])


class Place(NamedTuple):
    """What tells the mounts of a container apart."""

    volume: str
    path: str


def place_of(mount: Fields) -> Place:
    """Where a container's mount is."""
    return Place(mount.get("name", ""), mount.get("mountPath", ""))


def name_of(container: Fields) -> str:
    """The name of a container or variable; "" if it has none."""
    name: str = container.get("name", "")
    return name


def named(containers: Iterable[Object], name: str) -> Object | None:
    """The first container of that name."""
    return next((container for container in containers if name_of(container) == name), None)


def containers_of(template: Fields) -> list[Object]:
    """The containers of a pod template."""
    containers: list[Object] = template.get("spec", {}).get("containers", [])
    return containers


def has_more_than_a_name(container: Fields) -> bool:
    """Whether a container has another field."""
    return bool(container.keys() - {"name"})


def laid_over(base: Object, over: Object) -> Object:
    """An object with another laid over it: zero values change nothing, objects merge, all else replaces."""
    result = {**base}
    for name, value in over.items():
        below = result.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            result[name] = laid_over(below, value)
        elif name not in result or value not in _ZERO:
            result[name] = value
    return result


def merged(dedicated: Object, container: Object) -> Object:
    """The fields that a service has for `main`, with its `mainContainer` laid over them.

    Variables are replaced in place or appended, and all mounts stay, those of the container first.
    """
    result = laid_over(dedicated, {name: value for name, value in container.items() if name != "name"})
    if env := merged_env(dedicated.get("env", []), container.get("env", [])):
        result["env"] = env
    if mounts := [*container.get("volumeMounts", []), *dedicated.get("volumeMounts", [])]:
        result["volumeMounts"] = mounts
    return result


def merged_env(env: Sequence[Object], over: Sequence[Object]) -> list[Object]:
    """Variables in their order; those of `over` replace others of the same name."""
    result = [*env]
    index = {name_of(variable): at for at, variable in enumerate(env)}
    for variable in over:
        at = index.setdefault(name_of(variable), len(result))
        result[at : at + 1] = [variable]
    return result


def env_from_secret(secret: str | None) -> list[Object]:
    """The sources of variables that the name of a Secret stands for; "" and None are none."""
    return [{"secretRef": {"name": secret}}] if secret else []


def secret_of(sources: Sequence[Object]) -> str | None:
    """The name of the Secret that is the only source of variables, with nothing else said of it."""
    if len(sources) != 1 or sources[0].keys() != {"secretRef"}:
        return None
    secret: str | None = sources[0]["secretRef"].get("name")
    return secret


def comparable(container: Object) -> Object:
    """A container with its quantities in canonical form."""
    resources = container.get("resources")
    return {**container, "resources": comparable_resources(resources)} if resources else container


class Mounts:
    """The mounts of a container, to be looked up by their place, or by a volume that is mounted once."""

    def __init__(self, mounts: Sequence[Object]) -> None:
        self._at = {place_of(mount): mount for mount in reversed(mounts)}
        counts = Counter(name_of(mount) for mount in mounts)
        self._only = {name_of(mount): mount for mount in mounts if counts[name_of(mount)] == 1}

    def __contains__(self, place: object) -> bool:
        return place in self._at

    def like(self, mount: Fields) -> Object | None:
        """The mount at the same place, or else the only one of the same volume."""
        return self._at.get(place_of(mount)) or self._only.get(name_of(mount))


def mounts_of(container: Fields | None) -> list[Object]:
    """The mounts of a container, if there is one."""
    mounts: list[Object] = (container or {}).get("volumeMounts", [])
    return mounts
