"""Problems of a request, and when it is too late to change it."""

from typing import Any

import pytest
from msgspec.structs import replace

from dynamo_operator.requests.api import DeploymentOverrides, as_text
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.render import profiler_config_text
from dynamo_operator.requests.validate import request_problems, request_update_problems, request_warnings
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Metadata
from simulated.requests import a_spec

CONFIG = "spec.profilingConfig.config"
EXAMPLE = 'for example {"name": "HF_HOME", "value": "/cache"}'


def a_request(state: str = "", **fields: Any) -> Request:
    """A request in that state; fields of `profilingConfig` and of the spec by their names."""
    return Request(Metadata(name="r", namespace="n"), a_spec(**fields), RequestStatus(state=state))


def problems_of(request: Request, **settings: Any) -> list[str]:
    """The problems, one line each."""
    return [str(problem) for problem in request_problems(request, RenderSettings(**settings))]


OWN, ONLY = {"operator_account": "n/operator"}, {"restricted_namespace": "n"}


@pytest.mark.parametrize(
    ("fields", "settings", "problem"),
    [
        ({"profiler_image": ""}, {}, "spec.profilingConfig.profilerImage is required"),
        ({"config": {"engine": "vllm"}}, {}, f"{CONFIG}.engine must be an object, got string"),
        ({"env": ({"name": "DGDR_UID"},)}, {}, ".env[0].name: reserved: the operator sets DGDR_UID"),
        ({"labels": {"job-name": "x"}}, {}, ".labels[job-name]: reserved: the operator or the Job"),
        ({"labels": {"batch.kubernetes.io/job-name": "x"}}, {}, ".labels[batch.kubernetes.io/job-name]"),
        ({"service_account_name": "operator"}, OWN | ONLY, "is the operator's own ServiceAccount"),
        ({}, OWN, "metadata.namespace n is the operator's own"),
        ({"enable_gpu_discovery": True}, ONLY, "spec.enableGpuDiscovery can only be set to true for"),
        (
            {"deployment_overrides": DeploymentOverrides(namespace="other")},
            *(
                ONLY,
                "spec.deploymentOverrides.namespace is other, but this operator works in namespace n only",
            ),
        ),
    ],
)
def test_one_problem_is_reported(fields: dict[str, Any], settings: dict[str, Any], problem: str) -> None:
    (reported,) = problems_of(a_request(**fields), **settings)
    assert problem in reported


@pytest.mark.parametrize(
    "config", [None, {**dict.fromkeys(("engine", "deployment", "sla", "sweep", "planner")), "analytic": 1}]
)
def test_no_configuration_and_sections_that_say_nothing_are_fine(config: dict[str, Any] | None) -> None:
    assert [] == problems_of(a_request(config=config))


def test_every_problem_is_reported_at_once() -> None:
    config = {
        "engine": 0,
        "deployment": {
            "modelCache": {"pvcName": 3, "mountPath": ["/x"]},
            "envs": [{"name": "A"}, {"value": "b"}],
        },
        "sla": "",
        "sweep": False,  # empty, and yet of another form
        "hardware": [],
        "planner": 1.5,
    }
    assert [
        f"{CONFIG}.deployment.envs[1] must be an environment variable, {EXAMPLE}",
        f"{CONFIG}.deployment.modelCache.mountPath must be a string, got array",
        f"{CONFIG}.deployment.modelCache.pvcName must be a string, got number",
        f"{CONFIG}.engine must be an object, got number",
        f"{CONFIG}.hardware must be an object, got array",
        f"{CONFIG}.planner must be an object, got number",
        f"{CONFIG}.sla must be an object, got string",
        f"{CONFIG}.sweep must be an object, got boolean",
        "spec.profilingConfig.profilerImage is required",
    ] == problems_of(a_request(profiler_image="", config=config))


def test_a_configuration_is_as_large_as_one_argument_may_be_and_no_larger() -> None:
    def of(size: int) -> dict[str, Any]:
        return {"config": {"note": "x" * size}}

    room = 131_071 - len(profiler_config_text(a_spec(**of(0)), "n").encode())
    # Without a text there are two quotes in its place.
    assert 131_071 == len(profiler_config_text(a_spec(**of(room + 2)), "n").encode())
    assert [] == problems_of(a_request(**of(room + 2)))
    for size, said in ((room + 3, "has 131072 bytes, but the profiler receives"), (5_000_000, "has ")):
        (problem,) = problems_of(a_request(**of(size)))
        assert problem.startswith(f"spec.profilingConfig.config {said}")


def test_lines_that_only_depth_makes_long_count() -> None:
    config: Any = {str(number): number for number in range(1000)}
    for _ in range(90):
        config = {"a": config}
    (problem,) = problems_of(a_request(config=config))
    assert problem.startswith("spec.profilingConfig.config has 199140 bytes")


@pytest.mark.parametrize("depth", [101, 900])
def test_a_configuration_that_no_reader_takes_is_refused(depth: int) -> None:
    config: Any = 1
    for _ in range(depth):
        config = {"a": config}
    expected = "spec.profilingConfig.config must not nest deeper than 100 levels"
    assert [expected] == problems_of(a_request(config=config))


def test_a_variable_that_no_process_can_have_is_refused() -> None:
    env = ({"name": "A", "value": "x" * 10}, {"name": "BIG", "value": "x" * 131_068})
    (problem,) = problems_of(a_request(env=env))
    assert problem.startswith("spec.profilingConfig.env[1].value makes a variable of 131072 bytes")
    fitting = ({"name": "BIG", "value": "x" * 131_067},)
    assert [] == problems_of(a_request(env=fitting))


def test_a_spec_that_cannot_be_stored_twice_is_refused() -> None:
    env = tuple({"name": f"V{number}", "value": "x" * 1000} for number in range(200))
    (problem,) = problems_of(a_request(env=env))
    assert problem.startswith("spec: the spec has 20")
    assert "limit 200000" in problem


@pytest.mark.parametrize("state", ["", "Pending", "Failed"])
def test_a_spec_may_be_changed_while_no_profiling_runs(state: str) -> None:
    changed = a_request(state, auto_apply=True)
    assert [] == [*request_update_problems(a_request(state), changed)]


@pytest.mark.parametrize("state", ["Profiling", "Deploying", "Ready", "DeploymentDeleted"])
def test_a_spec_is_fixed_once_profiling_has_started(state: str) -> None:
    old = a_request(state)
    (problem,) = request_update_problems(old, a_request(state, auto_apply=True))
    assert f"in state '{state}'" in problem.message
    labelled = replace(old, metadata=replace(old.metadata, labels={"a": "b"}))
    assert [] == [*request_update_problems(old, labelled)]
    kept, edited = as_text(old.spec), a_request(state, auto_apply=True)
    stored = replace(edited, status=replace(edited.status, accepted_spec=kept))
    assert [] == [*request_update_problems(stored, old)], "it may be restored"
    assert 1 == len([*request_update_problems(stored, a_request(state, use_mocker=True))])


def test_values_that_others_take_the_place_of_are_warned_of() -> None:
    config = {"engine": {"backend": "sglang"}, "deployment": {"model": "x"}, "output_dir": "/x"}
    assert [
        "spec.profilingConfig.config.engine.backend (sglang) will be overwritten by spec.backend (vllm)",
        "spec.profilingConfig.config.deployment.model (x) will be overwritten by spec.model (m)",
        (
            "spec.profilingConfig.config.output_dir (/x) will be overwritten by /data, from "
            "which the operator reads results"
        ),
    ] == [str(warning) for warning in request_warnings(a_request(config=config))]
