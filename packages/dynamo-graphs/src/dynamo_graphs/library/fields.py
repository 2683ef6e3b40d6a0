"""Keyword arguments of constructors, for completion in editors and for type checkers.

They are the fields of the structs in `dynamo_graphs.api`, which document them; a test compares the two.
Plain JSON with the field names of the API is accepted in place of a struct.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from dynamo_graphs.api.component import (
    DisruptionBudget,
    EppConfig,
    ExtraPodMetadata,
    IngressSpec,
    ModelReference,
    Multinode,
    Resources,
    ScalingAdapterSwitch,
    SharedMemory,
    VolumeMount,
)
from dynamo_graphs.api.graph import PersistentVolumeClaimSpec, Restart
from kube_runtime.kind import Object

Backend = Literal["vllm", "sglang", "trtllm"]
"""The inference engines."""


class ComponentFields(TypedDict, total=False):
    """Fields of `ComponentSpec`: a service of a graph, or a component on its own."""

    annotations: dict[str, str]
    labels: dict[str, str]
    service_name: str | None
    component_type: str | None
    sub_component_type: str | None
    dynamo_namespace: str | None
    global_dynamo_namespace: bool
    resources: Resources | None
    autoscaling: Object | None
    envs: tuple[Object, ...]
    env_from_secret: str | None
    volume_mounts: tuple[VolumeMount, ...]
    ingress: IngressSpec | None
    model_ref: ModelReference | None
    shared_memory: SharedMemory | None
    extra_pod_metadata: ExtraPodMetadata | None
    extra_pod_spec: Object | None
    liveness_probe: Object | None
    readiness_probe: Object | None
    replicas: int | None
    multinode: Multinode | None
    scaling_adapter: ScalingAdapterSwitch | None
    disruption_budget: DisruptionBudget | None
    epp_config: EppConfig | None


class ServiceOptions(ComponentFields, total=False):
    """The same with short forms.

    `gpus` is the number of GPUs of each pod, `nodes` the number of pods, on a node each, of one replica.
    `env` adds variables; `image`, `command` and `args` are the main container's.
    """

    gpus: int
    nodes: int
    env: Mapping[str, str]
    image: str
    command: Sequence[str]
    args: Sequence[str]


class GraphFields(TypedDict, total=False):
    """Fields of `DynamoGraphDeploymentSpec` other than the services."""

    pvcs: tuple[PersistentVolumeClaimSpec, ...]
    envs: tuple[Object, ...]
    backend_framework: str | None
    restart: Restart | None
    replicas: int | None
    labels: dict[str, str]
    annotations: dict[str, str]
    progress_deadline_seconds: int | None
