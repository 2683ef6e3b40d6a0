"""The three interfaces of rendering, and the plan that all three read.

A role has the defaults of a component type (frontend, worker, …), a backend what its inference framework
needs, an orchestrator the workload that runs the pods. Roles are in `render.roles`, orchestrators in
`render.orchestrators`, and each backend is a module of `render.backends`. The plan has every decision,
so that later code needs no defaults.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dynamo_graphs.api.component import IngressSpec
from dynamo_graphs.facts import NamespaceDefaults
from dynamo_graphs.render.launch import GroupNode
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object


@dataclass(frozen=True, slots=True)
class Mount:
    """A PVC in the main container."""

    claim: str
    path: str
    is_cache: bool


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A key of a ConfigMap."""

    config_map: str
    key: str


@dataclass(frozen=True, slots=True)
class ComponentPlan:
    """A component's spec with defaults, names and choices resolved.

    `nodes` is the number of nodes of one replica, `gpus` the number of GPUs on each of them. `selector`
    are labels that only this component's pods have. `workload_label` is the label by which a Deployment
    selects its pods; its value is the name of the Deployment. Without `knows_istio` a requested
    VirtualService is ignored. `ingress` is None for a component without outside access. Empty texts and
    collections mean "none".
    """

    namespace: str
    name: str
    graph: str
    dynamo_namespace: str
    component_type: str
    replicas: int
    nodes: int
    role: "Role"
    backend: "Backend"
    orchestrator: "Orchestrator"
    selector: dict[str, str]
    workload_label: str
    labels: dict[str, str]
    annotations: dict[str, str]
    pod_labels: dict[str, str]
    pod_annotations: dict[str, str]
    switches: dict[str, str]
    discovery_backend: str
    environment: tuple[Object, ...]
    environment_secret: str
    resources: Object
    gpus: int
    mounts: tuple[Mount, ...]
    shared_memory_size: str
    main_container: Object
    pod: Object
    probes: dict[str, Object]
    namespace_defaults: NamespaceDefaults
    service_account: str
    ingress: IngressSpec | None
    knows_istio: bool
    epp_config: ConfigKey
    settings: RenderSettings

    @property
    def is_discovered_by_kubernetes(self) -> bool:
        """Whether the graph's processes discover each other through the API server."""
        return self.discovery_backend == "kubernetes"

    def is_on(self, switch: str) -> bool:
        """Whether that annotation is exactly `true`."""
        return self.switches.get(switch) == "true"


@dataclass(frozen=True, slots=True)
class LeaderService:
    """The port on which the leader of a group accepts workers. For Ray, an open port is not sufficient."""

    port: int
    is_ray: bool = False


@dataclass(frozen=True, slots=True)
class Role:
    """The defaults of a component type.

    `service_ports` are those of the component's Service; an Ingress leads to the first one. `container`
    returns the main container before the user's settings: command, ports, probes, environment. `pod`
    returns fields of the pod.
    """

    service_ports: tuple[Object, ...]
    container: Callable[[ComponentPlan], Object]
    pod: Callable[[ComponentPlan], Object] = lambda _plan: {}


@dataclass(frozen=True, slots=True)
class Backend:
    """What an inference framework needs, on one node and on several; by default nothing.

    `container` adapts the main container, which has all of the user's settings, to the framework.
    `launch` makes it a container of a multinode group, and `launch_volumes` are the volumes that it then
    mounts. `leader_service` is what a worker of a group must reach before it starts; None if it may
    start at any time. With `starts_leader_last` the leader of a group starts after its workers.
    """

    launch: Callable[[Object, ComponentPlan, GroupNode], Object] = lambda main, _plan, _node: main
    container: Callable[[Object, ComponentPlan], Object] = lambda main, _plan: main
    launch_volumes: Callable[[ComponentPlan], list[Object]] = lambda _plan: []
    leader_service: Callable[[ComponentPlan], LeaderService | None] = lambda _plan: None
    starts_leader_last: bool = False


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """The workloads that run the pods of a component.

    `workloads` returns the objects that own the pods, in canonical form and in order of creation.
    `serving_labels` select the pods that receive requests; {} for all.
    """

    workloads: Callable[[ComponentPlan], Sequence[Object]]
    serving_labels: dict[str, str]
