"""The three seams of rendering, and the plan that all three read.

A role says what kind of component it is (frontend, worker, …), a backend what its inference
framework needs, an orchestrator which workload runs the pods. Roles are the lines of a table in
`render.roles`, backends and orchestrators are modules with one value of the types below. The plan holds every
decision, so that nothing after it asks "is this set?".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dynamo_graphs.api.component import IngressSpec
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
    """A component's spec made tight: defaults filled, names fixed, choices made.

    `nodes` is the number of nodes of one replica, `gpus` the number of GPUs on each of them.

    `selector` is what only this component's pods have. `workload_label` is the label of the pods by which a
    Deployment selects its own; its value is the name of the Deployment.

    `knows_istio` is whether a requested VirtualService is rendered: where Istio is not set up, the
    request is ignored.

    None means: `ingress` is None when the component is not reached from outside. Empty texts and
    empty collections mean "none" everywhere else.
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
    pull_secrets: tuple[str, ...]
    service_account: str
    ingress: IngressSpec | None
    knows_istio: bool
    epp_config: ConfigKey
    settings: RenderSettings

    @property
    def is_discovered_by_kubernetes(self) -> bool:
        """Whether the graph's processes find each other through the API server."""
        return self.discovery_backend == "kubernetes"

    def is_on(self, switch: str) -> bool:
        """Whether the user set that annotation to exactly `true`."""
        return self.switches.get(switch) == "true"


@dataclass(frozen=True, slots=True)
class LeaderService:
    """Where the leader of a group takes its workers. `is_ray`: an open port is not enough there."""

    port: int
    is_ray: bool = False


@dataclass(frozen=True, slots=True)
class Role:
    """What a kind of component is by default.

    `service_ports` are those of the component's Service; ways in from outside lead to the first one.
    `container` returns the main container before the user's settings: command, ports, probes, its own
    environment. `pod` returns the fields of the pod that differ from every other role's.
    """

    service_ports: tuple[Object, ...]
    container: Callable[[ComponentPlan], Object]
    pod: Callable[[ComponentPlan], Object] = lambda _plan: {}


@dataclass(frozen=True, slots=True)
class Backend:
    """What an inference framework needs, on one node and on several; by default nothing.

    `container` returns the main container, with all of the user's settings in it, as this framework wants it,
    and `launch` that container as one of a group that spans several nodes. `launch_volumes` are those of the
    pod that such a launch mounts. `leader_service` is what a worker of a group must reach before it starts;
    None means: it may start at any time, since it waits on its own. `starts_leader_last` is whether the
    leader of a group can start only when its workers run.
    """

    launch: Callable[[Object, ComponentPlan, GroupNode], Object] = lambda main, _plan, _node: main
    container: Callable[[Object, ComponentPlan], Object] = lambda main, _plan: main
    launch_volumes: Callable[[ComponentPlan], list[Object]] = lambda _plan: []
    leader_service: Callable[[ComponentPlan], LeaderService | None] = lambda _plan: None
    starts_leader_last: bool = False


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """Which objects run the pods of a component.

    `workloads` returns the objects that own the pods, in order of creation, as `canonical` has them.
    `serving_labels` selects the pods of the component that take requests; {} means all do.
    """

    workloads: Callable[[ComponentPlan], Sequence[Object]]
    serving_labels: dict[str, str]
