"""The services of a graph on Grove, from what Grove created for its PodCliqueSet.

Counts describe the desired pods only when Grove has read the newest set, when a clique's size is the
desired one, and when its status is about its newest spec: old pods count as ready too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from dynamo_graphs.api.component import ServiceReplicaStatus
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.render.metadata import service_dynamo_namespace
from dynamo_graphs.status.diagnosis import UNKNOWN, Diagnosis
from dynamo_graphs.status.service import ServiceView, diagnosed
from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet


@dataclass(frozen=True, slots=True)
class GroveMember:
    """A service on Grove: the live object that runs it, and how many replicas the user wants.

    None means: `live` does not exist yet; `wanted` is not said, so that any number is right.
    """

    name: str
    is_group: bool
    live: PodClique | PodCliqueScalingGroup | None
    wanted: int | None


def grove_views(
    graph: DynamoGraphDeployment,
    clique_set: PodCliqueSet | None,
    members: Mapping[str, GroveMember],
    diagnoses: Mapping[str, Diagnosis] | None = None,
) -> dict[str, ServiceView]:
    """The services as Grove runs them; `members` and `diagnoses` are by their keys."""
    by_service = diagnoses or {}
    return {
        key: _view(graph, key, clique_set, member, by_service.get(key, UNKNOWN))
        for key, member in members.items()
    }


def _view(
    graph: DynamoGraphDeployment,
    key: str,
    clique_set: PodCliqueSet | None,
    member: GroveMember,
    diagnosis: Diagnosis,
) -> ServiceView:
    service, live, name = graph.spec.services[key], member.live, graph.metadata.name
    counts = msgspec.structs.replace(
        diagnosed(_replicas(member), diagnosis),
        runtime_namespace=service_dynamo_namespace(graph, service),
        component_names=(member.name,) if live else (),
    )
    # A new scaling group counts its replicas before they are updated; a clique counts pods.
    has_older = isinstance(live, PodClique) and live.status.replicas > live.status.updated_replicas
    desired = (live.spec.replicas or 0) if live else 0
    return ServiceView(
        name=clique_set.metadata.name if clique_set else name,
        counts=counts,
        desired=desired if member.wanted is None else member.wanted,
        obstacles=tuple(_obstacles(clique_set, member)),
        exists=clique_set is not None,
        is_rolling=live is None
        or has_older
        or live.status.updated_replicas < desired
        or _behind(live.metadata.generation, live.status.observed_generation) is not None,
        has_older=has_older,
        requeue_after_seconds=diagnosis.requeue_after_seconds,
    )


def _obstacles(clique_set: PodCliqueSet | None, member: GroveMember) -> Iterator[str]:
    """Why a service is not ready: because of what all share, and for itself."""
    if clique_set is None:
        yield "it is being created"
        return
    if behind := _behind(clique_set.metadata.generation, clique_set.status.observed_generation):
        yield f"podcliqueset/{clique_set.metadata.name}: {behind}"
    if (own := _obstacle(member)) is not None:
        yield f"{'pcsg' if member.is_group else 'podclique'}/{member.name}: {own}"


def _obstacle(member: GroveMember) -> str | None:
    """Why a service is not ready. None means: it is."""
    live = member.live
    if live is None:
        return "resource not found"
    status, desired = live.status, live.spec.replicas or 0
    if status.observed_generation is None:
        return "observedGeneration is nil"
    if behind := _behind(live.metadata.generation, status.observed_generation):
        return behind
    if member.wanted is not None and desired != member.wanted:
        return f"scaling: desired={member.wanted}, replicas={desired}"
    if desired == 0:
        return None
    if isinstance(live, PodClique):
        serving, word = live.status.ready_replicas, "ready"
    else:
        serving, word = live.status.available_replicas, "available"
    checks = (
        (serving != desired, f"desired={desired}, {word}={serving}"),
        (
            status.updated_replicas != desired,
            f"desired={desired}, updated={status.updated_replicas}",
        ),
        (
            status.replicas != desired,
            f"performing rolling update: desired={desired}, replicas={status.replicas}",
        ),
    )
    return next((text for stands, text in checks if stands), None)


def is_settled(clique_set: PodCliqueSet, member: GroveMember) -> bool:
    """Whether a service runs the newest template of its set only, in the wanted number.

    Grove records in a hash which template a clique is made of. Without it, counts from before the newest
    template would pass for those after it.
    """
    if _behind(clique_set.metadata.generation, clique_set.status.observed_generation):
        return False
    newest, live = clique_set.status.current_generation_hash, member.live
    made_of = live.status.current_pod_clique_set_generation_hash if live else None
    if newest and made_of and newest != made_of:
        return False
    return _obstacle(member) is None


def _behind(generation: int, observed: int | None) -> str | None:
    """That a status is about an older spec. A status without a generation counts as up to date."""
    if observed is None or observed >= generation:
        return None
    return f"spec not yet processed: generation={generation}, observedGeneration={observed}"


def _replicas(member: GroveMember) -> ServiceReplicaStatus:
    """The counts of a service; before there are any, its kind and name with zeros.

    The schema requires both.
    """
    live = member.live
    if member.is_group:
        group = live if isinstance(live, PodCliqueScalingGroup) else PodCliqueScalingGroup()
        return ServiceReplicaStatus(
            "PodCliqueScalingGroup",
            member.name,
            replicas=group.status.replicas,
            updated_replicas=group.status.updated_replicas,
            available_replicas=group.status.available_replicas,
        )
    clique = live if isinstance(live, PodClique) else PodClique()
    return ServiceReplicaStatus(
        "PodClique",
        member.name,
        replicas=clique.status.replicas,
        updated_replicas=clique.status.updated_replicas,
        ready_replicas=clique.status.ready_replicas,
    )
