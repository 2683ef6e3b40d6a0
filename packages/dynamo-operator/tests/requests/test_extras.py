"""The fields of a request that only v1beta1 has, read from a request in v1alpha1."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dynamo_operator.requests import api
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.extras import (
    Extras,
    Latency,
    Load,
    Overrides,
    accepted,
    extras_in,
    extras_of,
    with_extras,
)
from dynamo_operator.requests.hardware import Hardware
from dynamo_operator.requests.validate import request_update_problems
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Metadata, Object, from_json, from_plain

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


def test_an_accepted_spec_keeps_the_extras_that_it_was_accepted_with() -> None:
    request = converted(searchStrategy="thorough")
    assert request.spec is not None
    text = with_extras(request.spec, request.metadata)
    assert request.spec == from_json(text, type(request.spec))
    assert Extras(search_strategy="thorough") == extras_in(text)
    metadata = replace(request.metadata, uid="u", generation=1)
    accepted_ = replace(request, metadata=metadata, status=RequestStatus(accepted_spec=text))
    recorded = replace(metadata, annotations=api.annotation(api.with_spec(accepted_)))
    assert Extras(search_strategy="thorough") == accepted(replace(accepted_, metadata=recorded))
    assert Extras() == accepted(replace(request, metadata=replace(metadata, annotations={})))


def test_without_extras_an_accepted_spec_is_the_spec_alone() -> None:
    request = converted()
    assert request.spec is not None
    assert api.as_text(request.spec) == with_extras(request.spec, request.metadata)


def test_extras_are_fixed_with_the_spec() -> None:
    old, new = converted(searchStrategy="rapid"), converted(searchStrategy="thorough")
    for state, count in (("Profiling", 1), ("Ready", 1), ("Failed", 0), ("Pending", 0)):
        before = replace(old, status=RequestStatus(state=state))
        assert count == len(list(request_update_problems(before, new)))
        assert [] == list(request_update_problems(before, old))


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
