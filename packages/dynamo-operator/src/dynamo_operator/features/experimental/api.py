"""Types of the experimental features of a component, in v1alpha1; `component/v1beta1.py` derives its own."""

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

from dynamo_operator.names import LABEL_LIMIT
from kube_runtime.crd import Field, Rule, Rules, Text
from kube_runtime.types.meta import Object, Struct

_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DnsLabel: TypeAlias = Annotated[str, Text(_PATTERN, min_length=1, max_length=LABEL_LIMIT)]
"""The name of a container."""


class GpuClientPod(Struct):
    """A pod that shares the GPU memory of the component's pods."""

    name: Annotated[
        str, Field("Name of the pod's role.", min_length=1, max_length=LABEL_LIMIT, pattern=_PATTERN)
    ]
    pod_template: Annotated[Object, Field("Template of the pod.", free_form=True)]


class GpuMemoryClients(Struct):
    """The device class of the GPU memory service, and its further clients."""

    device_class_name: Annotated[
        str | None, Field("DeviceClass through which the GPUs are shared.", default="gpu.nvidia.com")
    ] = "gpu.nvidia.com"
    extra_client_containers: Annotated[
        tuple[DnsLabel, ...], Field("Further containers of the pod that use the service.", list_type="set")
    ] = ()
    extra_client_pods: Annotated[
        tuple[GpuClientPod, ...],
        Field("Further pods that use the service; reserved, and must be empty.", list_keys=("name",)),
    ] = ()


def gpu_memory_rules(intra_pod: str, inter_pod: str) -> Rules:
    """The rules of the GPU memory service, with the words of a version for its two modes."""
    containers, pods = "extraClientContainers", "extraClientPods"
    return (
        Rule(
            f"!has(self.{containers}) || size(self.{containers}) == 0 || !has(self.mode) || "
            f"self.mode == '{intra_pod}'",
            f"{containers} is only supported with mode={intra_pod}",
            lambda service: not service.get(containers) or service.get("mode", intra_pod) == intra_pod,
        ),
        Rule(
            f"!has(self.{pods}) || size(self.{pods}) == 0 || (has(self.mode) && self.mode == '{inter_pod}')",
            f"{pods} is only supported with mode={inter_pod}",
            lambda service: not service.get(pods) or service.get("mode") == inter_pod,
        ),
        Rule(
            f"!has(self.{pods}) || size(self.{pods}) == 0",
            f"{pods} is reserved for inter-pod GMS and is not implemented yet",
            lambda service: not service.get(pods),
        ),
    )


_MODE = "Whether the processes that share the GPUs are in one pod or in several."


class GpuMemoryService(GpuMemoryClients):
    """A process that holds the GPU memory of a component, so that engines can share it."""

    RULES: ClassVar[Rules] = gpu_memory_rules("intraPod", "interPod")

    enabled: Annotated[bool, Field("Run the service.", required=True)] = False
    mode: Annotated[Literal["intraPod", "interPod"], Field(_MODE, default="intraPod")] = "intraPod"


class Failover(Struct):
    """Engines that stand by for the active one and share its GPU memory."""

    enabled: Annotated[bool, Field("Run engines that stand by.", required=True)] = False
    mode: Annotated[Literal["intraPod", "interPod"], Field(_MODE, default="intraPod")] = "intraPod"
    num_shadows: Annotated[
        int, Field("Number of engines that stand by.", minimum=1, format="int32", default=1)
    ] = 1


class CheckpointIdentity(Struct):
    """The settings on which the content of a checkpoint depends."""

    model: Annotated[str, Field("Name of the model.", required=True)] = ""
    backend_framework: Annotated[
        Literal["vllm", "sglang", "trtllm"] | None, Field("Backend of the worker.", required=True)
    ] = None
    dynamo_version: Annotated[str | None, Field("Version of the Dynamo runtime.")] = None
    tensor_parallel_size: Annotated[
        int, Field("Tensor parallelism of the worker.", minimum=1, format="int32", default=1)
    ] = 1
    pipeline_parallel_size: Annotated[
        int, Field("Pipeline parallelism of the worker.", minimum=1, format="int32", default=1)
    ] = 1
    dtype: Annotated[str | None, Field("Data type of the weights, such as `fp8`.")] = None
    max_model_len: Annotated[
        int | None, Field("Longest sequence that the engine accepts.", minimum=1, format="int32")
    ] = None
    extra_parameters: Annotated[
        dict[str, str], Field("Further settings that make checkpoints different.")
    ] = {}


class CheckpointJob(Struct):
    """The Job that writes the checkpoint."""

    gms_client_containers: Annotated[
        tuple[DnsLabel, ...], Field("Containers that use the GPU memory service.", list_type="set")
    ] = ()
    pod_template: Annotated[
        Object | None, Field("Template of the Job's pod; by default, the component's.", free_form=True)
    ] = None


class CheckpointSource(Struct):
    """How a component gets its checkpoint."""

    RULES: ClassVar[Rules] = (
        Rule(
            "!has(self.job) || !has(self.checkpointRef)",
            "checkpoint.job cannot be set when checkpointRef is specified",
            lambda checkpoint: not ("job" in checkpoint and "checkpointRef" in checkpoint),
        ),
    )

    mode: Annotated[
        Literal["Auto", "Manual"] | None, Field("Deprecated: whether the operator creates the checkpoint.")
    ] = None
    startup_policy: Annotated[
        Literal["Immediate", "WaitForCheckpoint"],
        Field("Whether pods start before the checkpoint exists.", default="Immediate"),
    ] = "Immediate"
    deletion_policy: Annotated[
        Literal["Delete", "Retain"],
        Field("What happens to the checkpoint when the component is deleted.", default="Delete"),
    ] = "Delete"
    checkpoint_ref: Annotated[str | None, Field("Name of an existing DynamoCheckpoint.")] = None
    target_container_name: Annotated[
        str,
        Field(
            "Container of which the checkpoint is made.",
            min_length=1,
            max_length=LABEL_LIMIT,
            pattern=_PATTERN,
            default="main",
        ),
    ] = "main"
    job: Annotated[CheckpointJob | None, Field("Changes to the Job that writes the checkpoint.")] = None


class Checkpoint(CheckpointSource):
    """A checkpoint from which the pods of a component start."""

    enabled: Annotated[bool, Field("Start from a checkpoint.", default=False)] = False
    identity: Annotated[CheckpointIdentity | None, Field("Settings on which the checkpoint depends.")] = None


class CheckpointStatus(Struct):
    """The checkpoint of a component."""

    checkpoint_name: Annotated[str | None, Field("Name of the DynamoCheckpoint.")] = None
    checkpoint_id: Annotated[str | None, Field("Identifier of the stored checkpoint.")] = msgspec.field(
        name="checkpointID", default=None
    )
    identity_hash: Annotated[str | None, Field("Deprecated: hash of its identity.")] = None
    ready: Annotated[bool, Field("Whether pods can start from it.")] = False
