"""The status of a graph on Grove, from what Grove made of its PodCliqueSet.

The hard part is not to believe old news, as with every workload: counts say something about the wanted
pods only when Grove has read the newest set, when a clique's size is the wanted one, and when its status
is about its newest spec. Source: specification `controllers` 2.7.5 and rule R8.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynamo_operator.api.component import ServiceReplicaStatus
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.kube.applied import Blocked
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_operator.status.graph import summary


@dataclass(frozen=True, slots=True)
class GangMember:
    """A service on Grove: the live object that runs it, and how many replicas the user wants.

    None means: `live` does not exist yet; `wanted` is not said, so that any number is right.
    """

    name: str
    is_group: bool
    live: PodClique | PodCliqueScalingGroup | None
    wanted: int | None


def gang_status(
    graph: DynamoGraphDeployment,
    clique_set: PodCliqueSet | None,
    members: Mapping[str, GangMember],
    blocked: Sequence[Blocked],
) -> Object:
    """The status after an apply; `members` are the services by their keys."""
    services = {key: _replicas(each) for key, each in members.items()}
    if clique_set is None:
        return summary(graph, services, {graph.metadata.name: "it is being created"}, blocked)
    causes = sorted(
        f"{'pcsg' if each.is_group else 'podclique'}/{each.name}: {cause}"
        for each in members.values()
        if (cause := _obstacle(each)) is not None
    )
    if behind := _behind(clique_set.metadata.generation, clique_set.status.observed_generation):
        causes.insert(0, f"podcliqueset/{clique_set.metadata.name}: {behind}")
    waiting = {clique_set.metadata.name: "; ".join(causes)} if causes else {}
    return summary(graph, services, waiting, blocked)


def _obstacle(member: GangMember) -> str | None:
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


def is_settled(clique_set: PodCliqueSet, member: GangMember) -> bool:
    """Whether a service runs the newest template of its set only, in the wanted number.

    Grove tells with a hash which template a clique is made of. Without it, counts from before the newest
    template would pass for those after it. Source: specification `controllers` O-15.
    """
    if _behind(clique_set.metadata.generation, clique_set.status.observed_generation):
        return False
    wanted, live = clique_set.status.current_generation_hash, member.live
    made_of = live.status.current_pod_clique_set_generation_hash if live else None
    if wanted and made_of and wanted != made_of:
        return False
    return _obstacle(member) is None


def _behind(generation: int, observed: int | None) -> str | None:
    """That a status is about an older spec. A status that tells no generation counts as up to date."""
    if observed is None or observed >= generation:
        return None
    return f"spec not yet processed: generation={generation}, observedGeneration={observed}"


def _replicas(member: GangMember) -> ServiceReplicaStatus:
    """The counts of a service; before there are any, its kind and name with zeros.

    Source: specification `beyond` S5 (the schema requires both).
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
