"""How many bytes an object of ours may have."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

_PART_OF_A_GRAPH = 8


def most_bytes(type_: type[Resource], settings: RenderSettings) -> int:
    """The limit for objects of that kind; 0 means that there is none.

    A component may have an eighth more: the operator adds labels and owners to what the graph says of it,
    and a graph that is accepted must not lead to a component that is refused.
    """
    most = settings.largest_object_bytes
    return most + most // _PART_OF_A_GRAPH if type_ is DynamoComponentDeployment else most


def weight_bytes(owner: Resource) -> int:
    """About the bytes of what is rendered for an object: what services share counts once for each."""
    spec: Any = getattr(owner, "spec", None)
    size = len(msgspec.json.encode(spec))
    metadata = len(msgspec.json.encode((owner.metadata.labels, owner.metadata.annotations)))
    if isinstance(owner, DynamoGraphDeployment) and len(owner.spec.services) > 1 and spec.envs:
        size += len(msgspec.json.encode(spec.envs)) * (len(spec.services) - 1)
    return size + metadata


def shared_size_problems(
    variables: Sequence[Object], services: int, settings: RenderSettings
) -> Iterator[Problem]:
    """The variables of a graph are in each of its components, which together must not be too large."""
    most, size = settings.largest_object_bytes, len(msgspec.json.encode(variables))
    if variables and most and size * services > most:
        text = f"{size} bytes for each of {services} services make {size * services} (limit {most})"
        yield Problem("spec.envs", text)
