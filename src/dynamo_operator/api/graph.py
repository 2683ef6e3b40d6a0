"""DynamoGraphDeployment: a whole inference graph."""

from typing import Literal

import msgspec

from dynamo_operator.api.component import (
    GROUP,
    VERSION,
    ComponentSpec,
    Framework,
    Quantity,
    ServiceReplicaStatus,
)
from dynamo_operator.kube.kind import Kind, Object
from dynamo_operator.kube.types.meta import Condition, Resource, Struct


class PersistentVolumeClaimSpec(Struct):
    """A volume claim that the services of a graph may mount."""

    name: str
    create: bool = False
    storage_class: str | None = None
    size: Quantity | None = None
    volume_access_mode: str | None = None


class RestartStrategy(Struct):
    """In which order services restart."""

    type: Literal["Sequential", "Parallel"] = "Sequential"
    order: tuple[str, ...] = ()


class Restart(Struct):
    """A wish to restart the graph; a new id starts a new restart."""

    id: str
    strategy: RestartStrategy | None = None


class RestartStatus(Struct):
    """How far a restart is."""

    observed_id: str | None = msgspec.field(name="observedID", default=None)
    phase: str | None = None
    in_progress: tuple[str, ...] = ()


class DynamoGraphDeploymentSpec(Struct):
    """The services of a graph and what they share."""

    pvcs: tuple[PersistentVolumeClaimSpec, ...] = ()
    services: dict[str, ComponentSpec] = {}
    envs: tuple[Object, ...] = ()
    backend_framework: Framework | None = None
    restart: Restart | None = None


class DynamoGraphDeploymentStatus(Struct):
    """What is true of a graph now."""

    observed_generation: int = 0
    state: str | None = None
    conditions: tuple[Condition, ...] = ()
    services: dict[str, ServiceReplicaStatus] = {}
    restart: RestartStatus | None = None


class DynamoGraphDeployment(Resource):
    """An inference graph: frontends, routers, workers and planners that belong together."""

    KIND = Kind(GROUP, VERSION, "DynamoGraphDeployment", "dynamographdeployments")

    spec: DynamoGraphDeploymentSpec = DynamoGraphDeploymentSpec()
    status: DynamoGraphDeploymentStatus = DynamoGraphDeploymentStatus()
