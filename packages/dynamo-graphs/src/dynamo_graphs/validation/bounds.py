"""Bounds on the size of objects and on the number of problems that a validation reports.

`graph_size_problems` comes before all other rules. Once it passes, names are few and short, so the others may
compare them with each other and repeat them in each message.
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
"""Most problems that a validation reports."""

MOST_REPLICAS: Final = 2**31 - 1
"""Most replicas of a workload that the API server accepts."""

_PART_OF_A_GRAPH: Final = 8
_LONGEST_ORDER: Final = 100
"""Four times the most services that a graph may have."""
_order: Final = attrgetter("path", "message", "kind")
"""The order of problems; sorting by it takes a tenth of the time of comparing them."""
_SERVICES: Final = "spec.services"
_ORDER: Final = "spec.restart.strategy.order"


def first_problems(problems: Iterable[Problem], most: int) -> tuple[Problem, ...]:
    """The problems, sorted by path; of more than `most`, the first ones and one that reports the cut."""
    first = list(islice(problems, most + 1))
    if len(first) <= most:
        return tuple(sorted(first, key=_order))
    more = Problem("spec", f"more than {most} problems; the others are not listed")
    return (*sorted(first[: most - 1], key=_order), more)


def counted(problems: Iterable[Problem]) -> Generator[Problem, None, int]:
    """Yield the problems as they come, then return their number."""
    number = 0
    for number, problem in enumerate(problems, 1):  # noqa: B007  # the last one is returned
        yield problem
    return number


def graph_size_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Report a graph with too many services or too long names."""
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
        yield Problem(
            _ORDER,
            f"too many entries: {len(order)} (expected one for each of {len(services)} services)",
        )
    elif any(len(name) > SUBDOMAIN_LIMIT for name in order):
        yield Problem(_ORDER, _too_long("the name of a service", SUBDOMAIN_LIMIT))


def _too_long(subject: str, limit: int) -> str:
    return f"{subject} must have at most {limit} characters"


def most_bytes(type_: type[Resource], settings: RenderSettings) -> int:
    """Most bytes of an object of that kind; 0 means no limit.

    A component may have an eighth more than a graph. The operator adds labels and owners to what the graph
    specifies, and a valid graph must not lead to a component that is too large.
    """
    most = settings.largest_object_bytes
    return most + most // _PART_OF_A_GRAPH if type_ is DynamoComponentDeployment else most


def weight_bytes(owner: Resource) -> int:
    """About the bytes to render for an object; variables that services share count once per service."""
    spec: Any = getattr(owner, "spec", None)
    size = len(msgspec.json.encode(spec))
    metadata = len(msgspec.json.encode((owner.metadata.labels, owner.metadata.annotations)))
    if isinstance(owner, DynamoGraphDeployment) and len(owner.spec.services) > 1 and spec.envs:
        size += len(msgspec.json.encode(spec.envs)) * (len(spec.services) - 1)
    return size + metadata


def shared_size_problems(
    variables: Sequence[Object], services: int, settings: RenderSettings
) -> Iterator[Problem]:
    """Report shared variables that are too large together, as each component has a copy of them."""
    most, size = settings.largest_object_bytes, len(msgspec.json.encode(variables))
    if variables and most and size * services > most:
        total = f"{size} bytes in each of {services} services, {size * services} in total"
        text = f"variables are too large: {total} (limit {most})"
        yield Problem("spec.envs", text)
