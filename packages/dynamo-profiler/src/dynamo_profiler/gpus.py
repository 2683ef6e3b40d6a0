"""What the GPUs can do: peak numbers from data sheets, and how a GPU's name is recognized.

A name comes as a system of AI Configurator (`h100_sxm`), as a node's label (`NVIDIA-H100-80GB-HBM3`) or as
people write it (`H100 SXM`). Labels leave out the form if it is the usual one.
"""

import re
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


def gpu_named(name: str, memory_mebibytes: float = 0) -> Gpu:
    """The type of GPU that is meant. `memory_mebibytes` is what a node says of its GPUs; 0 means: nothing.

    Raises:
        Refusal: there is no such type in the table.
    """
    words = _WORD.findall(name.lower())
    family = next((word for word in words if word in _FAMILIES), "")
    if not family:
        known = ", ".join(GPUS)
        raise Refusal(f"unknown GPU {name!r} (expected one of {known})")
    form = "_sxm" if family in _SXM_WHEN_UNSAID else ""
    if _PCIE in words and f"{family}_{_PCIE}" in GPUS:
        form = f"_{_PCIE}"
    found = GPUS[family + form]
    return replace(found, memory_bytes=memory_mebibytes * 2**20) if memory_mebibytes else found


_FAMILIES = frozenset(name.partition("_")[0] for name in GPUS)
