"""The spec of a request in v1beta1 as a configuration."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_profiler import Refusal
from dynamo_profiler.configuration import Configuration, read_configuration
from dynamo_profiler.request import configuration_of
from kube_runtime.types.meta import Object


def read(**spec: Any) -> Configuration:
    """The configuration of a request with this spec."""
    return read_configuration(configuration_of({"model": "acme/tiny", **spec}, "team-a"))


def test_what_is_left_out_has_the_defaults_of_later_profilers() -> None:
    configuration = read()
    targets = configuration.targets
    assert (4000, 1000, 2.0, 0.03) == (targets.isl, targets.osl, targets.ttft, targets.itl)
    assert ("acme/tiny", "vllm", None) == (configuration.model, configuration.backend, configuration.online)
    assert configuration.hardware.is_assumed


def test_each_field_has_its_place() -> None:
    configuration = read(
        backend="sglang",
        hardware={"gpuSku": "l4", "numGpusPerNode": 4, "totalGpus": 16, "vramMb": 23034, "rdma": False},
        workload={"isl": 100, "osl": 50, "requestRate": 3},
        sla={"ttft": 300, "itl": 20},
        modelCache={"pvcName": "models", "pvcModelPath": "tiny", "pvcMountPath": "/models"},
        features={"planner": {"a": 1}},
        searchStrategy="rapid",
    )
    hardware, targets = configuration.hardware, configuration.targets
    assert ("sglang", "l4", 4, 16) == (
        *(configuration.backend, hardware.gpu.name, hardware.per_node, configuration.budget),
    )
    assert (100, 50, 0.3, 0.02) == (targets.isl, targets.osl, targets.ttft, targets.itl)
    assert (3, "/models/tiny") == (configuration.requests_per_second, configuration.model_folder)
    assert {"a": 1} == configuration.planner


@pytest.mark.parametrize("is_mocked", [True, False])
def test_a_thorough_search_measures_in_the_namespace(*, is_mocked: bool) -> None:
    features = {"mocker": {"enabled": True}} if is_mocked else {}
    configuration = read(backend="vllm", searchStrategy="thorough", features=features)
    assert configuration.online is not None
    assert ("team-a", is_mocked) == (configuration.online.namespace, configuration.online.is_mocked)


def test_a_concurrency_is_a_rate_at_the_limits() -> None:
    rate = read(workload={"osl": 101, "concurrency": 10}, sla={"ttft": 1000, "itl": 10}).requests_per_second
    assert 5 == rate


def test_a_limit_of_whole_requests_is_divided() -> None:
    targets = read(workload={"osl": 101}, sla={"e2eLatency": 3000}).targets
    assert (1.5, 0.015) == (targets.ttft, targets.itl)
    assert 2 == read(sla={"e2eLatency": 60_000}).targets.ttft


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"searchStrategy": "thorough"},
            'spec.searchStrategy "thorough" is incompatible with spec.backend "auto"',
        ),
        (
            {"workload": {"concurrency": 1, "requestRate": 1}},
            "spec.workload.concurrency and spec.workload.requestRate exclude each other: set one of them",
        ),
        (
            {"sla": {"e2eLatency": 1, "itl": 1}},
            "spec.sla.e2eLatency and spec.sla.itl exclude each other: set one of them",
        ),
        ({"hardware": []}, "spec.hardware must be a mapping"),
        ({"hardware": {"gpuSku": "mi300"}}, 'hardware.gpuType: unknown GPU "mi300"'),
        ({"sla": {"e2eLatency": "fast"}}, "sla.ttft must be a number, and is 'fast'"),
        ({"workload": {"concurrency": "all"}}, "analytic.requestsPerSecond must be a number, and is 'all'"),
    ],
)
def test_what_cannot_be_profiled_is_named(spec: Object, text: str) -> None:
    with pytest.raises(Refusal, match=re.escape(text)):
        read(**spec)


@given(whole=st.floats(1, 1e6), osl=st.integers(2, 10_000))
def test_the_divided_limits_add_up(whole: float, osl: int) -> None:
    targets = read(workload={"osl": osl}, sla={"e2eLatency": whole}).targets
    assert pytest.approx(whole / 1000) == targets.ttft + (osl - 1) * targets.itl
    assert 0 < targets.ttft <= 2
