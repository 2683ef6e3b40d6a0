"""Results count as the Job's own if the status of one of its pods has their digests."""

import hashlib

import pytest

from dynamo_graphs.plan.request_digest import is_signed
from dynamo_graphs.plan.request_output import BadOutput
from kube_runtime.types.batch import Job, JobPod, JobPodStatus
from kube_runtime.types.core import ContainerState, ContainerStatus, Terminated
from kube_runtime.types.meta import Metadata, OwnerReference

JOB = Job(Metadata(name="profile-r", namespace="n", uid="job"))
DATA = {"config_with_planner.yaml": "graph", "profiler_status.yaml": "phase: Done"}


def report(**files: str) -> str:
    """The lines of sha256sum."""
    return "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}.yaml\n"
        for name, text in files.items()
    )


def pod(
    message: str, *, owner: str = "job", container: str = "output-copier", code: int = 0
) -> JobPod:
    """A pod whose container has ended with that message."""
    reference = OwnerReference(
        api_version="batch/v1", kind="Job", name="profile-r", uid=owner, controller=True
    )
    ended = ContainerState(terminated=Terminated(code, message=message))
    status = JobPodStatus(container_statuses=(ContainerStatus(container, state=ended),))
    return JobPod(Metadata(name="p", namespace="n", owner_references=(reference,)), status=status)


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
def test_pods_of_others_and_other_words_sign_nothing(found: JobPod) -> None:
    assert not is_signed(JOB, [found], DATA)
    assert not is_signed(None, [pod(report(config_with_planner="graph"))], DATA)
