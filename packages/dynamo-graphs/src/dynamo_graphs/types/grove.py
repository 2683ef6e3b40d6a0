"""grove.io/v1alpha1: PodCliqueSet, which the operator writes, and the kinds that Grove creates from it.

PodCliques and PodCliqueScalingGroups have only the fields that readiness and scaling read, so that
changes of others do not trigger a reconcile.
"""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource, Struct

_GROUP, _VERSION = "grove.io", "v1alpha1"

CLIQUE_NAME = "grove.io/podclique"
"""Label of each pod on Grove: the name of its PodClique."""

POD_TEMPLATE_HASH = "grove.io/pod-template-hash"
"""Label of each pod on Grove: a hash of the template of its PodClique."""

REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
"""Label of each pod of a multinode replica on Grove."""


class PodCliqueSetStatus(Struct):
    """Observed state of a set; the hash identifies the template that Grove rolls out."""

    observed_generation: int | None = None
    current_generation_hash: str | None = None


class PodCliqueSet(Resource):
    """A PodCliqueSet; its spec stays JSON text, which apply compares as a whole."""

    KIND = Kind(_GROUP, _VERSION, "PodCliqueSet", "podcliquesets")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodCliqueSetStatus = PodCliqueSetStatus()


class Scheduling(Struct):
    """The scheduler of the pods of a clique; "" for the default."""

    scheduler_name: str = ""


class CliqueSize(Struct):
    """Number of pods of a clique in a template, their quorum, and their scheduler."""

    replicas: int = 1
    min_available: int | None = None
    pod_spec: Scheduling = Scheduling()


class CliqueTemplate(Struct):
    """One clique in the template of a set: its size, and its annotations, which contain the last restart."""

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
    """The fields of a set's spec that scaling reads."""

    template: PodCliqueSetTemplate = PodCliqueSetTemplate()


class ReplicasSpec(Struct):
    """Desired replicas; None until they are set."""

    replicas: int | None = None


class PodCliqueStatus(Struct):
    """Observed state of a clique; the hash identifies the template of the set."""

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
    """Observed state of a scaling group, each of whose replicas has one set of cliques."""

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
    """The scale subresource of a PodClique. Its own type keeps it out of the store of PodCliques."""

    KIND = PodClique.KIND

    spec: ReplicasSpec = ReplicasSpec()


class PodCliqueScalingGroupScale(Resource):
    """The scale subresource of a PodCliqueScalingGroup."""

    KIND = PodCliqueScalingGroup.KIND

    spec: ReplicasSpec = ReplicasSpec()
