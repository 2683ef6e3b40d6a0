"""The three seams of rendering, and the plan that all three read.

A role says what kind of component it is (frontend, worker, …), a backend what its inference
framework needs, an orchestrator which workload runs the pods. Each is a module with the functions
below and one line in a table of `render.plan`. The plan holds every decision, so that nothing after
it asks "is this set?".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dynamo_graphs.api.component import IngressSpec
from dynamo_graphs.render.group import GroupNode
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
    component: str
    graph: str
    dynamo_namespace: str
    component_type: str
    sub_component_type: str
    model: str
    replicas: int
    nodes: int
    role: "ComponentRole"
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


class ComponentRole(Protocol):
    """What a kind of component is by default."""

    def container(self, plan: ComponentPlan) -> Object:
        """The main container before the user: command, ports, probes, its own environment."""
        ...

    def pod(self, plan: ComponentPlan) -> Object:
        """Fields of the pod that differ from every other role's; {} is usual."""
        ...

    def service_ports(self) -> tuple[Object, ...]:
        """The ports of the component's Service; ways in from outside lead to the first one."""
        ...


class Backend(Protocol):
    """What an inference framework needs, on one node and on several."""

    @property
    def STARTS_LEADER_LAST(self) -> bool:  # noqa: N802  # a constant of a module
        """Whether the leader of a group can start only when its workers run."""
        ...

    def container(self, container: Object, plan: ComponentPlan) -> Object:
        """The main container, with all of the user's settings in it, as this framework wants it."""
        ...

    def launch(self, container: Object, plan: ComponentPlan, node: GroupNode) -> Object:
        """That container as one of a group that spans several nodes."""
        ...

    def launch_volumes(self, plan: ComponentPlan) -> list[Object]:
        """Volumes of the pod that the launch on several nodes mounts; [] is usual."""
        ...

    def leader_service(self, plan: ComponentPlan) -> LeaderService | None:
        """What a worker of a group must reach before it starts.

        None means: it may start at any time, since it waits on its own or an init container waits.
        """
        ...


class Orchestrator(Protocol):
    """Which objects run the pods of a component."""

    def workloads(self, plan: ComponentPlan) -> Sequence[Object]:
        """The objects that own the pods, in the order of their creation, as `canonical` has them."""
        ...

    def serving_labels(self) -> dict[str, str]:
        """What selects the pods of the component that take requests; {} means all do."""
        ...


def metadata(
    plan: ComponentPlan,
    name: str,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Object:
    """Metadata of a component's child, without empty maps."""
    found: Object = {"name": name, "namespace": plan.namespace}
    if labels:
        found["labels"] = labels
    if annotations:
        found["annotations"] = annotations
    return found
