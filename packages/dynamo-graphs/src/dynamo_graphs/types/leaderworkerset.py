"""leaderworkerset.x-k8s.io/v1: LeaderWorkerSet."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.apps import PodTemplate
from kube_runtime.types.meta import Condition, Resource, Struct

SET_NAME = "leaderworkerset.sigs.k8s.io/name"
"""The label that everything below a LeaderWorkerSet carries; the value is its name."""


class LeaderWorkerTemplate(Struct):
    """The templates of a group."""

    leader_template: PodTemplate = PodTemplate()


class LeaderWorkerSetSpec(Struct):
    """The fields of a LeaderWorkerSet's spec that readiness depends on."""

    replicas: int = 1
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()


class LeaderWorkerSetStatus(Struct):
    """What the LeaderWorkerSet controller observed; a replica is a whole group.

    None means: `observed_generation` is None in the releases that do not report it (up to 0.7).
    """

    observed_generation: int | None = None
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class LeaderWorkerSet(Resource):
    """Groups of one leader and its workers; the spec stays JSON text, because apply compares it."""

    KIND = Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: LeaderWorkerSetStatus = LeaderWorkerSetStatus()
