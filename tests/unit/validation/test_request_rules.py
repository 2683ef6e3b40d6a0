"""What is wrong with a request, and when it is too late to change it."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_operator.api.request import (
    DeploymentOverrides,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    DynamoGraphDeploymentRequestStatus,
    ProfilingConfig,
)
from dynamo_operator.kube.types.meta import Metadata
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation.request import (
    request_problems,
    request_update_problems,
    request_warnings,
)


def a_request(state: str = "", **fields: Any) -> DynamoGraphDeploymentRequest:
    """A request in that state; fields of `profilingConfig` and of the spec by their names."""
    known = ProfilingConfig.__struct_fields__
    own = {name: fields.pop(name) for name in tuple(fields) if name in known}
    profiling = ProfilingConfig(**{"profiler_image": "p:1", **own})
    spec = DynamoGraphDeploymentRequestSpec("m", "vllm", profiling, **fields)
    status = DynamoGraphDeploymentRequestStatus(state=state)
    return DynamoGraphDeploymentRequest(Metadata(name="r", namespace="n"), spec, status)


def said(request: DynamoGraphDeploymentRequest, **settings: Any) -> list[str]:
    """The problems, one line each."""
    return [str(each) for each in request_problems(request, RenderSettings(**settings))]


def test_no_configuration_is_a_configuration() -> None:
    assert [] == said(a_request())


@pytest.mark.parametrize(
    ("fields", "settings", "problem"),
    [
        ({"profiler_image": ""}, {}, "spec.profilingConfig.profilerImage is required"),
        (
            {"config": {"engine": "vllm"}},
            {},
            "spec.profilingConfig.config.engine must be an object, got string",
        ),
        (
            {"env": ({"name": "DGDR_UID"},)},
            {},
            "spec.profilingConfig.env[0].name: DGDR_UID is set by the operator",
        ),
        ({"labels": {"job-name": "x"}}, {}, "spec.profilingConfig.labels[job-name]: it is set by"),
        (
            {"labels": {"batch.kubernetes.io/job-name": "x"}},
            {},
            "spec.profilingConfig.labels[batch.kubernetes.io/job-name]",
        ),
        (
            {"service_account_name": "operator"},
            {"operator_account": "n/operator"},
            "is the account of the operator itself",
        ),
        (
            {"enable_gpu_discovery": True},
            {"restricted_namespace": "n"},
            "spec.enableGpuDiscovery can only be set to true for cluster-wide operators",
        ),
        (
            {"deployment_overrides": DeploymentOverrides(namespace="other")},
            {"restricted_namespace": "n"},
            "spec.deploymentOverrides.namespace is other, and this operator works in namespace n only",
        ),
    ],
)
def test_what_cannot_be_carried_out_is_told(
    fields: dict[str, Any], settings: dict[str, Any], problem: str
) -> None:
    (found,) = said(a_request(**fields), **settings)
    assert problem in found


def test_every_problem_is_told_at_once() -> None:
    bad = a_request(profiler_image="", config={"engine": 1, "deployment": []})
    assert 3 == len(said(bad))


@pytest.mark.parametrize("state", ["", "Pending", "Failed"])
def test_a_spec_may_be_changed_while_nothing_follows_from_it(state: str) -> None:
    changed = a_request(state, auto_apply=True)
    assert [] == [*request_update_problems(a_request(state), changed)]


@pytest.mark.parametrize("state", ["Profiling", "Deploying", "Ready", "DeploymentDeleted"])
def test_a_spec_is_fixed_once_profiling_has_started(state: str) -> None:
    old = a_request(state)
    (problem,) = request_update_problems(old, a_request(state, auto_apply=True))
    assert f"in state '{state}'" in problem.message
    labelled = replace(old, metadata=replace(old.metadata, labels={"a": "b"}))
    assert [] == [*request_update_problems(old, labelled)]


@pytest.mark.parametrize("state", ["Profiling", "Deploying", "Ready", "DeploymentDeleted"])
def test_the_accepted_spec_may_be_restored(state: str) -> None:
    accepted, edited = a_request(state), a_request(state, auto_apply=True)
    kept = msgspec.json.decode(msgspec.json.encode(accepted.spec))
    stored = replace(edited, status=replace(edited.status, accepted_spec=kept))
    assert [] == [*request_update_problems(stored, accepted)]
    assert 1 == len([*request_update_problems(stored, a_request(state, use_mocker=True))])


def test_values_that_others_take_the_place_of_are_warned_of() -> None:
    config = {"engine": {"backend": "sglang"}, "deployment": {"model": "x"}, "output_dir": "/x"}
    assert [
        "spec.profilingConfig.config.engine.backend (sglang) will be overwritten by spec.backend (vllm)",
        "spec.profilingConfig.config.deployment.model (x) will be overwritten by spec.model (m)",
        (
            "spec.profilingConfig.config.output_dir (/x) will be overwritten by /data, from where "
            "results are read"
        ),
    ] == [str(each) for each in request_warnings(a_request(config=config))]
