"""apps/v1: Deployment, ReplicaSet, StatefulSet, ControllerRevision."""

from typing import ClassVar

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Condition, Metadata, Resource, Struct


class DeploymentSpec(Struct):
    """The fields of the spec on which readiness depends."""

    replicas: int = 1
    paused: bool = False


class DeploymentStatus(Struct):
    """The observed state of a Deployment."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(Resource):
    """A Deployment; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("apps", "v1", "Deployment", "deployments")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(Struct):
    """The desired number of pods of one revision."""

    replicas: int = 1


class ReplicaSetStatus(Struct):
    """The observed state of a ReplicaSet."""

    ready_replicas: int = 0


class ReplicaSet(Resource):
    """One revision of a Deployment."""

    KIND = Kind("apps", "v1", "ReplicaSet", "replicasets")

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class PodTemplate(Struct):
    """The metadata of a pod template."""

    metadata: Metadata = Metadata()


class StatefulSetSpec(Struct):
    """The pod template of a StatefulSet."""

    template: PodTemplate = PodTemplate()


class StatefulSetStatus(Struct):
    """The observed state of a StatefulSet."""

    observed_generation: int = 0
    updated_replicas: int = 0


class StatefulSet(Resource):
    """A StatefulSet, read only."""

    KIND = Kind("apps", "v1", "StatefulSet", "statefulsets")

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class ControllerRevision(Resource):
    """The metadata of a ControllerRevision; its `data` is written once and not read."""

    KIND = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
    METADATA_ONLY: ClassVar[bool] = True
