"""Results count only if pods of the request's own Job confirm them."""

import hashlib

import pytest
from msgspec.structs import replace

from dynamo_operator.requests.api import (
    DeploymentOverrides,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    JobInFull,
    JobPodInFull,
    JobPodStatus,
    JobSpec,
    PodTemplate,
    ProfilingConfig,
)
from dynamo_operator.requests.plan import is_confirmed, is_signed, require_confirmed
from dynamo_operator.requests.results import BadOutput
from kube_runtime.types.kinds import ContainerState, ContainerStatus, Terminated
from kube_runtime.types.meta import Metadata, Object, OwnerReference

TOKEN = {
    "name": "kube-api-access-x",
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}
RESULTS = {"name": "results", "mountPath": "/data"}
TEMPLATE: Object = {
    "serviceAccountName": "profiling",
    "containers": [
        {"name": "profiler", "image": "p:1", "args": ["a"], "volumeMounts": [RESULTS]},
        {"name": "output-copier", "image": "o:1", "volumeMounts": [RESULTS]},
    ],
    "volumes": [{"name": "results", "emptyDir": {}}],
}
JOB = JobInFull(Metadata(name="profile-r", namespace="n", uid="job"), spec=JobSpec(PodTemplate(TEMPLATE)))
DATA = {"config_with_planner.yaml": "graph", "profiler_status.yaml": "phase: Done"}


def report(**files: str) -> str:
    """The lines of sha256sum."""
    return "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}.yaml\n" for name, text in files.items()
    )


def running(change: Object, *, of: str = "") -> Object:
    """The template's pod spec with a change, of the container `of` or of the whole spec."""
    if not of:
        return {**TEMPLATE, **change}
    containers = [
        {**container, **change} if container["name"] == of else container
        for container in TEMPLATE["containers"]
    ]
    return {**TEMPLATE, "containers": containers}


def pod(
    message: str,
    *,
    owner: str = "job",
    container: str = "output-copier",
    code: int = 0,
    spec: Object = TEMPLATE,
) -> JobPodInFull:
    """A pod whose container has ended with that message."""
    reference = OwnerReference(
        api_version="batch/v1", kind="Job", name="profile-r", uid=owner, controller=True
    )
    ended = ContainerState(terminated=Terminated(code, message=message))
    status = JobPodStatus(container_statuses=(ContainerStatus(container, state=ended),))
    metadata = Metadata(name="p", namespace="n", owner_references=(reference,))
    return JobPodInFull(metadata, spec=spec, status=status)


def test_what_the_job_wrote_is_signed() -> None:
    assert is_signed(JOB, [pod(report(config_with_planner="graph"))], DATA)


@pytest.mark.parametrize(
    "message",
    [
        report(config_with_planner="other"),
        report(config_with_planner="graph", mocker_config_with_planner="other"),
        report(mocker_config_with_planner="graph"),
    ],
)
def test_anything_else_is_refused(message: str) -> None:
    with pytest.raises(BadOutput, match="something else changed it"):
        is_signed(JOB, [pod(message)], DATA)


@pytest.mark.parametrize(
    "found",
    [
        pod(report(config_with_planner="graph"), owner="another"),
        pod(report(config_with_planner="graph"), container="profiler"),
        pod(report(config_with_planner="graph"), code=1),
        pod("all is well"),
        pod(""),
    ],
)
def test_pods_of_others_and_other_words_sign_nothing(found: JobPodInFull) -> None:
    assert not is_signed(JOB, [found], DATA)
    assert not is_signed(None, [pod(report(config_with_planner="graph"))], DATA)


def test_pods_that_report_different_results_confirm_none() -> None:
    pods = [pod(report(config_with_planner=text)) for text in ("graph", "other")]
    with pytest.raises(BadOutput, match="something else changed it"):
        is_signed(JOB, pods, DATA)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        running({"serviceAccountName": "another"}),
        running({"shareProcessNamespace": True}),
        running({"hostPID": True}),
        running({"volumes": [{"name": "results", "configMap": {"name": "forged"}}]}),
        running({"image": "forged:1"}, of="output-copier"),
        running({"command": ["sh"]}, of="output-copier"),
        running({"args": ["b"]}, of="profiler"),
        running({"env": [{"name": "PYTHONPATH", "value": "/forged"}]}, of="profiler"),
        running({"envFrom": [{"secretRef": {"name": "forged"}}]}, of="profiler"),
        running({"lifecycle": {"postStart": {"exec": {"command": ["sh"]}}}}, of="profiler"),
        running({"volumeMounts": []}, of="profiler"),
        running(
            {"volumeMounts": [RESULTS, {"name": "forged", "mountPath": "/data/graph.yaml"}]},
            of="output-copier",
        ),
        running({"initContainers": [{"name": "i", "volumeMounts": [RESULTS]}]}),
        running({"ephemeralContainers": [{"name": "e", "volumeMounts": [RESULTS]}]}),
        running({"containers": [*TEMPLATE["containers"], {"name": "s", "volumeMounts": [RESULTS]}]}),
        running({"containers": TEMPLATE["containers"][1:]}),
    ],
)
def test_a_pod_that_runs_something_else_confirms_nothing(spec: Object) -> None:
    assert not is_signed(JOB, [pod(report(config_with_planner="graph"), spec=spec)], DATA)


def test_what_admission_adds_to_pods_does_no_harm() -> None:
    sidecar = {"name": "s", "image": "s:1", "volumeMounts": [TOKEN]}
    spec = running({"volumeMounts": [RESULTS, TOKEN]}, of="profiler")
    spec = {**spec, "containers": [*spec["containers"], sidecar], "nodeName": "a"}
    assert is_signed(JOB, [pod(report(config_with_planner="graph"), spec=spec)], DATA)


COPYING = running({"args": ["copy-output", "n"]}, of="output-copier")


def test_a_graph_is_created_only_from_results_that_a_pod_of_the_job_reports() -> None:
    job = replace(JOB, spec=JobSpec(PodTemplate(COPYING)))
    mutated = pod(report(config_with_planner="graph"), spec={})
    assert is_confirmed(job, [mutated]), "admission may change the pods of a namespace"
    for pods in ([], [pod("")], [pod(report(config_with_planner="graph"), owner="another")]):
        assert not is_confirmed(job, pods)
    assert not is_confirmed(None, [mutated])
    assert is_confirmed(JOB, []), "the copier of an earlier operator reports nothing"


def test_what_is_not_confirmed_is_refused_as_far_as_its_use_requires() -> None:
    job = replace(JOB, spec=JobSpec(PodTemplate(COPYING)))
    config = ProfilingConfig("p:1")
    spec = DynamoGraphDeploymentRequestSpec("m", "vllm", config)
    request = DynamoGraphDeploymentRequest(Metadata(name="r", namespace="n"), spec)
    require_confirmed(request, spec, job, [], DATA)
    applied = replace(spec, auto_apply=True)
    with pytest.raises(BadOutput, match="review ConfigMap dgdr-output-r"):
        require_confirmed(request, applied, job, [], DATA)
    require_confirmed(request, applied, JOB, [], DATA)
    elsewhere = replace(applied, deployment_overrides=DeploymentOverrides(namespace="other"))
    with pytest.raises(BadOutput, match="objects in namespace other"):
        require_confirmed(request, elsewhere, JOB, [], DATA)
