"""Requests in v1beta1 of the 1.5 line, played on a simulated cluster: phase, conditions, hardware, Job.

What a profiler wrote there is written here, and the graph has the state that it had.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.newer_recordings import NewerCase, newer_cases
from dynamo_operator import names
from dynamo_operator.crds import defaulted
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import Job, PersistentVolumeClaim
from kube_runtime.types.meta import Object
from simulated.requests import LATER, REQUEST, WrittenLater

KIND = "DynamoGraphDeploymentRequest"
SETTINGS = RenderSettings(operator_image="o:1", restricted_namespace=REQUEST.namespace)
GRAPH_STATES = {"Deployed": "successful", "Deploying": "pending"}


def requests() -> Iterator[NewerCase]:
    """The cases with one request in v1beta1 that was accepted, as it was created."""
    for source in ("own", "manifest"):
        for case in newer_cases(source):
            written = [body for body in case.inputs[0] if body["kind"] == KIND]
            versions = [body["apiVersion"] for body in written]
            if versions == [LATER] and recorded(case) is not None:
                yield case


def recorded(case: NewerCase) -> Object | None:
    (request,) = (body for body in case.inputs[0] if body["kind"] == KIND)
    return case.after("none", 0).object(KIND, request["metadata"]["name"], LATER)


def conditions(request: Object) -> dict[str, tuple[str, str]]:
    """Status and reason of each. `Initializing` is `ProfilingRunning` a moment later."""
    stated = {it["type"]: (it["status"], it["reason"]) for it in request["status"]["conditions"]}
    if stated.get("Profiling") == ("False", "Initializing"):
        stated["Profiling"] = ("False", "ProfilingRunning")
    return stated


async def played(case: NewerCase, theirs: Object) -> WrittenLater:
    """The cluster once what a profiler and a graph reported there was reported here."""
    (request,) = (body for body in case.inputs[0] if body["kind"] == KIND)
    world = WrittenLater(defaulted(request)["spec"], SETTINGS)
    for node in ("a", "b"):
        world.has_gpu_node(node)
    for body in case.inputs[0]:
        if body["kind"] == PersistentVolumeClaim.KIND.name:
            world.add(PersistentVolumeClaim.KIND, REQUEST.namespace, body["metadata"]["name"])
    for _ in range(3):
        await world.reconciled()
    status = theirs["status"]
    if status["phase"] == "Profiling":
        phase = status.get("profilingPhase", "")
        await world.profiler_writes(profiler_status__yaml=json.dumps({"phase": phase, "message": "m"}))
    elif "profilingResults" in status:
        graph = status["profilingResults"]["selectedConfig"]
        graph = {name: value for name, value in graph.items() if name != "status"}
        await world.profiler_writes(final_config__yaml=json.dumps(graph))
        await world.job_ends()
    for _ in range(3):
        await world.reconciled()
    if state := GRAPH_STATES.get(status["phase"]):
        await world.graph_is(state, w=2)
        await world.reconciled()
    return world


@pytest.mark.parametrize("case", [*requests()], ids=lambda case: case.name)
async def test_a_request_ends_as_it_did_there(case: NewerCase) -> None:
    theirs = recorded(case)
    assert theirs is not None
    world = await played(case, theirs)
    ours = world.later()
    assert theirs["status"]["phase"] == ours["status"]["phase"]
    assert conditions(theirs) == conditions(ours)
    for field in ("profilingPhase", "deploymentInfo"):
        assert theirs["status"].get(field) == ours["status"].get(field)
    # R31: no image is written; R32: the form of a GPU says its interconnect, too.
    given = {"image": ours["spec"].get("image"), "hardware": ours["spec"]["hardware"]}
    assert {**ours["spec"], **given} == {**theirs["spec"], **given}
    assert theirs["spec"]["hardware"].items() <= ours["spec"]["hardware"].items()
    job = case.after("none", 0).object("Job", names.profiling_job(theirs["metadata"]["name"]))
    if job is not None:
        assert profiler(job) == profiler(world.stored(Job.KIND, REQUEST.namespace, "profile-r"))


def profiler(job: Object) -> Any:
    """How the profiler starts, without what is meant to differ: R31 to R33."""
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    option, text, *folder = container["args"]
    spec = json.loads(text)
    overrides = {name: it for name, it in spec.pop("overrides", {}).items() if name != "dgd"}
    spec["hardware"].pop("interconnect", None)
    spec.pop("image")
    mounts = {it["name"]: it["mountPath"] for it in container["volumeMounts"]}
    mounts = {name: mounts[name] for name in ("profiling-output", "model-cache") if name in mounts}
    return container["command"], option, spec, overrides, folder, mounts
