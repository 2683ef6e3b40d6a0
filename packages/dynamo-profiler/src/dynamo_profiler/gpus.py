"""The performance of each type of GPU, the names that a type has, and the GPUs of a cluster.

A name is a system of AI Configurator (`h100_sxm`), a node's label (`NVIDIA-H100-80GB-HBM3`) or what people
write (`H100 SXM`). Labels omit the usual form factor.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dynamo_profiler.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Gpu:
    """One type of GPU.

    Units: floating point operations per second of dense bfloat16, bytes, bytes per second; of the link to the
    other GPUs of a node, both directions together. `has_fp8` is whether it computes FP8 twice as fast.
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
"""Peak figures without sparsity. The link of a PCIe card is its slot.

Source: NVIDIA's data sheets of GB200 NVL72 (per GPU), HGX B200 (per GPU), H200, H100, A100 80GB,
L40S, L4, A10.
"""

DEFAULT = "h100_sxm"
_SXM_BY_DEFAULT = frozenset({"gb200", "b200", "h200", "h100", "a100"})
_WORD = re.compile(r"[a-z0-9]+")
_PCIE = "pcie"
_PRODUCT = "nvidia.com/gpu.product"
_COUNT = "nvidia.com/gpu.count"
_MEMORY = "nvidia.com/gpu.memory"
_GPU = "nvidia.com/gpu"
"""Node labels of NVIDIA's GPU feature discovery, and the resource that pods request."""


def gpu_named(name: str, memory_mebibytes: float = 0) -> Gpu:
    """The type of GPU with this name, with a node's `memory_mebibytes` per GPU unless 0.

    Raises:
        Refusal: the table has no such type.
    """
    words = _WORD.findall(name.lower())
    family = next((word for word in words if word in _FAMILIES), "")
    if not family:
        names = ", ".join(GPUS)
        raise Refusal(f"unknown GPU {name!r} (expected one of {names})")
    form = "_sxm" if family in _SXM_BY_DEFAULT else ""
    if _PCIE in words and f"{family}_{_PCIE}" in GPUS:
        form = f"_{_PCIE}"
    gpu = GPUS[family + form]
    return replace(gpu, memory_bytes=memory_mebibytes * 2**20) if memory_mebibytes else gpu


_FAMILIES = frozenset(name.partition("_")[0] for name in GPUS)


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """The labels and allocatable resources of one node."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, str]

    @property
    def count(self) -> int:
        """The number of GPUs: by the label, else by the allocatable resource."""
        return _number(self.labels.get(_COUNT)) or _number(self.allocatable.get(_GPU))

    @property
    def memory(self) -> int:
        """Memory of one GPU in MiB; 0 if the node has no label for it."""
        return _number(self.labels.get(_MEMORY))


def best_nodes(nodes: Iterable[NodeGpus]) -> tuple[Gpu, int]:
    """The type of GPU of the best node, and how many it has: most GPUs first, then most memory.

    Raises:
        Refusal: no node has labels for its GPUs, or their type is unknown.
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
