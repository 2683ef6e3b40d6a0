"""The fake nodes, which kwok keeps ready: their resources and labels."""

from kube_runtime.kind import Object

GPUS_PER_NODE = 8
_RESOURCES = {
    "cpu": "64",
    "memory": "512Gi",
    "ephemeral-storage": "1Ti",
    "pods": "110",
    "nvidia.com/gpu": str(GPUS_PER_NODE),
}
_GPU_LABELS = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.count": str(GPUS_PER_NODE),
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
}
"""The labels of the NVIDIA GPU feature discovery."""


def node_name(index: int) -> str:
    """The name of the node with this index, from 0."""
    return f"gpu-{index}"


def node(index: int) -> Object:
    """The Node with this index."""
    name = node_name(index)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **_GPU_LABELS,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": _RESOURCES, "allocatable": _RESOURCES},
    }


def node_list(count: int) -> Object:
    """The first `count` nodes as one List."""
    return {"apiVersion": "v1", "kind": "List", "items": [node(index) for index in range(count)]}
