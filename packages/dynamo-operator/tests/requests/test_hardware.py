"""The GPUs of a request, completed from the labels of nodes."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.requests import v1beta1
from dynamo_operator.requests.hardware import Hardware, added, completed, missing, problem, sku_of
from kube_runtime.types.kinds import Node, NodeStatus
from kube_runtime.types.meta import Metadata

H100 = "NVIDIA-H100-80GB-HBM3"


def a_node(
    product: str = H100, count: int = 8, memory: int = 81559, labels: Mapping[str, str] | None = None
) -> Node:
    """A node with these GPUs."""
    own = {
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.memory": str(memory),
    }
    return Node(Metadata(name="n", labels={**own, **(labels or {})}))


def test_everything_is_discovered_from_nodes_with_labels() -> None:
    nodes = [a_node(labels={"nvidia.com/rdma.present": "true"})] * 2
    expected = Hardware("h100_sxm", 81559, 16, 8, "nvlink", rdma=True)
    assert expected == completed(Hardware(), nodes)
    assert () == missing(expected)
    assert "" == problem(expected)


def test_what_the_request_says_stays() -> None:
    given_ = Hardware(vram_mb=80000, num_gpus_per_node=4, rdma=False, interconnect="pcie")
    assert Hardware("h100_sxm", 80000, 8, 4, "pcie", rdma=False) == completed(given_, [a_node()] * 2)


def test_only_nodes_of_the_named_type_count() -> None:
    nodes = [a_node(), a_node("NVIDIA-L4", 4, 23034), a_node("NVIDIA-L4", 4, 23034)]
    assert Hardware("l4", 23034, 8, 4, rdma=False) == completed(Hardware(gpu_sku="l4"), nodes)
    unknown = Hardware(gpu_sku="t4")
    assert unknown == completed(unknown, nodes)
    assert ("vramMb", "totalGpus", "numGpusPerNode", "interconnect", "rdma") == missing(unknown)


def test_the_best_nodes_have_most_gpus_and_then_most_memory() -> None:
    l40s, a100, h200 = (
        a_node("NVIDIA-L40S", 4),
        a_node("NVIDIA-A100-SXM4-80GB"),
        a_node("NVIDIA-H200", 8, 143771),
    )
    assert "h200_sxm" == completed(Hardware(), [l40s, a100, h200]).gpu_sku
    assert 32 == completed(Hardware(), [a_node()] * 9).total_gpus


def test_without_labels_the_missing_fields_are_named() -> None:
    bare = Node(Metadata(name="n"), NodeStatus({"nvidia.com/gpu": "2", "cpu": "8"}))
    found = completed(Hardware(), [bare, Node(Metadata(name="cpu"))])
    assert Hardware(num_gpus_per_node=2, total_gpus=2, rdma=False) == found
    assert ("gpuSku", "vramMb", "interconnect") == missing(found)
    assert problem(found).startswith("GPU hardware info required but auto-discovery failed. ")
    assert problem(found).endswith("or set spec.hardware.{gpuSku,vramMb,numGpusPerNode} explicitly.")


@pytest.mark.parametrize(
    ("product", "sku"),
    [
        (H100, "h100_sxm"),
        ("NVIDIA-H100-PCIe", "h100_pcie"),
        ("NVIDIA-H100-NVL", "h100_pcie"),
        ("NVIDIA-H200", "h200_sxm"),
        ("NVIDIA-GB200", "gb200_sxm"),
        ("NVIDIA-GB10", "gb10"),
        ("NVIDIA-B200", "b200_sxm"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "a100_sxm"),
        ("NVIDIA-A100-PCIE-40GB", "a100_pcie"),
        ("Tesla-V100-SXM2-16GB", "v100_sxm"),
        ("Tesla-V100-PCIE-16GB", "v100_pcie"),
        ("NVIDIA-A30", "a30"),
        ("NVIDIA-L40S-SHARED", "l40s"),
        ("NVIDIA-L40", "l40"),
        ("Tesla-T4", "t4"),
        ("NVIDIA-GeForce-RTX-4090", ""),
        ("", ""),
    ],
)
def test_the_label_of_a_product_has_a_sku_of_the_schema(product: str, sku: str) -> None:
    assert sku == sku_of(product)
    assert sku in ("", *v1beta1.GPU_MODELS)


def test_a_patch_has_what_was_discovered_only() -> None:
    before = Hardware(gpu_sku="h100_sxm")
    after = completed(before, [a_node()])
    discovered = {
        "vramMb": 81559,
        "numGpusPerNode": 8,
        "totalGpus": 8,
        "interconnect": "nvlink",
        "rdma": False,
    }
    assert discovered == added(before, after)
    assert {} == added(after, after)


def test_the_fields_are_those_of_the_schema() -> None:
    assert v1beta1.Hardware.__struct_encode_fields__ == Hardware.__struct_encode_fields__


NODES = st.lists(
    st.builds(
        a_node,
        st.sampled_from([H100, "NVIDIA-L4", "NVIDIA-Unknown", ""]),
        st.integers(0, 16),
        st.integers(0, 90000),
    ),
    max_size=6,
)
HARDWARE = st.builds(
    Hardware,
    gpu_sku=st.sampled_from([None, "h100_sxm", "t4"]),
    vram_mb=st.none() | st.integers(1, 10**6),
    total_gpus=st.none() | st.integers(1, 64),
)


@given(HARDWARE, NODES)
def test_discovery_only_adds_and_a_second_one_adds_nothing(before: Hardware, nodes: list[Node]) -> None:
    after = completed(before, nodes)
    assert after == completed(before, reversed(nodes))
    assert {} == added(after, completed(after, nodes))
    assert {*missing(after)} <= {*missing(before)}
    assert before.total_gpus == after.total_gpus or (
        before.total_gpus is None and 0 < (after.total_gpus or 0) <= 32
    )
    assert {*added(before, after)} == {*missing(before)} - {*missing(after)}
