"""The fields of a request that only v1beta1 has, read from a request in v1alpha1."""

import json
from typing import Any

import pytest

from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.extras import Extras, Latency, Load, Overrides, extras_of
from dynamo_operator.requests.hardware import Hardware
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Metadata, Object, from_plain

DGD: Object = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "mine"},
}


def converted(**spec: Any) -> Request:
    """A request that was written in v1beta1 with this spec, in v1alpha1."""
    document = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": {"name": "r", "namespace": "n"},
        "spec": {"model": "m", "backend": "vllm", **spec},
    }
    return from_plain(convert(document, "nvidia.com/v1alpha1"), Request)


def test_each_field_that_v1alpha1_lacks_is_read() -> None:
    job = {"backoffLimit": 1, "template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}
    request = converted(
        hardware={"gpuSku": "h100_sxm", "totalGpus": 8},
        workload={"isl": 1, "concurrency": 2.5},
        sla={"ttft": 1, "e2eLatency": 900},
        overrides={"profilingJob": job, "dgd": DGD},
        searchStrategy="thorough",
    )
    expected = Extras(
        Hardware("h100_sxm", total_gpus=8),
        Load(2.5),
        Latency(900),
        Overrides({"backoffLimit": 1}, DGD),
        "thorough",
    )
    assert expected == extras_of(request.metadata)
    assert request.spec is not None
    assert ({"operator": "Exists"},) == request.spec.profiling_config.tolerations


def test_a_request_without_them_has_none() -> None:
    assert Extras() == extras_of(converted().metadata)
    assert Extras() == extras_of(Metadata(name="r"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"spec": {"searchStrategy": "slow"}}',
        json.dumps({"spec": {"hardware": {"gpuSku": 1}}}),
    ],
)
def test_an_annotation_that_conversion_did_not_write_says_nothing(text: str) -> None:
    assert Extras() == extras_of(Metadata(name="r", annotations={"nvidia.com/dgdr-spec": text}))
