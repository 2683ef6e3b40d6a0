"""What the GPUs can do, how a GPU's name is recognized, and which GPUs a cluster has.

A name comes as a system of AI Configurator (`h100_sxm`), as a node's label (`NVIDIA-H100-80GB-HBM3`) or as
people write it (`H100 SXM`). Labels leave out the form if it is the usual one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dynamo_profiler.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Gpu:
    """One type of GPU.

    Units: floating point operations per second of dense bfloat16, bytes, bytes per second, in both directions
    together for the link to the other GPUs of a node. `has_fp8` is whether it computes 8 bits twice as fast.
    """

    name: str
    flops: float
    memory_bytes: float
    bytes_per_second: float
    link_bytes_per_second: float
    has_fp8: bool = True


def _gpu(name: str, teraflops: float, gigabytes: float, memory: float, link: float) -> Gpu:
    """`memory` and `link` are gigabytes per second. Before Hopper and Ada no GPU has FP8."""
    has_fp8 = not name.startswith("a10")
    return Gpu(name, teraflops * 1e12, gigabytes * 1e9, memory * 1e9, link * 1e9, has_fp8)


GPUS = {
    gpu.name: gpu
    for gpu in (
        _gpu("gb200_sxm", 2500, 186, 8000, 1800),
        _gpu("b200_sxm", 2250, 180, 7700, 1800),
        _gpu("h200_sxm", 989, 141, 4800, 900),
        _gpu("h100_sxm", 989, 80, 3350, 900),
        _gpu("h100_pcie", 756, 80, 2000, 128),
        _gpu("a100_sxm", 312, 80, 2039, 600),
        _gpu("a100_pcie", 312, 80, 1935, 64),
        _gpu("l40s", 362, 48, 864, 64),
        _gpu("l4", 121, 24, 300, 64),
        _gpu("a10", 125, 24, 600, 64),
    )
}
"""Peak numbers without sparsity; of PCIe cards the link is that of their slot.

Source: NVIDIA's data sheets of GB200 NVL72 (per GPU), HGX B200 (per GPU), H200, H100, A100 80GB,
L40S, L4, A10.
"""

DEFAULT = "h100_sxm"
_SXM_WHEN_UNSAID = frozenset({"gb200", "b200", "h200", "h100", "a100"})
_WORD = re.compile(r"[a-z0-9]+")
_PCIE = "pcie"
_PRODUCT = "nvidia.com/gpu.product"
_COUNT = "nvidia.com/gpu.count"
_MEMORY = "nvidia.com/gpu.memory"
_GPU = "nvidia.com/gpu"
"""What NVIDIA's feature discovery writes on nodes, and what pods can get there."""


def gpu_named(name: str, memory_mebibytes: float = 0) -> Gpu:
    """The type of GPU that is meant. `memory_mebibytes` is what a node says of its GPUs; 0 means: nothing.

    Raises:
        Refusal: there is no such type in the table.
    """
    words = _WORD.findall(name.lower())
    family = next((word for word in words if word in _FAMILIES), "")
    if not family:
        names = ", ".join(GPUS)
        raise Refusal(f"unknown GPU {name!r} (expected one of {names})")
    form = "_sxm" if family in _SXM_WHEN_UNSAID else ""
    if _PCIE in words and f"{family}_{_PCIE}" in GPUS:
        form = f"_{_PCIE}"
    gpu = GPUS[family + form]
    return replace(gpu, memory_bytes=memory_mebibytes * 2**20) if memory_mebibytes else gpu


_FAMILIES = frozenset(name.partition("_")[0] for name in GPUS)


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """What a node says of itself."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, str]

    @property
    def count(self) -> int:
        """How many GPUs there are: by its label, else by what pods can get."""
        return _number(self.labels.get(_COUNT)) or _number(self.allocatable.get(_GPU))

    @property
    def memory(self) -> int:
        """Of one GPU. Units: MiB; 0 when the node does not say."""
        return _number(self.labels.get(_MEMORY))


def best_nodes(nodes: Iterable[NodeGpus]) -> tuple[Gpu, int]:
    """The type of GPU to count on, and how many a node has: more GPUs first, then more memory.

    Raises:
        Refusal: no node says which GPUs it has, or they are of an unknown type.
    """
    labelled = [node for node in nodes if node.count and node.labels.get(_PRODUCT)]
    if not labelled:
        raise Refusal(
            f"no node has GPUs and the label {_PRODUCT}: install NVIDIA's GPU feature discovery, "
            "or set hardware.gpuType instead of enableGpuDiscovery"
        )
    best = max(labelled, key=lambda node: (node.count, node.memory, node.labels[_PRODUCT]))
    return gpu_named(best.labels[_PRODUCT], best.memory), best.count


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
