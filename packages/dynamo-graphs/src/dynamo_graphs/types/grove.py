"""grove.io/v1alpha1: PodCliqueSet, which we write, and what Grove makes of it.

Of PodCliques and PodCliqueScalingGroups exactly the fields are here that readiness and scaling read,
so exactly their changes wake a graph.
"""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource, Struct

_GROUP, _VERSION = "grove.io", "v1alpha1"

CLIQUE_NAME = "grove.io/podclique"
"""The label that Grove puts on each pod: the name of its PodClique."""

REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
"""The label that Grove puts on each pod of a replica that spans several nodes."""


class PodCliqueSetStatus(Struct):
    """What Grove observed of a set; the hash stands for the template that it works towards."""

    observed_generation: int | None = None
    current_generation_hash: str | None = None


class PodCliqueSet(Resource):
    """A PodCliqueSet; its spec stays JSON text, because apply compares it as a whole."""

    KIND = Kind(_GROUP, _VERSION, "PodCliqueSet", "podcliquesets")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodCliqueSetStatus = PodCliqueSetStatus()


class Scheduling(Struct):
    """Who places the pods of a clique; "" is the default scheduler."""

    scheduler_name: str = ""


class CliqueSize(Struct):
    """How many pods a template gives to one clique, how many the gang needs, who places them."""

    replicas: int = 1
    min_available: int | None = None
    pod_spec: Scheduling = Scheduling()


class CliqueTemplate(Struct):
    """One clique in the template of a set: its size, and its annotations for the sake of restarts."""

    name: str
    annotations: dict[str, str] = {}
    spec: CliqueSize = CliqueSize()


class ScalingGroupTemplate(Struct):
    """The size of one scaling group in the template of a set."""

    name: str
    replicas: int = 1


class PodCliqueSetTemplate(Struct):
    """The sizes in the template of a set."""

    cliques: tuple[CliqueTemplate, ...] = ()
    pod_clique_scaling_groups: tuple[ScalingGroupTemplate, ...] = ()


class PodCliqueSetSpec(Struct):
    """The part of a set's spec that scaling reads."""

    template: PodCliqueSetTemplate = PodCliqueSetTemplate()


class ReplicasSpec(Struct):
    """How many replicas there should be. None means: not set yet."""

    replicas: int | None = None


class PodCliqueStatus(Struct):
    """What Grove observed of the pods of one clique; the hash identifies the template of the set."""

    observed_generation: int | None = None
    current_pod_clique_set_generation_hash: str | None = None
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0


class PodClique(Resource):
    """Pods of one template."""

    KIND = Kind(_GROUP, _VERSION, "PodClique", "podcliques")

    spec: ReplicasSpec = ReplicasSpec()
    status: PodCliqueStatus = PodCliqueStatus()


class PodCliqueScalingGroupStatus(Struct):
    """What Grove observed of the replicas of a scaling group, each a gang of cliques."""

    observed_generation: int | None = None
    current_pod_clique_set_generation_hash: str | None = None
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class PodCliqueScalingGroup(Resource):
    """Cliques that scale together."""

    KIND = Kind(_GROUP, _VERSION, "PodCliqueScalingGroup", "podcliquescalinggroups")

    spec: ReplicasSpec = ReplicasSpec()
    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()


class PodCliqueScale(Resource):
    """The scale subresource of a PodClique. It is not a PodClique, so it must not get into that store."""

    KIND = PodClique.KIND

    spec: ReplicasSpec = ReplicasSpec()


class PodCliqueScalingGroupScale(Resource):
    """The scale subresource of a PodCliqueScalingGroup."""

    KIND = PodCliqueScalingGroup.KIND

    spec: ReplicasSpec = ReplicasSpec()
