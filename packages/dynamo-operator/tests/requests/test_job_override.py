"""A partial JobSpec merged over the generated profiling Job."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.job_override import overridden_job
from dynamo_operator.requests.render import profiling_job
from dynamo_operator.settings import RenderSettings
from kube_runtime.merge import MergeError
from kube_runtime.schema import embedded
from kube_runtime.types.meta import Metadata, Object
from simulated import requests

SPEC = requests.a_spec(model="acme/tiny", backend="vllm", config={})
REQUEST = Request(
    Metadata(name="r", namespace="team-a", uid="u-1"), SPEC, RequestStatus(observed_generation=1)
)
JOB = profiling_job(REQUEST, SPEC, RenderSettings(operator_image="operator:1"))


def merged(override: Object) -> tuple[Object, list[str]]:
    """The spec of the Job with this override, and the warnings."""
    result = overridden_job(JOB, override, embedded("JobSpec"))
    assert {**JOB, "spec": None} == {**result.job, "spec": None}
    return result.job["spec"], [str(warning) for warning in result.warnings]


def of_pod(**fields: Any) -> Object:
    """An override of these fields of the pod."""
    return {"template": {"spec": fields}}


def the_profiler(spec: Object) -> Object:
    """The profiler's container."""
    (profiler, copier) = spec["template"]["spec"]["containers"]
    assert ("profiler", "output-copier") == (profiler["name"], copier["name"])
    found: Object = profiler
    return found


def test_without_an_override_the_job_is_as_generated() -> None:
    assert (JOB["spec"], []) == merged({})
    assert (JOB["spec"], []) == merged(of_pod(containers=[]))


def test_numbers_labels_and_placement_are_merged() -> None:
    metadata = {"labels": {"team": "search"}, "annotations": {"a": "b"}}
    pod = {"priorityClassName": "low", "securityContext": {"runAsUser": 7}, "schedulerName": "mine"}
    spec, warnings = merged({"backoffLimit": 0, "template": {"metadata": metadata, "spec": pod}})
    assert [] == warnings
    template = spec["template"]
    assert (0, 86400) == (spec["backoffLimit"], spec["activeDeadlineSeconds"])
    assert {"team": "search", "dgdr.nvidia.com/name": "r"} == template["metadata"]["labels"]
    assert {"a": "b"} == template["metadata"]["annotations"]
    assert ("low", "mine") == (template["spec"]["priorityClassName"], template["spec"]["schedulerName"])
    context = {"runAsNonRoot": True, "runAsUser": 7, "runAsGroup": 1000, "fsGroup": 1000}
    assert context == template["spec"]["securityContext"]


def test_the_job_stays_long_enough_to_be_read() -> None:
    spec, _ = merged({"ttlSecondsAfterFinished": 0})
    assert 60 == spec["ttlSecondsAfterFinished"]


@pytest.mark.parametrize("name", [{}, {"name": ""}, {"name": "main"}])
def test_the_first_container_is_the_profiler_whatever_its_name(name: Object) -> None:
    change = {**name, "resources": {"limits": {"nvidia.com/gpu": "1"}}, "env": [{"name": "A", "value": "1"}]}
    spec, warnings = merged(of_pod(containers=[change]))
    assert [] == warnings
    profiler, before = the_profiler(spec), the_profiler(JOB["spec"])
    assert {"limits": {"nvidia.com/gpu": "1"}} == profiler["resources"]
    assert [*before["env"], {"name": "A", "value": "1"}] == profiler["env"]
    assert before["args"] == profiler["args"]


def test_a_variable_of_the_override_replaces_that_of_the_operator() -> None:
    token = {"name": "HUGGING_FACE_HUB_TOKEN", "value": "t"}
    spec, _ = merged(of_pod(containers=[{"env": [token]}]))
    assert [token] == [each for each in the_profiler(spec)["env"] if each["name"] == token["name"]]


def test_volumes_and_init_containers_are_added_beside_those_of_the_operator() -> None:
    pod = of_pod(
        volumes=[{"name": "scratch", "emptyDir": {}}],
        initContainers=[{"name": "first", "image": "busybox"}],
        containers=[{"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}],
    )
    spec, warnings = merged(pod)
    assert [] == warnings
    own = JOB["spec"]["template"]["spec"]["volumes"]
    assert [*own, {"name": "scratch", "emptyDir": {}}] == spec["template"]["spec"]["volumes"]
    assert [{"name": "first", "image": "busybox"}] == spec["template"]["spec"]["initContainers"]
    assert "/scratch" in [mount["mountPath"] for mount in the_profiler(spec)["volumeMounts"]]


def test_the_copier_may_have_another_image() -> None:
    containers = [{"name": "main"}, {"name": "output-copier", "image": "mirror/operator:1", "args": ["x"]}]
    spec, warnings = merged(of_pod(containers=containers))
    copier, before = (each["template"]["spec"]["containers"][1] for each in (spec, JOB["spec"]))
    assert {**before, "image": "mirror/operator:1"} == copier
    path = "spec.overrides.profilingJob.template.spec.containers[1].args"
    assert [f"{path}: ignored: the operator sets it"] == warnings


@pytest.mark.parametrize(
    ("override", "path", "reason"),
    [
        ({"parallelism": 2}, "parallelism", "the operator sets it"),
        ({"podFailurePolicy": {"rules": []}}, "podFailurePolicy", "the operator sets it"),
        (of_pod(serviceAccountName="admin"), "template.spec.serviceAccountName", "the operator sets it"),
        (of_pod(restartPolicy="OnFailure"), "template.spec.restartPolicy", "the operator sets it"),
        (of_pod(hostNetwork=True), "template.spec.hostNetwork", "the operator sets it"),
        (
            of_pod(containers=[{"command": ["sh"]}]),
            "template.spec.containers[0].command",
            "the operator sets it",
        ),
        (
            of_pod(containers=[{"env": [{"name": "DGDR_UID", "value": "u"}]}]),
            "template.spec.containers[0].env[0]",
            '"DGDR_UID" is the operator\'s own',
        ),
        (
            of_pod(containers=[{"volumeMounts": [{"name": "x", "mountPath": "/data"}]}]),
            "template.spec.containers[0].volumeMounts[0]",
            '"/data" is the operator\'s own',
        ),
        (
            of_pod(volumes=[{"name": "profiling-output", "emptyDir": {}}]),
            "template.spec.volumes[0]",
            '"profiling-output" is the operator\'s own',
        ),
        (
            of_pod(initContainers=[{"name": "output-copier", "image": "x"}]),
            "template.spec.initContainers[0]",
            '"output-copier" is the operator\'s own',
        ),
        (
            of_pod(containers=[{}, {"name": "more", "image": "x"}]),
            "template.spec.containers[1]",
            "the Job has the containers profiler and output-copier only",
        ),
        (
            {"template": {"metadata": {"labels": {"dgdr.nvidia.com/name": "other"}}}},
            "template.metadata.labels.dgdr.nvidia.com/name",
            "the operator sets it",
        ),
        ({"template": {"metadata": {"name": "x"}}}, "template.metadata.name", "the operator sets it"),
    ],
)
def test_what_results_depend_on_stays_and_is_warned_of(override: Object, path: str, reason: str) -> None:
    spec, warnings = merged(override)
    assert [f"spec.overrides.profilingJob.{path}: ignored: {reason}"] == warnings
    assert JOB["spec"] == spec


def test_a_value_that_cannot_be_merged_is_named() -> None:
    with pytest.raises(MergeError) as error:
        merged(of_pod(tolerations={"key": "x"}))
    assert (("template", "spec", "tolerations"), "must be a list") == (error.value.path, error.value.text)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["profiler", "output-copier", "DGDR_UID", "/data"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "template",
                    "spec",
                    "metadata",
                    "labels",
                    "containers",
                    "env",
                    "name",
                    "volumes",
                    "volumeMounts",
                ]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["template", "completions", "backoffLimit"]), VALUES))
def test_no_override_changes_what_the_profiler_runs_and_the_copier_writes(override: Object) -> None:
    try:
        spec, _ = merged(override)
    except MergeError:
        return
    (profiler, copier) = spec["template"]["spec"]["containers"][:2]
    before, own_copier = JOB["spec"]["template"]["spec"]["containers"]
    for field in ("name", "image", "command", "args", "terminationMessagePolicy"):
        assert before[field] == profiler[field]
    assert own_copier == {**copier, "image": own_copier["image"]}
    own = [each for each in profiler["env"] if each["name"].startswith("DGDR_")]
    assert [each for each in before["env"] if each["name"].startswith("DGDR_")] == own
