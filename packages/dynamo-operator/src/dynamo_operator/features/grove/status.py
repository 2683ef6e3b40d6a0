"""The services of a graph on Grove, from what Grove created for its PodCliqueSet.

Grove counts pods of an older spec as ready too. So counts describe the desired pods only if Grove has
observed the newest set, a clique has the desired size, and its status describes its newest spec.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.component.diagnosis import UNKNOWN, Diagnosis
from dynamo_operator.component.objects import service_dynamo_namespace
from dynamo_operator.component.service import ServiceView
from dynamo_operator.component.status import diagnosed
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import (
    GROVE,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodCliqueStatus,
)
from dynamo_operator.shared.conditions import unobserved


class GroveMember(msgspec.Struct, frozen=True):
    """A service on Grove: the object that runs it, and its desired replicas.

    `live` is None if the object does not exist yet; `desired` is None if any number is right.
    """

    name: str
    is_group: bool
    live: PodClique | PodCliqueScalingGroup | None
    desired: int | None


def grove_view(
    graph: DynamoGraphDeployment,
    key: str,
    clique_set: PodCliqueSet | None,
    member: GroveMember,
    diagnosis: Diagnosis = UNKNOWN,
) -> ServiceView:
    """A service of the graph."""
    service, live, name = graph.spec.services[key], member.live, graph.metadata.name
    counts = msgspec.structs.replace(
        diagnosed(_replicas(member), diagnosis),
        runtime_namespace=service_dynamo_namespace(graph, service),
        component_names=(member.name,) if live else (),
    )
    # A new scaling group counts its replicas before they are updated; a clique counts pods.
    has_older = isinstance(live, PodClique) and live.status.replicas > live.status.updated_replicas
    replicas = (live.spec.replicas or 0) if live else 0
    return ServiceView(
        name=clique_set.metadata.name if clique_set else name,
        counts=counts,
        desired=replicas if member.desired is None else member.desired,
        obstacles=tuple(_obstacles(clique_set, member)),
        exists=clique_set is not None,
        is_rolling=live is None
        or has_older
        or live.status.updated_replicas < replicas
        or _behind(live.metadata.generation, live.status.observed_generation) is not None,
        has_older=has_older,
        requeue_after_seconds=diagnosis.requeue_after_seconds,
    )


def _obstacles(clique_set: PodCliqueSet | None, member: GroveMember) -> Iterator[str]:
    if clique_set is None:
        yield "it is being created"
        return
    if behind := _behind(clique_set.metadata.generation, clique_set.status.observed_generation):
        yield f"podcliqueset/{clique_set.metadata.name}: {behind}"
    if clique_set.status.observed_generation is None and member.live is None:
        yield unobserved(clique_set, GROVE.title)
    if (obstacle := _obstacle(member)) is not None:
        yield f"{'pcsg' if member.is_group else 'podclique'}/{member.name}: {obstacle}"


def _obstacle(member: GroveMember) -> str | None:
    live = member.live
    if live is None:
        return "resource not found"
    status, replicas = live.status, live.spec.replicas or 0
    if status.observed_generation is None:
        return "observedGeneration is nil"
    if behind := _behind(live.metadata.generation, status.observed_generation):
        return behind
    if member.desired is not None and replicas != member.desired:
        return f"scaling: desired={member.desired}, replicas={replicas}"
    if replicas == 0:
        return None
    if isinstance(live, PodClique):
        serving, count = live.status.ready_replicas, "ready"
    else:
        serving, count = live.status.available_replicas, "available"
    if serving != replicas:
        return f"desired={replicas}, {count}={serving}"
    if status.updated_replicas != replicas:
        return f"desired={replicas}, updated={status.updated_replicas}"
    if status.replicas != replicas:
        return f"performing rolling update: desired={replicas}, replicas={status.replicas}"
    return None


def is_settled(clique_set: PodCliqueSet, member: GroveMember) -> bool:
    """Whether all desired replicas of a service run the newest template of its set, and no others."""
    if _behind(clique_set.metadata.generation, clique_set.status.observed_generation):
        return False
    # Grove records a hash of the template from which it created a clique. Without it, counts of an older
    # template would pass for those of the newest.
    newest, live = clique_set.status.current_generation_hash, member.live
    created_from = live.status.current_pod_clique_set_generation_hash if live else None
    if newest and created_from and newest != created_from:
        return False
    return _obstacle(member) is None


def _behind(generation: int, observed: int | None) -> str | None:
    """The obstacle of a status that describes an older spec; one without a generation is up to date."""
    if observed is None or observed >= generation:
        return None
    return f"spec not yet processed: generation={generation}, observedGeneration={observed}"


def _replicas(member: GroveMember) -> ServiceReplicaStatus:
    # Before there are any, zeros with the required kind and name.
    type_: type[PodClique | PodCliqueScalingGroup] = PodCliqueScalingGroup if member.is_group else PodClique
    status = (member.live or type_()).status
    kind: Literal["PodClique", "PodCliqueScalingGroup"]
    kind = "PodCliqueScalingGroup" if member.is_group else "PodClique"
    counts = ServiceReplicaStatus(kind, member.name, status.replicas, status.updated_replicas)
    if isinstance(status, PodCliqueStatus):
        return msgspec.structs.replace(counts, ready_replicas=status.ready_replicas)
    return msgspec.structs.replace(counts, available_replicas=status.available_replicas)
