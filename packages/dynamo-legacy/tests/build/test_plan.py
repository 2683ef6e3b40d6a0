"""What a request needs next, from each state that a build can be in."""

import base64
import zlib
from typing import Any

import pytest

from dynamo_legacy.api import (
    DynamoNim,
    DynamoNimRequest,
    DynamoNimRequestSpec,
    DynamoNimRequestStatus,
    DynamoNimSpec,
)
from dynamo_legacy.build.job import FETCHER, FORCE, HASH, build_hash, job_name
from dynamo_legacy.build.plan import (
    BuildFacts,
    BuildPlan,
    Next,
    Probe,
    Reason,
    believed_config,
    dynamo_nim,
    fetched_config,
    plan_build,
    request_status,
)
from dynamo_legacy.names import BuildJob, BuildPod
from dynamo_operator.requests.api import JobPodStatus
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.types.kinds import ContainerState, ContainerStatus, JobStatus, Terminated
from kube_runtime.types.meta import Condition, Metadata

IMAGE = "registry.example.com/a:1"


def request(annotations: dict[str, str] | None = None, *conditions: Condition) -> DynamoNimRequest:
    return DynamoNimRequest(
        metadata=Metadata(name="r", namespace="n", generation=3, annotations=annotations or {}),
        spec=DynamoNimRequestSpec(bento_tag="a:1"),
        status=DynamoNimRequestStatus(conditions=conditions),
    )


def job(made_of: DynamoNimRequest, *ends: tuple[str, str]) -> BuildJob:
    """The Job of a request, with conditions from pairs of type and reason."""
    conditions = tuple(Condition(type_, "True", reason) for type_, reason in ends)
    name = job_name(made_of)
    return BuildJob(metadata=Metadata(name=name), status=JobStatus(conditions=conditions))


def pod(made_of: DynamoNimRequest, container: str, code: int, text: str) -> BuildPod:
    """A pod of that Job, one container of which has ended."""
    ended = ContainerState(terminated=Terminated(exit_code=code, message=text))
    status = ContainerStatus(name=container, state=ended)
    is_first = container == FETCHER
    pod_status = JobPodStatus(
        init_container_statuses=(status,) if is_first else (),
        container_statuses=() if is_first else (status,),
    )
    labels = {"job-name": job_name(made_of)}
    return BuildPod(metadata=Metadata(name="p", labels=labels), status=pod_status)


def statuses(plan: BuildPlan) -> dict[str, str]:
    return {reported.type: reported.status for reported in plan.conditions}


def message(plan: BuildPlan, type_: str) -> str:
    return next(reported.message for reported in plan.conditions if reported.type == type_)


@pytest.mark.parametrize(
    ("probe", "step", "expected", "said"),
    [
        (None, Next.PROBE, ("Unknown", "Unknown"), {}),
        (Probe(exists=True), *(Next.RECORD, ("False", "True", "True", "True"), {"ImageExists": IMAGE})),
        (
            Probe(),
            *(Next.BUILD, ("Unknown", "Unknown", "False", "False")),
            {"ImageExistsChecked": f"Image not exists: {IMAGE}"},
        ),
        (
            Probe(error="r: too many requests", retry_seconds=90),
            *(Next.NOTHING, ("Unknown", "Unknown"), {"DynamoNimAvailable": "r: too many requests"}),
        ),
    ],
    ids=["not asked", "there", "missing", "no answer"],
)
def test_an_image_is_asked_for_and_recorded_or_built(
    probe: Probe | None, step: Next, expected: tuple[str, ...], said: dict[str, str]
) -> None:
    plan = plan_build(request(), BuildFacts(IMAGE, probe=probe))
    assert step is plan.step
    types = ("ImageBuilding", "DynamoNimAvailable", "ImageExists", "ImageExistsChecked")
    assert dict(zip(types, expected, strict=False)) == statuses(plan)
    assert said == {type_: message(plan, type_) for type_ in said}
    assert plan.requeue_after_seconds == (90 if probe and probe.error else None)


def test_what_was_found_once_is_not_asked_again() -> None:
    made = {HASH: build_hash(request())}  # an earlier operator records no hash
    for nim in (DynamoNim(spec=DynamoNimSpec(image=IMAGE)), DynamoNim(Metadata(annotations=made))):
        plan = plan_build(request(), BuildFacts(IMAGE, nim=nim))
        assert (Next.RECORD, "True") == (plan.step, statuses(plan)["ImageExistsChecked"]), "killed in between"
        told = request(None, Condition("ImageExistsChecked", "False", "Probing", "a build has said so"))
        assert "ImageExistsChecked" not in statuses(plan_build(told, BuildFacts(IMAGE, nim=nim)))
    different = DynamoNim(spec=DynamoNimSpec(image="another:1"))
    assert Next.PROBE is plan_build(request(), BuildFacts(IMAGE, nim=different)).step


def test_a_forged_status_creates_no_image() -> None:
    types = ("ImageExists", "ImageExistsChecked", "DynamoNimAvailable", "ImageBuilding")
    forged = request(None, *(Condition(type_, "True", "Succeeded", IMAGE) for type_ in types))
    assert Next.PROBE is plan_build(forged, BuildFacts(IMAGE)).step
    assert Next.BUILD is plan_build(forged, BuildFacts(IMAGE, probe=Probe())).step


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_a_job_that_runs_is_waited_for(phase: str) -> None:
    made_of = request()
    status = JobPodStatus(phase=phase)
    job_pod = BuildPod(metadata=Metadata(labels={"job-name": job_name(made_of)}), status=status)
    plan = plan_build(made_of, BuildFacts(IMAGE, [job(made_of)], [job_pod]))
    assert Next.WAIT is plan.step
    assert {"Pending": "Unknown", "Running": "True"}[phase] == statuses(plan)["ImageBuilding"]
    assert "False" == statuses(plan)["ImageExistsChecked"]  # a Job says so to who did not ask


def test_a_job_that_succeeded_gives_the_image() -> None:
    made_of = request()
    plan = plan_build(made_of, BuildFacts(IMAGE, [job(made_of, ("Complete", ""))]))
    assert (Next.RECORD, "True") == (plan.step, statuses(plan)["ImageExists"])
    assert "False" == statuses(plan)["ImageExistsChecked"]
    assert f"Image building job {job_name(made_of)} is succeeded." == message(plan, "ImageBuilding")


def test_a_failed_job_says_the_last_line_of_its_log() -> None:
    made_of = request()
    log = "#5 RUN pip install x\nerror: failed to solve: exit code 1\n"
    facts = BuildFacts(
        IMAGE, [job(made_of, ("Failed", "PodFailurePolicy"))], [pod(made_of, "builder", 1, log)]
    )
    plan = plan_build(made_of, facts)
    assert Next.NOTHING is plan.step
    assert "False" == statuses(plan)["DynamoNimAvailable"] == statuses(plan)["ImageExistsChecked"]
    assert message(plan, "DynamoNimAvailable").endswith(
        "is failed. builder: error: failed to solve: exit code 1 (exit code 1)"
    )


def test_a_job_that_took_too_long_says_so() -> None:
    made_of = request()
    plan = plan_build(made_of, BuildFacts(IMAGE, [job(made_of, ("Failed", "DeadlineExceeded"))]))
    assert Reason.TIMEOUT == next(reported.reason for reported in plan.conditions)


def test_jobs_of_an_earlier_state_are_stale() -> None:
    earlier = job(request({FORCE: "true"}))
    plan = plan_build(request(), BuildFacts(IMAGE, [earlier], probe=Probe()))
    assert (Next.BUILD, (earlier,)) == (plan.step, plan.stale)


def test_a_forced_build_is_done_once() -> None:
    forced = request({FORCE: "true"}, Condition("ImageExists", "True", message=IMAGE))
    assert Next.BUILD is plan_build(forced, BuildFacts(IMAGE)).step
    built = DynamoNim(metadata=Metadata(annotations={HASH: build_hash(forced)}))
    assert Next.RECORD is plan_build(forced, BuildFacts(IMAGE, nim=built)).step
    again = request({FORCE: "true", "nvidia.com/rebuild": "2"}, *forced.status.conditions)
    assert Next.BUILD is plan_build(again, BuildFacts(IMAGE, nim=built)).step


def test_the_nim_has_what_the_request_says() -> None:
    nim = dynamo_nim(request(), IMAGE, "login")
    assert {"tag": "a:1", "image": IMAGE, "imagePullSecrets": [{"name": "login"}]} == nim["spec"]
    assert {"tag": "a:1", "image": IMAGE} == dynamo_nim(request(), IMAGE, "")["spec"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"services":[]}', '{"services":[]}'),
        ("zlib:" + base64.b64encode(zlib.compress(b"{}")).decode(), "{}"),
        ("zlib:not base64", ""),
        ("zlib:" + base64.b64encode(b"no zlib").decode(), ""),
    ],
)
def test_the_configuration_comes_from_the_container_that_fetched_it(text: str, expected: str) -> None:
    assert expected == fetched_config(pod(request(), FETCHER, 0, text))
    assert fetched_config(pod(request(), FETCHER, 1, text)) is None


def test_a_configuration_that_expands_without_end_is_cut() -> None:
    bomb: Any = zlib.compress(bytes(64 * 1024**2), 9)
    text = "zlib:" + base64.b64encode(bomb).decode()
    assert 1024**2 >= len(fetched_config(pod(request(), FETCHER, 0, text)) or "")


def test_the_configuration_is_that_of_a_pod_that_runs_the_jobs_template() -> None:
    ours, changed, forged = ("ours", True), ("ours", False), ("forged", False)
    cases = ([forged, ours], [forged, ("", True)], [forged, changed], [changed, (None, False)])
    assert ["ours", "", "", "ours"] == [believed_config(case, is_complete=True) for case in cases]
    assert "" == believed_config([changed], is_complete=False)  # the build's own pod may report yet


def test_a_request_that_was_paused_says_that_it_is_not_any_more() -> None:
    paused = request(None, Condition("Paused", "True", "Paused"))
    conditions = request_status(paused, plan_build(paused, BuildFacts(IMAGE)), ()).conditions
    assert ["False"] == [reported.status for reported in conditions if reported.type == "Paused"]
    never = request_status(request(), plan_build(request(), BuildFacts(IMAGE)), ()).conditions
    assert all(reported.type != "Paused" for reported in never)


def test_what_could_not_be_written_makes_the_dynamonim_unavailable() -> None:
    plan = plan_build(request(), BuildFacts(IMAGE, probe=Probe(exists=True)))
    blocked = Blocked(Obstacle.REJECTED, "DynamoNim", "r", "denied")
    status = request_status(request(), plan, [blocked])
    reported = {each.type: (each.status, each.reason, each.message) for each in status.conditions}
    assert ("False", Reason.BUILD_FAILED, "denied") == reported["DynamoNimAvailable"]
    assert "True" == reported["ImageExists"][0]
    assert 3 == status.observed_generation
