"""v1: ServiceAccount, Service, ConfigMap, PersistentVolumeClaim, Event, Pod and Node."""

from typing import ClassVar

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Condition, Resource, Struct


class ServiceAccount(Resource):
    """A ServiceAccount, with its metadata only."""

    KIND = Kind("", "v1", "ServiceAccount", "serviceaccounts")


class Service(Resource):
    """A Service; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("", "v1", "Service", "services")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


class ConfigMap(Resource):
    """A ConfigMap; its data stays JSON text for the comparison with the desired state."""

    KIND = Kind("", "v1", "ConfigMap", "configmaps")

    data: msgspec.Raw = msgspec.Raw(b"{}")


class PersistentVolumeClaim(Resource):
    """The metadata of a PersistentVolumeClaim."""

    KIND = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
    METADATA_ONLY: ClassVar[bool] = True


class Event(Resource):
    """A Kubernetes Event; written, never read."""

    KIND = Kind("", "v1", "Event", "events")

    count: int = 1


class Waiting(Struct):
    """Why a container waits to start."""

    reason: str = ""
    message: str = ""


class Terminated(Struct):
    """How a container ended. `finished_at` is RFC 3339 in UTC."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class ContainerState(Struct):
    """The state of a container. Without either, it runs, or its state is unknown."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct):
    """The observed state of a container. `started`: its startup probe succeeded."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodSpec(Struct):
    """The node of a pod; "" before it is scheduled."""

    node_name: str = ""


class PodIP(Struct):
    """One of the addresses of a pod."""

    ip: str = ""


class PodStatus(Struct):
    """The observed state of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ips: tuple[PodIP, ...] = msgspec.field(name="podIPs", default=())


class Pod(Resource):
    """A pod, with the fields that explain why it is not ready."""

    KIND = Kind("", "v1", "Pod", "pods")

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeStatus(Struct):
    """The resources of a node for pods."""

    allocatable: dict[str, str] = {}


class Node(Resource):
    """A node; labels describe its GPUs."""

    KIND = Kind("", "v1", "Node", "nodes", namespaced=False)

    status: NodeStatus = NodeStatus()
