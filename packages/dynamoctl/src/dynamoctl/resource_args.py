"""Which object a command line means: `chat` or `dgd/chat`, with every name of a kind that kubectl takes."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from cyclopts import CycloptsError

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.status.readiness import Stated
from kube_runtime.types.meta import Resource

S = TypeVar("S", bound=Stated)

NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
"""What the API server takes as a name. Anything else would be another path of its URL."""

GRAPHS = (DynamoGraphDeployment,)
STATED: tuple[type[Stated], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentScalingAdapter,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)

NOUNS: Mapping[type[Resource], str] = {
    DynamoGraphDeployment: "graph",
    DynamoComponentDeployment: "component",
    DynamoGraphDeploymentScalingAdapter: "scaling adapter",
    DynamoModel: "model",
    DynamoGraphDeploymentRequest: "request",
}


def named(text: str, types: tuple[type[S], ...]) -> tuple[type[S], str]:
    """The type and the name of the object; without a type the first one is meant.

    Raises:
        CycloptsError: it is another kind, or no name.
    """
    kind, slash, name = text.rpartition("/")
    if not NAME.fullmatch(name) or "/" in kind or (slash and not kind):
        raise CycloptsError(
            f"invalid name {text!r} (expected NAME or KIND/NAME, for example dgd/chat)"
        )
    if not slash:
        return types[0], name
    return type_named(kind, types), name


def type_named(kind: str, types: tuple[type[S], ...]) -> type[S]:
    """The type by any name that kubectl takes for its kind.

    Raises: CycloptsError.
    """
    found = next((each for each in types if kind.lower() in _names(each)), None)
    if found is None:
        known = ", ".join(each.DEFINITION.short_names[0] for each in types)
        raise CycloptsError(f"unsupported kind {kind!r} (expected one of {known})")
    return found


def _names(type_: Any) -> set[str]:
    kind, definition = type_.KIND, type_.DEFINITION
    full = {kind.name.lower(), kind.plural}
    grouped = {
        f"{each}{version}.{kind.group}" for each in full for version in ("", f".{kind.version}")
    }
    return {*definition.short_names, *full, *grouped}
