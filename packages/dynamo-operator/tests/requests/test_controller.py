"""What a request creates: once, as recorded, and never in place of what others created."""

import hashlib
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from dynamo_operator import labels, names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api, results
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import RequestConditionType as Type
from dynamo_operator.requests.api import RequestReason as Reason
from dynamo_operator.settings import RenderSettings
from kube_runtime.apply.suppression import WriteSuppression
from kube_runtime.cache.watch import Removed
from kube_runtime.types.kinds import Job, Pod
from kube_runtime.types.meta import Key, Object, condition, controller_reference
from kube_runtime.wire import path_of
from simulated.requests import REQUEST, RequestWorld

ELSEWHERE = "serving"


def mounting(config_map: str) -> Object:
    """A graph whose worker mounts that ConfigMap."""
    volume = {"name": "curves", "configMap": {"name": config_map}}
    worker = {"componentType": "worker", "extraPodSpec": {"volumes": [volume]}}
    kind = DynamoGraphDeployment.KIND
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "r"},
        "spec": {"services": {"w": worker}},
    }


def mounted(graph: Object | None) -> str:
    assert graph is not None
    (volume,) = graph["spec"]["services"]["w"]["extraPodSpec"]["volumes"]
    return str(volume["configMap"]["name"])


class World(RequestWorld):
    """A cluster whose request creates its graph, or ConfigMaps for it, in another namespace."""

    def graph(self, namespace: str = ELSEWHERE) -> Any:
        """The graph of the request; None if it does not exist."""
        return self.stored(DynamoGraphDeployment.KIND, namespace, "r")

    def content(self, config_map: str) -> str:
        """What a ConfigMap in the other namespace contains."""
        return str(self.stored(api.Output.KIND, ELSEWHERE, config_map)["data"]["a"])


async def profiled(auto_apply: bool = True, end: str = "Complete") -> World:
    """The cluster after a Job that ended so; its results are a graph that mounts ConfigMap `curves`."""
    world, namespace, job = World(), REQUEST.namespace, names.profiling_job("r")
    spec: Object = {"model": "m", "backend": "vllm", "profilingConfig": {"profilerImage": "p:1"}}
    spec |= {"autoApply": auto_apply, "deploymentOverrides": {"namespace": ELSEWHERE}}
    status: Object = {"state": "Profiling", "observedGeneration": 1}
    world.add(Request.KIND, *REQUEST, spec=spec, status=status)
    owners = {"ownerReferences": [controller_reference(await world.request(), Request.KIND)]}
    status = {"conditions": [{"type": end, "status": "True"}]}
    pod = {"containers": [{"name": api.COPIER}]}
    world.add(Job.KIND, namespace, job, **owners, spec={"template": {"spec": pod}}, status=status)
    curves = api.Output.KIND.manifest({"name": "curves"}, data={"a": "ours"})
    text = "\n---\n".join(msgspec.json.encode(it).decode() for it in (mounting("curves"), curves))
    data = {api.RESULTS_FILE: text}
    world.add(api.Output.KIND, namespace, names.profiling_output("r"), **owners, data=data)
    digest = f"{hashlib.sha256(text.encode()).hexdigest()}  {api.RESULTS_FILE}"
    ended = {"name": api.COPIER, "state": {"terminated": {"exitCode": 0, "message": digest}}}
    owner = await world.client.get(Job, Key(namespace, job))
    owners = {"ownerReferences": [controller_reference(owner, Job.KIND)]}
    status = {"containerStatuses": [ended]}
    world.add(Pod.KIND, namespace, "p", labels={"job-name": job}, **owners, spec=pod, status=status)
    return world


@pytest.mark.parametrize(
    ("auto_apply", "path", "state"),
    [(True, "/curves", "Deploying"), (False, "/curves", "Deploying"), (True, "deployments", "Failed")],
)
async def test_what_is_refused_is_created_as_soon_as_that_is_possible(
    auto_apply: bool, path: str, state: str
) -> None:
    world = await profiled(auto_apply)
    denied = {"code": 403, "reason": "Forbidden", "message": "exceeded quota"}
    world.server.refuse = lambda request, _: denied if request.path.endswith(path) else None
    for _ in range(3):
        request = await world.reconciled()
    step = condition(request.status.conditions, Type.DEPLOYED if auto_apply else Type.SUCCEEDED)
    assert step is not None
    reason = Reason.DEPLOYMENT_CREATION_FAILED if auto_apply else state
    assert (state, reason) == (request.status.state, step.reason)
    assert "exceeded quota" in step.message
    world.server.refuse = lambda *_: None
    world.controller = replace(world.controller, suppression=WriteSuppression())  # the time has passed
    request = await world.reconciled()
    assert ("Deploying" if auto_apply else "Ready") == request.status.state
    assert "exceeded quota" not in (request.status.message or "")
    assert "ours" == world.content("curves")


@pytest.mark.parametrize("auto_apply", [True, False])
async def test_config_maps_of_a_former_request_of_that_name_stay_as_they_are(auto_apply: bool) -> None:
    world = await profiled(auto_apply)
    marks = {"labels": results.tracking(await world.request()), "annotations": {labels.REQUEST_UID: "former"}}
    for name in ("curves", "curves-r"):
        world.add(api.Output.KIND, ELSEWHERE, name, **marks, data={"a": "theirs"})
    for _ in range(4):
        request = await world.reconciled()
    assert ("Deploying" if auto_apply else "Ready") == request.status.state
    assert "curves-r-r" == mounted(request.status.generated_deployment)
    assert ["theirs", "theirs", "ours"] == [*map(world.content, ("curves", "curves-r", "curves-r-r"))]


async def test_results_that_another_wrote_into_the_status_create_nothing() -> None:
    planted = {"kind": "ConfigMap", "metadata": {"name": "planted"}}
    for forged in (
        {"additionalResources": [planted]},
        {"generatedDeployment": mounting("planted"), "additionalResources": []},
        {"acceptedSpec": {"model": "m", "backend": "vllm", "autoApply": True}},
        {"deployment": {"name": "r", "namespace": "victim", "created": False}},
    ):
        world = await profiled()
        await world.reconciled()
        world.edit({"status": forged}, "status")
        for _ in range(3):
            await world.reconciled()
        for name, namespace in (("planted", ELSEWHERE), ("curves", "victim")):
            assert world.stored(api.Output.KIND, namespace, name) is None
        assert world.graph("victim") is None
        assert "curves" == mounted(world.graph())


async def test_what_was_created_is_recorded_so_that_no_status_creates_it_again() -> None:
    world = await profiled()
    await world.reconciled()
    record = api.recorded(await world.reconciled())
    assert record is not None
    assert record.created
    graph = await world.client.get(DynamoGraphDeployment, Key(ELSEWHERE, "r"))
    world.server.storage.delete(path_of(DynamoGraphDeployment.KIND), graph.key, {})
    world.cache.store(DynamoGraphDeployment).on_watch_event(Removed(graph.key, graph.metadata.uid))
    world.edit({"status": {"state": "Deploying", "deployment": None}}, "status")
    assert "DeploymentDeleted" == (await world.reconciled()).status.state
    assert world.graph() is None


async def test_a_status_has_deleted_config_maps_of_a_request_without_a_graph_created_again() -> None:
    world = await profiled(auto_apply=False)
    for _ in range(3):
        await world.reconciled()
    planted = api.Output.KIND.manifest({"name": "curves"}, data={"a": "planted"})
    for forged in ({}, {"additionalResources": [planted]}):
        world.server.storage.delete(path_of(api.Output.KIND), Key(ELSEWHERE, "curves"), {})
        world.edit({"status": {"state": "Deploying", **forged}}, "status")
        for _ in range(3):
            await world.reconciled()
        assert "ours" == world.content("curves"), "only what the record has the digest of"
    assert world.graph() is None


async def test_the_results_of_an_earlier_job_are_gone_before_the_next_one_starts() -> None:
    world = RequestWorld(RenderSettings(operator_image="o:1", restricted_namespace=REQUEST.namespace))
    spec = {"model": "m", "backend": "vllm", "profilingConfig": {"profilerImage": "p:1"}}
    world.add(Request.KIND, *REQUEST, spec=spec)
    marks, data = {labels.REQUEST: "r"}, {"config_with_planner.yaml": "old"}
    world.add(api.Output.KIND, REQUEST.namespace, names.profiling_output("r"), labels=marks, data=data)
    for state in ("Pending", "Profiling"):
        assert state == (await world.reconciled()).status.state
    job = Key(REQUEST.namespace, names.profiling_job("r"))
    assert [job] == list(world.server.storage.objects[path_of(Job.KIND)])
    assert {} == world.server.storage.objects[path_of(api.Output.KIND)]


OWN_NAMESPACE = RenderSettings(operator_image="o:1", restricted_namespace=REQUEST.namespace)


async def test_the_override_of_a_request_is_merged_into_its_job() -> None:
    spec = {"model": "m", "backend": "vllm", "profilingConfig": {"profilerImage": "p:1"}}
    for override, state in (
        ({"backoffLimit": 0, "parallelism": 2}, "Profiling"),
        ({"template": {"spec": {"affinity": "x"}}}, "Failed"),
    ):
        world = RequestWorld(OWN_NAMESPACE)
        saved = {"version": 1, "spec": {"overrides": {"profilingJob": override}}}
        annotations = {"nvidia.com/dgdr-spec": msgspec.json.encode(saved).decode()}
        world.add(Request.KIND, *REQUEST, spec=spec, annotations=annotations)
        await world.reconciled()
        with capture_logs() as logs:
            request = await world.reconciled()
        assert state == request.status.state
        if state == "Failed":
            text = "spec.overrides.profilingJob.template.spec.affinity must be an object"
            assert (request.status.message or "").startswith(text)
            continue
        job = world.stored(Job.KIND, REQUEST.namespace, names.profiling_job("r"))
        assert (0, None) == (job["spec"]["backoffLimit"], job["spec"].get("parallelism"))
        (event,) = [log for log in logs if log.get("reason") == "OverrideIgnored"]
        assert "spec.overrides.profilingJob.parallelism: ignored: the operator sets it" == event["event"]


async def test_a_config_map_of_others_stays_as_it_is() -> None:
    world = await profiled()
    world.add(api.Output.KIND, ELSEWHERE, "curves", data={"a": "theirs"})
    curves = {"kind": "ConfigMap", "metadata": {"name": "curves"}}
    world.edit({"status": {"additionalResources": [curves]}}, "status")
    request = await world.request()
    there = await world.controller.reader.destination(request, ELSEWHERE, [curves])
    (problem,) = await world.controller.create_config_maps(request, there, None)
    assert problem.endswith("curves: it exists and has another owner; the operator leaves it alone")
    assert "theirs" == world.content("curves")


async def test_a_rejected_edit_is_reported_once_and_takes_no_effect_after_a_pause_either() -> None:
    world = await profiled(auto_apply=False, end="Failed")
    paused, resumed = ({"metadata": {"annotations": {labels.PAUSED: it}}} for it in ("true", None))
    with capture_logs() as logs:
        for patch in ({**paused, "spec": {"model": "rejected"}}, resumed, paused, resumed):
            world.edit(patch)
            request = await world.reconciled()
    assert ("Failed", 2) == (request.status.state, request.metadata.generation)
    assert 1 == [log.get("reason") for log in logs].count("SpecChangeRejected")
    for patch in ({**paused, "spec": {"model": "other"}}, resumed):
        world.edit(patch)
        request = await world.reconciled()
    assert ("Pending", "other") == (request.status.state, api.accepted_spec(request).model)
