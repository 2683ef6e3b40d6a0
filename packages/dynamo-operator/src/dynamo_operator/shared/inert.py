"""Fields that this operator stores and does not act on. Acting on one removes its entry here."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.graph.api import DynamoGraphDeploymentSpec
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Fields, Struct

INERT: Final[Mapping[type[Struct], tuple[str, ...]]] = {
    ComponentSpec: ("checkpoint", "failover", "frontendSidecar", "gpuMemoryService"),
    DynamoGraphDeploymentSpec: ("experimental.kvTransferPolicy",),
}
"""The fields by the struct that has them, in v1alpha1. `docs/compatibility.md` lists them, too."""

_ATTRIBUTES: Final = {
    struct: dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))
    for struct in INERT
}
"""The attribute of each field by its name on the wire."""

INERT_COMPONENT: Final = ("frontendSidecar", "experimental.grove.forceScalingGroup")
"""Such fields of a component that only v1beta1 has."""


def inert_warnings(spec: Struct, path: str) -> Iterator[Problem]:
    """Warn of each such field that the spec at `path` sets. One that is switched off is not reported."""
    for type_, fields in INERT.items():
        for field in fields if isinstance(spec, type_) else ():
            first, _, rest = field.partition(".")
            value = getattr(spec, _ATTRIBUTES[type_][first])
            value = inside(value, rest) if value and rest else value
            if value is None or (isinstance(value, Mapping) and value.get("enabled") is False):
                continue
            yield inert(f"{path}.{field}")


def written_inert_warnings(spec: Fields, fields: Iterable[str], path: str) -> Iterator[Problem]:
    """Warn of each of these fields that the spec at `path`, in v1beta1, sets."""
    for field in fields:
        if inside(spec, field) not in (None, False):
            yield inert(f"{path}.{field}")


def inside(value: Any, path: str) -> Any:
    """The value at a path of fields below the value; None where there is none."""
    for field in path.split("."):
        value = value.get(field) if isinstance(value, Mapping) else None
    return value


def inert(path: str) -> Problem:
    """The warning about one such field."""
    return Problem(path, "is stored, but this operator does not act on it")
