"""Which GPUs a cluster has, by what NVIDIA's feature discovery writes on its nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dynamo_profiler.gpus import Gpu, gpu_named
from dynamo_profiler.refusal import Refusal

_PRODUCT = "nvidia.com/gpu.product"
_COUNT = "nvidia.com/gpu.count"
_MEMORY = "nvidia.com/gpu.memory"
_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """What a node says of itself."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, str]

    @property
    def count(self) -> int:
        """How many GPUs there are: by its label, else by what pods can get."""
        return _number(self.labels.get(_COUNT)) or _number(self.allocatable.get(_RESOURCE))

    @property
    def memory(self) -> int:
        """Of one GPU. Units: MiB; 0 when the node does not say."""
        return _number(self.labels.get(_MEMORY))


def best_nodes(nodes: Iterable[NodeGpus]) -> tuple[Gpu, int]:
    """The type of GPU to count on, and how many a node has: more GPUs first, then more memory.

    Raises:
        Refusal: no node says which GPUs it has, or they are of an unknown type.
    """
    labelled = [each for each in nodes if each.count and each.labels.get(_PRODUCT)]
    if not labelled:
        raise Refusal(
            f"no node has GPUs and the label {_PRODUCT}: install NVIDIA's GPU feature discovery, "
            "or set hardware.gpuType instead of enableGpuDiscovery"
        )
    best = max(labelled, key=lambda each: (each.count, each.memory, each.labels[_PRODUCT]))
    return gpu_named(best.labels[_PRODUCT], best.memory), best.count


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
