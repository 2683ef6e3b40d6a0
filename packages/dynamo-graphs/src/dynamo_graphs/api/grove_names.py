"""Names of what Grove creates for a graph, short enough for Grove.

Grove joins the names of set, scaling group and clique in the names of pods, and refuses more than 45
characters in all. Shortening must never rename later: a graph whose names fit keeps them, a service is
shortened before the set is, and the set only when a service could not fit beside it. The same graph always
gives the same names. Source: Grove v1alpha1, admission of PodCliqueSets (the limit of 45 and how it is
counted).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import HASH_LENGTH, shortened

COMBINED_LIMIT = 45
LEADER_SUFFIX = "-ldr"
WORKER_SUFFIX = "-wkr"
_SHORTEST = HASH_LENGTH + 1
_SET_LIMIT = COMBINED_LIMIT - 2 * _SHORTEST - len(LEADER_SUFFIX)
"""What every service leaves to the set, spread over nodes or not, when it is shortened itself."""


@dataclass(frozen=True, slots=True)
class GangNames:
    """The name of a graph's PodCliqueSet, and the part of each service in names under it."""

    set: str
    services: Mapping[str, str]

    def child(self, service: str) -> str:
        """The name of a service's PodClique or PodCliqueScalingGroup, which Grove creates."""
        return f"{self.set}-0-{self.services[service]}"


def gang_names_of(graph: DynamoGraphDeployment) -> GangNames:
    """The names of a graph's PodCliqueSet and of what is under it."""
    return gang_names(
        graph.metadata.name,
        {key: service.nodes > 1 for key, service in graph.spec.services.items()},
    )


def gang_names(graph: str, services: Mapping[str, bool]) -> GangNames:
    """The names for a graph with these services; the values are whether each is multinode."""
    whole = shortened(graph, COMBINED_LIMIT)
    fits = all(
        _fits(whole, key, is_multinode=is_multinode) for key, is_multinode in services.items()
    )
    chosen = whole if fits else shortened(graph, _SET_LIMIT)
    return GangNames(
        chosen,
        {
            key: shortened(key, _room(chosen, is_multinode=is_multinode))
            for key, is_multinode in services.items()
        },
    )


def _fits(set_name: str, key: str, *, is_multinode: bool) -> bool:
    room = _room(set_name, is_multinode=is_multinode)
    return room >= _SHORTEST or len(shortened(key, COMBINED_LIMIT)) <= room


def _room(set_name: str, *, is_multinode: bool) -> int:
    """What the set leaves to the name of a service, which a scaling group and its cliques share."""
    room = COMBINED_LIMIT - len(set_name)
    return (room - len(LEADER_SUFFIX)) // 2 if is_multinode else room
