"""Fields that this operator stores and does not act on. Acting on one removes its entry here."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.graph.api import DynamoGraphDeploymentSpec
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Struct

INERT: Final[Mapping[type[Struct], tuple[str, ...]]] = {
    ComponentSpec: (
        "checkpoint",
        "failover",
        "frontendSidecar",
        "gpuMemoryService",
        "minAvailable",
        "topologyConstraint",
    ),
    DynamoGraphDeploymentSpec: ("experimental.kvTransferPolicy", "priorityClassName", "topologyConstraint"),
    DynamoGraphDeploymentRequestSpec: ("runtimeVersionOverride",),
}
"""The fields by the struct that has them, in v1alpha1. `docs/compatibility.md` lists them, too."""


def inert_warnings(spec: Struct, path: str) -> Iterator[Problem]:
    """Warn of each such field that the spec at `path` sets. One that is switched off is not reported."""
    for type_, fields in INERT.items():
        for field in fields if isinstance(spec, type_) else ():
            value = _value(spec, field)
            if value is None or (isinstance(value, Mapping) and value.get("enabled") is False):
                continue
            yield inert(f"{path}.{field}")


def inert(path: str) -> Problem:
    """The warning about one such field."""
    return Problem(path, "is stored, but this operator does not act on it")


def _value(spec: Struct, field: str) -> Any:
    first, *rest = field.split(".")
    value = getattr(spec, _attributes(type(spec))[first])
    for name in rest:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


@cache
def _attributes(struct: type[Struct]) -> dict[str, str]:
    """The attribute of each field by its name on the wire."""
    return {field.encode_name: field.name for field in msgspec.structs.fields(struct)}
