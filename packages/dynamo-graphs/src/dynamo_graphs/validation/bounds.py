"""What is checked before anything else: how large an object is, and after how many problems a judgement ends.

All other rules may repeat the name of a service in each of their messages and compare names with each other,
because the names are few and short once these rules have passed.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import msgspec

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import MOST_SERVICES, DynamoGraphDeployment
from dynamo_graphs.api.names import SUBDOMAIN_LIMIT
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

MOST_PROBLEMS: Final = 100
"""Most problems that are reported; a refusal of the webhooks shows no more."""

MOST_REPLICAS: Final = 2**31 - 1
"""What the API server takes as the replicas of a workload."""

_PART_OF_A_GRAPH: Final = 8
_LONGEST_ORDER: Final = 100
"""Four times the most services that a graph may have."""
_order: Final = attrgetter("path", "message", "kind")
"""As problems compare with each other, in a tenth of the time."""
_SERVICES: Final = "spec.services"
_ORDER: Final = "spec.restart.strategy.order"


def first_problems(problems: Iterable[Problem], most: int) -> tuple[Problem, ...]:
    """The problems, sorted by path; of more than `most` the first, and one more that reports the cut."""
    first = list(islice(problems, most + 1))
    if len(first) <= most:
        return tuple(sorted(first, key=_order))
    more = Problem("spec", f"more than {most} problems; the others are not listed")
    return (*sorted(first[: most - 1], key=_order), more)


def counted(problems: Iterable[Problem]) -> Generator[Problem, None, int]:
    """The problems as they come; what the generator returns is their number."""
    number = 0
    for number, problem in enumerate(problems, 1):  # noqa: B007  # the last one is returned
        yield problem
    return number


def graph_size_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Report what is too many or too long to validate one by one, in constant time."""
    if len(graph.metadata.name) > SUBDOMAIN_LIMIT:
        yield Problem("metadata.name", _too_long("a name", SUBDOMAIN_LIMIT))
    services = graph.spec.services
    if len(services) > MOST_SERVICES:
        message = f"must have at most {MOST_SERVICES} services, got {len(services)}"
        yield Problem(_SERVICES, message)
    elif any(len(name) > SUBDOMAIN_LIMIT for name in services):
        yield Problem(_SERVICES, _too_long("the name of a service", SUBDOMAIN_LIMIT))
    strategy = graph.spec.restart.strategy if graph.spec.restart else None
    order = strategy.order if strategy else ()
    if len(order) > _LONGEST_ORDER:
        yield Problem(_ORDER, f"{len(order)} entries for {len(services)} services")
    elif any(len(name) > SUBDOMAIN_LIMIT for name in order):
        yield Problem(_ORDER, _too_long("the name of a service", SUBDOMAIN_LIMIT))


def _too_long(subject: str, limit: int) -> str:
    return f"{subject} must have at most {limit} characters"


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
