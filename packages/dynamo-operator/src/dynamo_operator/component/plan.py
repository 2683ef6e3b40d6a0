"""What the decision on a component is based on; its plan, which `render.component_plan` makes of that."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from dynamo_operator.component.api import DynamoComponentDeploymentSpec
from dynamo_operator.component.launch import GroupNode
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, LiveObjects, NamespaceDefaults
from kube_runtime.types.kinds import Pod, StatefulSet
from kube_runtime.types.meta import Object


@dataclass(frozen=True, slots=True)
class Mount:
    """A PVC in the main container."""

    claim: str
    path: str
    is_cache: bool


# A role has the defaults of a component type (frontend, worker, …), a backend what its inference
# framework needs, an orchestrator the workload that runs the pods. Roles are in `component.pod`,
# orchestrators in `component.render`, and each backend is a module of `component.backends`. The
# plan has every decision, so that later code needs no defaults.
class ComponentPlan(msgspec.Struct, frozen=True):
    """A component's `spec`, and what of it has a default, a name or a choice that is resolved here.

    Empty texts and collections mean "none". One replica has `nodes` nodes with `gpus` GPUs on each.
    `selector` are labels that only this component's pods have; a Deployment selects its pods by
    `workload_label`, with its own name as value. Without `knows_istio` a requested VirtualService is ignored.
    """

    spec: DynamoComponentDeploymentSpec
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
    is_discovered_by_kubernetes: bool
    environment: tuple[Object, ...]
    resources: Object
    gpus: int
    mounts: tuple[Mount, ...]
    shared_memory_size: str
    main_container: Object
    pod: Object
    probes: dict[str, Object]
    namespace_defaults: NamespaceDefaults
    service_account: str
    knows_istio: bool
    settings: RenderSettings

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
    """The defaults of a component type: ports of its Service, main container, and fields of the pod.

    An Ingress leads to the first port. The container has no settings of the user yet.
    """

    service_ports: tuple[Object, ...]
    container: Callable[[ComponentPlan], Object]
    pod: Callable[[ComponentPlan], Object] = lambda _plan: {}


@dataclass(frozen=True, slots=True)
class Backend:
    """What an inference framework needs, on one node and on several; by default nothing.

    `container` adapts the main container, which has the user's settings. `launch` makes it a container of a
    multinode group, which mounts `launch_volumes`. A worker of a group must reach `leader_service`, if any,
    before it starts. With `starts_leader_last` the leader starts after its workers.
    """

    launch: Callable[[Object, ComponentPlan, GroupNode], Object] = lambda main, _plan, _node: main
    container: Callable[[Object, ComponentPlan], Object] = lambda main, _plan: main
    launch_volumes: Callable[[ComponentPlan], list[Object]] = lambda _plan: []
    leader_service: Callable[[ComponentPlan], LeaderService | None] = lambda _plan: None
    starts_leader_last: bool = False


@dataclass(frozen=True, slots=True)
class Rendered(Iterable[Object]):
    """Objects that are rendered each time they are read: a component may have a thousand groups."""

    render: Callable[[], Iterator[Object]]

    def __iter__(self) -> Iterator[Object]:
        return self.render()


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """The workloads that run the pods of a component.

    `workloads` returns the objects that own the pods, in canonical form and in order of creation.
    `serving_labels` select the pods that receive requests; {} for all.
    """

    workloads: Callable[[ComponentPlan], Iterable[Object]]
    serving_labels: dict[str, str]


class ComponentInputs(msgspec.Struct, frozen=True):
    """The inputs of one reconcile.

    `live` are the objects that the component owns. `leaders` are the StatefulSets of the leaders by group;
    a group without one is missing. `pods` are those of the workload, without debug copies. `in_v1beta1` is
    the version in which the component is stored.
    """

    facts: Facts
    live: LiveObjects = msgspec.field(default_factory=dict)
    leaders: Mapping[str, StatefulSet] = msgspec.field(default_factory=dict)
    pods: tuple[Pod, ...] = ()
    in_v1beta1: bool = False
