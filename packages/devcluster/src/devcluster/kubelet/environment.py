"""The environment of a container, from its `env` and `envFrom`. Pure but for what it is given to read."""

import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from kube_runtime.errors import OperatorError
from kube_runtime.types.meta import Object

_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z_.-][A-Za-z0-9_.-]*)\))")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")

Read = Callable[[str, str], Awaitable[Object | None]]
"""Kind (`Secret`, `ConfigMap`) and name → the object of the pod's namespace; None without it."""


class MissingReference(OperatorError):
    """What the environment of a container refers to does not exist."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What fields of a pod an environment may refer to, by their paths."""

    fields: Mapping[str, str]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    def field(self, path: str) -> str:
        """The value at a path. Raises: MissingReference."""
        if keyed := _KEYED.fullmatch(path):
            return (self.labels if keyed[1] == "labels" else self.annotations).get(keyed[2], "")
        try:
            return self.fields[path]
        except KeyError:
            raise MissingReference(f'fieldPath "{path}" is not supported') from None


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` replaced by the variable's value, `$$` by `$`; an unknown name stays."""

    def value(reference: re.Match[str]) -> str:
        return "$" if reference[2] is None else variables.get(reference[2], reference[0])

    return _REFERENCE.sub(value, text)


async def environment(container: Object, facts: Facts, read: Read) -> dict[str, str]:
    """All variables of a container. Raises: MissingReference, and what `read` raises."""
    variables: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        for kind, reference in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            if reference in source:
                content = await _content(kind, source[reference], read)
                prefix = source.get("prefix", "")
                variables |= {f"{prefix}{key}": value for key, value in content.items()}
    for variable in container.get("env", ()):
        name = variable["name"]
        if source := variable.get("valueFrom"):
            value = await _value(source, container, facts, read)
            if value is not None:
                variables[name] = value
        else:
            variables[name] = expanded(variable.get("value", ""), variables)
    return variables


async def _value(source: Object, container: Object, facts: Facts, read: Read) -> str | None:
    if reference := source.get("fieldRef"):
        return facts.field(reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        side, _, resource = reference["resource"].partition(".")
        return str((container.get("resources") or {}).get(side, {}).get(resource, "0"))
    for kind, field in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if reference := source.get(field):
            content = await _content(kind, reference, read)
            if reference["key"] in content:
                return content[reference["key"]]
            if not reference.get("optional"):
                name = reference["name"]
                raise MissingReference(f"couldn't find key {reference['key']} in {kind} {name}")
    return None


async def _content(kind: str, reference: Object, read: Read) -> dict[str, str]:
    body = await read(kind, reference.get("name", ""))
    if body is None:
        if reference.get("optional"):
            return {}
        raise MissingReference(f'{kind.lower()} "{reference.get("name", "")}" not found')
    data: Mapping[str, str] = body.get("data") or {}
    if kind == "ConfigMap":
        return dict(data)
    return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in data.items()}
