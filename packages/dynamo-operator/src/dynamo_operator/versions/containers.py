"""Containers: the one named `main`, what is laid over what, and which ones are the same."""

from collections.abc import Iterable, Sequence
from typing import Final

from dynamo_operator.versions.parts import without
from dynamo_operator.versions.resources import comparable_resources
from kube_runtime.types.meta import Fields, Object

MAIN: Final = "main"
"""Name of the container that gets the operator's defaults."""
SIDECAR: Final = "sidecar-frontend"
"""Name of the container that the field `frontendSidecar` of v1alpha1 becomes."""
PROBES: Final = ("livenessProbe", "readinessProbe")
"""Probes that a service of v1alpha1 has fields for."""

_ZERO: Final[tuple[object, ...]] = (None, "", 0, False, [])


def name_of(container: Fields) -> str:
    """The name of a container or variable; "" if it has none."""
    name: str = container.get("name", "")
    return name


def named(containers: Iterable[Object], name: str) -> Object | None:
    """The first container of that name."""
    return next((container for container in containers if name_of(container) == name), None)


def by_name(containers: Sequence[Object]) -> dict[str, Object]:
    """The first container of each name."""
    return {name_of(container): container for container in reversed(containers)}


def containers_of(template: Fields) -> list[Object]:
    """The containers of a pod template."""
    containers: list[Object] = template.get("spec", {}).get("containers", [])
    return containers


def main_and_others(containers: list[Object]) -> tuple[Object | None, list[Object]]:
    """The first container named `main`, and the others."""
    for index, container in enumerate(containers):
        if name_of(container) == MAIN:
            return container, [*containers[:index], *containers[index + 1 :]]
    return None, containers


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
    result = laid_over(dedicated, without(container, "name"))
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
