"""The GPUs to profile for: what a request says of them, completed from the labels of nodes."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from msgspec.structs import asdict, fields, replace

from kube_runtime.types.kinds import Node
from kube_runtime.types.meta import Object, Struct

MOST_GPUS: Final = 32
"""Most GPUs that discovery writes as `totalGpus`. Source: Dynamo 1.x."""

PRODUCT: Final = "nvidia.com/gpu.product"
COUNT: Final = "nvidia.com/gpu.count"
MEMORY: Final = "nvidia.com/gpu.memory"
"""Labels of NVIDIA's GPU feature discovery; the memory is that of one GPU, in MiB."""

_RESOURCE: Final = "nvidia.com/gpu"
_RDMA: Final = (
    "nvidia.com/rdma.present",
    "feature.node.kubernetes.io/rdma.available",
    "feature.node.kubernetes.io/network-sriov.capable",
)
_WORD: Final = re.compile(r"[a-z0-9]+")
_SXM: Final = ("gb200", "b200", "h200", "h100", "a100", "v100")
"""Families whose usual form is SXM: labels omit it."""
_WITH_PCIE: Final = ("h100", "a100", "v100")
_PCIE: Final = ("pcie", "nvl")
_BARE: Final = ("gb10", "a30", "l40s", "l40", "l4", "t4")
_NVLINK: Final = "nvlink"


class Hardware(Struct):
    """`spec.hardware`: a type of GPU, MiB of one, and how many; None is unknown."""

    gpu_sku: str | None = None
    vram_mb: float | None = None
    total_gpus: int | None = None
    num_gpus_per_node: int | None = None
    interconnect: str | None = None
    rdma: bool | None = None


_REQUIRED: Final = ("gpu_sku", "vram_mb", "num_gpus_per_node")
_NAMES: Final = {field.name: field.encode_name for field in fields(Hardware)}


def missing(hardware: Hardware) -> tuple[str, ...]:
    """The fields that are not set, by their names in a manifest."""
    return tuple(_NAMES[name] for name, value in asdict(hardware).items() if value is None)


def problem(hardware: Hardware) -> str:
    """Why the hardware, after discovery, is not enough to profile for; "" if it is."""
    if all(getattr(hardware, name) is not None for name in _REQUIRED):
        return ""
    return (
        "GPU hardware info required but auto-discovery failed. Verify that nodes with GPUs have the labels "
        f"{PRODUCT}, {MEMORY} and {COUNT} of NVIDIA's GPU feature discovery, or set "
        "spec.hardware.{gpuSku,vramMb,numGpusPerNode} explicitly."
    )


def completed(hardware: Hardware, nodes: Iterable[Node]) -> Hardware:
    """The hardware with what is missing taken from the best kind of node: most GPUs, then most memory.

    Nodes with another type of GPU than `gpuSku` do not count. `totalGpus` is at most 32, however many nodes
    there are. What the nodes do not say stays missing.
    """
    kinds = Counter(kind for node in nodes if (kind := _kind_of(node)) and _fits(kind, hardware))
    if not kinds:
        return hardware
    best = max(kinds, key=lambda kind: (kind.count, kind.memory, kind.sku))
    per_node = hardware.num_gpus_per_node or best.count
    found = Hardware(
        gpu_sku=best.sku or None,
        vram_mb=best.memory or None,
        num_gpus_per_node=best.count,
        total_gpus=min(per_node * kinds[best], MOST_GPUS),
        interconnect=_NVLINK if best.sku.endswith("_sxm") else None,
        rdma=best.has_rdma,
    )
    set_fields = {name: value for name, value in asdict(hardware).items() if value is not None}
    return replace(found, **set_fields)


def added(before: Hardware, after: Hardware) -> Object:
    """The fields of a manifest that were discovered; empty if none was."""
    absent = missing(before)
    values = {_NAMES[name]: value for name, value in asdict(after).items() if value is not None}
    return {name: value for name, value in values.items() if name in absent}


@dataclass(frozen=True, slots=True)
class _NodeKind:
    """What nodes with the same GPUs have in common. `sku` is "" and `memory` 0 where labels do not say it."""

    sku: str
    count: int
    memory: int
    has_rdma: bool


def _kind_of(node: Node) -> _NodeKind | None:
    labels = node.metadata.labels
    count = _number(labels.get(COUNT)) or _number(node.status.allocatable.get(_RESOURCE))
    if not count:
        return None
    has_rdma = any(labels.get(name) == "true" for name in _RDMA)
    return _NodeKind(sku_of(labels.get(PRODUCT, "")), count, _number(labels.get(MEMORY)), has_rdma)


def _fits(kind: _NodeKind, hardware: Hardware) -> bool:
    return hardware.gpu_sku in (None, kind.sku)


def sku_of(product: str) -> str:
    """The `gpuSku` of a node's label, such as `h100_sxm` of `NVIDIA-H100-80GB-HBM3`; "" if it has none."""
    words = _WORD.findall(product.lower())
    return next(_skus(words), "")


def _skus(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in _BARE:
            yield word
        elif word in _SXM:
            is_pcie = word in _WITH_PCIE and any(form in words for form in _PCIE)
            yield f"{word}_pcie" if is_pcie else f"{word}_sxm"


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
