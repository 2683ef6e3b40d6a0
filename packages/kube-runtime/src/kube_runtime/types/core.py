"""v1: ServiceAccount, Service, ConfigMap, PersistentVolumeClaim, Secret, Event and Pod."""

from typing import ClassVar

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Condition, Resource, Struct


class ServiceAccount(Resource):
    """A ServiceAccount; we write none of its fields but the metadata."""

    KIND = Kind("", "v1", "ServiceAccount", "serviceaccounts")


class Service(Resource):
    """A Service; its spec stays JSON text, because apply compares it as a whole."""

    KIND = Kind("", "v1", "Service", "services")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


class ConfigMap(Resource):
    """A ConfigMap; its data stays JSON text, because apply compares it as a whole."""

    KIND = Kind("", "v1", "ConfigMap", "configmaps")

    data: msgspec.Raw = msgspec.Raw(b"{}")


class PersistentVolumeClaim(Resource):
    """A PersistentVolumeClaim. We only ask whether it is there."""

    KIND = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
    METADATA_ONLY: ClassVar[bool] = True


class PullSecret(Resource):
    """A Secret of type `kubernetes.io/dockerconfigjson`. Watched with that field selector only.

    `data` holds credentials: reduce it to registry hosts at once (`Informer(transform=…)`), never log it.
    """

    KIND = Kind("", "v1", "Secret", "secrets")

    data: dict[str, str] = {}


class SshKeys(Resource):
    """The Secret with the SSH keys that pods of one group share. Watched by its name only.

    `data` holds a private key: never log it. The object does not show it.
    """

    KIND = Kind("", "v1", "Secret", "secrets")

    type: str = ""
    data: dict[str, str] = {}

    def __repr__(self) -> str:
        """The kind and the name, without the keys."""
        return f"{type(self).__name__}({self.key})"


class SshKeysCopy(SshKeys):
    """A copy of those keys in a namespace that needs them; each type has one watch, hence two types."""


class Event(Resource):
    """A Kubernetes Event; written, never read."""

    KIND = Kind("", "v1", "Event", "events")

    count: int = 1


class Waiting(Struct):
    """Why a container does not run yet, or not again."""

    reason: str = ""
    message: str = ""


class Terminated(Struct):
    """How a container ended. `finished_at` is RFC 3339, UTC."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class ContainerState(Struct):
    """What a container does. None in both means: it runs, or nothing is known of it."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct):
    """What the kubelet says of one container. `started` is whether its startup probe succeeded."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodSpec(Struct):
    """The node that a pod was given; "" before it has one."""

    node_name: str = ""


class PodIP(Struct):
    """One of the addresses of a pod."""

    ip: str = ""


class PodStatus(Struct):
    """What the scheduler and the kubelet say of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ips: tuple[PodIP, ...] = msgspec.field(name="podIPs", default=())


class Pod(Resource):
    """A pod of a component, with exactly what `status.pods` reads to find why it is not ready."""

    KIND = Kind("", "v1", "Pod", "pods")

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeStatus(Struct):
    """What a node has for pods."""

    allocatable: dict[str, str] = {}


class Node(Resource):
    """A node; labels describe its GPUs."""

    KIND = Kind("", "v1", "Node", "nodes", namespaced=False)

    status: NodeStatus = NodeStatus()
