"""How each service runs now, and its desired replicas from all sources that set them.

Highest precedence first: a suspended graph, the service's scaling adapter, the graph's factor on the number
in the spec. The number in the spec is ignored while an adapter is there, so the two cannot compete for one
service.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from dynamo_graphs.api.component import is_under_factor
from dynamo_graphs.api.deployment_config import base_replicas
from dynamo_graphs.api.graph import DynamoGraphDeployment
from kube_runtime.types.meta import condition


@dataclass(frozen=True, slots=True)
class ServiceObserved:
    """What the API server holds of a service's workload.

    `exists` is whether there is one. `restart` is the id of the restart that its newest template carries,
    "" for none. `is_ready` is whether it runs that template only, in the desired number. `desired`
    is the number of replicas that it asks for, `replicas` how many exist, `ready` how many serve.
    `is_paused` is whether its component is paused, so that nothing is done for it.
    `is_current` is whether these counts are about the newest spec: until its controllers have seen that, a
    workload with 0 replicas may be about to have some.
    """

    exists: bool = False
    restart: str = ""
    is_ready: bool = False
    desired: int = 0
    replicas: int = 0
    ready: int = 0
    is_paused: bool = False
    is_current: bool = True


Observed: TypeAlias = Mapping[str, ServiceObserved]
"""By the keys of the services; a service without a workload may be missing."""


def effective_replicas(
    graph: DynamoGraphDeployment, adapters: Mapping[str, int], zero: Collection[str]
) -> dict[str, int | None]:
    """The replicas of each service; `adapters` are what scaling adapters say, `zero` is suspended.

    None if no source sets a number and the operator never wrote one for the service: its workload may have
    any. Once the operator has written one it keeps setting it, or the service would keep its last size.
    """
    return {
        key: 0 if key in zero else adapters.get(key, _own(graph, key))
        for key in graph.spec.services
    }


def _own(graph: DynamoGraphDeployment, key: str) -> int | None:
    service, factor = graph.spec.services[key], graph.spec.replicas
    if factor is not None and is_under_factor(service):
        return base_replicas(graph, key) * factor
    was_suspended = condition(graph.status.conditions, "Suspended") is not None
    return base_replicas(graph, key) if was_suspended else service.replicas


def sized(graph: DynamoGraphDeployment) -> DynamoGraphDeployment:
    """The graph with the number of replicas in every service, also where the user leaves it out."""
    services = {
        key: msgspec.structs.replace(service, replicas=base_replicas(graph, key))
        for key, service in graph.spec.services.items()
    }
    spec = msgspec.structs.replace(graph.spec, services=services)
    return msgspec.structs.replace(graph, spec=spec)


@dataclass(frozen=True, slots=True)
class GraphScale:
    """What the scale subresource of a graph is about: the factor that is reached.

    `covered` are the services under it, each with the most replicas that it has or shall have.
    """

    replicas: int
    covered: Mapping[str, int]


def graph_scale(graph: DynamoGraphDeployment, observed: Observed) -> GraphScale:
    """The factor that all services under it have reached."""
    desired = 1 if graph.spec.replicas is None else graph.spec.replicas
    reached, covered = [], {}
    for key, service in sorted(graph.spec.services.items()):
        if not is_under_factor(service):
            continue
        base, present = base_replicas(graph, key), observed.get(key, ServiceObserved()).replicas
        covered[key] = max(base * desired, present)
        if base:
            reached.append(present // base)
    return GraphScale(min(reached, default=desired), covered)
