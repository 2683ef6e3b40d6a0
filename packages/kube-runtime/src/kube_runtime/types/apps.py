"""apps/v1: Deployment, ReplicaSet, StatefulSet, ControllerRevision."""

from typing import ClassVar

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Condition, Metadata, Resource, Struct


class DeploymentSpec(Struct):
    """The fields of a Deployment's spec that readiness depends on."""

    replicas: int = 1
    paused: bool = False


class DeploymentStatus(Struct):
    """What the Deployment controller observed."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(Resource):
    """A Deployment; its spec stays JSON text, because apply compares it as a whole."""

    KIND = Kind("apps", "v1", "Deployment", "deployments")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(Struct):
    """How many pods there should be of one revision of a Deployment."""

    replicas: int = 1


class ReplicaSetStatus(Struct):
    """How many of them serve."""

    ready_replicas: int = 0


class ReplicaSet(Resource):
    """The pods of one revision of a Deployment. The operator does not read them; people do."""

    KIND = Kind("apps", "v1", "ReplicaSet", "replicasets")

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class PodTemplate(Struct):
    """The part of a pod template that identifies it."""

    metadata: Metadata = Metadata()


class StatefulSetSpec(Struct):
    """The part of a StatefulSet's spec that we read."""

    template: PodTemplate = PodTemplate()


class StatefulSetStatus(Struct):
    """What the StatefulSet controller observed."""

    observed_generation: int = 0
    updated_replicas: int = 0


class StatefulSet(Resource):
    """A StatefulSet of leaders. LeaderWorkerSet makes it; we only read it."""

    KIND = Kind("apps", "v1", "StatefulSet", "statefulsets")

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class ControllerRevision(Resource):
    """A former state of an object. Its `data` is written once; only the metadata is read."""

    KIND = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
    METADATA_ONLY: ClassVar[bool] = True
