"""What a request names stays in its namespace and within bounds; what exceeds them is in its status."""

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_operator import names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.api import RequestConditionType as Type
from dynamo_operator.requests.api import RequestReason as Reason
from dynamo_operator.requests.read import GpuDiscoveryRbac
from dynamo_operator.requests.read import _reduced as reduced
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.watch import Changed
from kube_runtime.client.client import Client
from kube_runtime.errors import TooLarge
from kube_runtime.types.kinds import ClusterRoleBinding, ConfigMap, Job, PersistentVolumeClaim, Pod
from kube_runtime.types.meta import Condition, Key, Metadata, Object, condition
from kube_runtime.wire import path_of
from simulated.caches import a_cache
from simulated.requests import REQUEST, RequestWorld, a_spec
from simulated.server import Server

JOB = names.profiling_job("r")


class World(RequestWorld):
    """A cluster with one request in namespace lab, and a ConfigMap and a PVC in namespace victim."""

    def __init__(self, spec: Object | None = None, **status: Any) -> None:
        super().__init__()
        self.reader = self.controller.reader
        self.add(ConfigMap.KIND, "victim", "base", data={"disagg.yaml": "secret"})
        self.add(PersistentVolumeClaim.KIND, "victim", "models")
        body = {"model": "m", "backend": "vllm", "profilingConfig": {}, **(spec or {})}
        body["profilingConfig"] = {"profilerImage": "p:1", **body["profilingConfig"]}
        self.add(Request.KIND, *REQUEST, spec=body, status=status)

    @property
    def read(self) -> list[str]:
        """Paths of other objects than the request that were read."""
        own = path_of(Request.KIND, *REQUEST)
        return [it.path for it in self.server.requests if it.method == "GET" and it.path != own]


ELSEWHERE = ("../../victim/{}", "../../victim/{}?n=1", "%2e%2e/%2e%2e/victim/{}", "..", "a/b")


@pytest.mark.parametrize("path", ELSEWHERE)
async def test_no_name_in_a_request_reads_another_namespace(path: str) -> None:
    profiling = {
        "configMapRef": {"name": path.format("configmaps/base")},
        "outputPVC": path.format("persistentvolumeclaims/models"),
        "tolerations": [{"operator": "Exists"}],
        "config": {"deployment": {"modelCache": {"pvcName": path.format("persistentvolumeclaims/models")}}},
    }
    world = World({"profilingConfig": profiling})
    request = await world.reconciled()
    assert [] == world.read
    message = request.status.message or ""
    for field in ("configMapRef.name", "outputPVC", "config.deployment.modelCache.pvcName"):
        assert f"spec.profilingConfig.{field}: invalid name" in message
    assert "not found" not in message  # that would be an answer, too


@pytest.mark.parametrize("name", [path.format("configmaps/base") for path in ELSEWHERE])
async def test_no_name_in_a_status_reads_another_namespace(name: str) -> None:
    accepted = {
        "model": "m",
        "backend": "vllm",
        "profilingConfig": {"profilerImage": "p:1", "configMapRef": {"name": name}},
    }
    world = World(state="Pending", observedGeneration=1, acceptedSpec=accepted)
    await world.reconciled()
    assert not [path for path in world.read if "victim" in path or ".." in path or "?" in path]


@pytest.mark.parametrize("name", [path.format("configmaps/base") for path in ELSEWHERE])
async def test_no_name_in_results_reaches_another_namespace(name: str) -> None:
    manifest = ConfigMap.KIND.manifest({"name": name}, data={"a": "b"})
    world = World(additionalResources=[manifest])
    request = await world.request()
    world.server.requests.clear()
    destination = await world.reader.destination(request, "lab", (manifest,))
    problems = await world.controller.create_config_maps(request, destination, None)
    assert [] == world.server.requests
    assert [f'failed to create ConfigMap {name}: invalid name "{name}"' in it for it in problems] == [True]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"disagg.yaml": "x" * 5_000_000}, "ConfigMap base: the answer has more than 4194304 bytes"),
        ({"mine.yaml": ""}, "key disagg.yaml not found in ConfigMap base"),
    ],
    ids=["too large", "no such key"],
)
async def test_a_config_map_that_cannot_be_used_is_a_problem_of_the_request(
    data: dict[str, str], problem: str
) -> None:
    world = World({"profilingConfig": {"configMapRef": {"name": "base"}}})
    world.add(ConfigMap.KIND, "lab", "base", data=data)
    request = await world.reconciled()
    assert problem in (request.status.message or "")


async def test_results_that_are_too_large_are_a_condition() -> None:
    world = World(state="Profiling", observedGeneration=1, acceptedSpec={})
    world.add(Job.KIND, "lab", JOB, status={"conditions": [{"type": "Complete", "status": "True"}]})
    output = names.profiling_output("r")
    world.add(ConfigMap.KIND, "lab", output, data={"x": "x" * 5_000_000})
    request = await world.reconciled()
    found = condition(request.status.conditions, "Succeeded")
    assert found is not None
    assert (Reason.TOO_LARGE, "False") == (found.reason, found.status)
    assert f"configmaps lab/{output}: the answer has more than 4194304 bytes" in found.message


def a_pod(controller: str, size: int = 0) -> Object:
    """The fields of a pod with the label of the Job."""
    owner = {"kind": "Job", "name": JOB, "uid": controller, "apiVersion": "batch/v1"}
    return {
        "labels": {"job-name": JOB},
        "ownerReferences": [{**owner, "controller": True}],
        "spec": {"containers": [{"name": "a", "env": "x" * size}]},
    }


async def job_of(world: World) -> Job:
    world.add(Job.KIND, "lab", JOB)
    return await world.client.get(Job, Key("lab", JOB))


async def test_pods_that_only_have_the_label_of_the_job_are_not_read() -> None:
    world = World()
    job = await job_of(world)
    for number in range(50):
        world.add(Pod.KIND, "lab", f"fat-{number}", **a_pod("another", 700_000))
    world.add(Pod.KIND, "lab", "own", **a_pod(job.metadata.uid))
    pods = [pod async for pod in world.reader._live_pods(api.JobPodInFull, job)]
    assert ["own"] == [pod.metadata.name for pod in pods]
    pods_read = [path for path in world.read if path.startswith(path_of(Pod.KIND, "lab"))]
    assert {path_of(Pod.KIND, "lab"), path_of(Pod.KIND, "lab", "own")} == set(pods_read)
    lists = [it for it in world.server.requests if it.path == path_of(Pod.KIND, "lab")]
    assert all("PartialObjectMetadataList" in it.accept for it in lists)


async def test_jobs_and_pods_with_their_specs_are_read_for_one_request_at_a_time() -> None:
    world = World()
    world.add(Job.KIND, "lab", JOB, spec={"template": {"spec": {"containers": []}}})
    uid = world.stored(Job.KIND, "lab", JOB)["metadata"]["uid"]
    for number in range(3):
        world.add(Pod.KIND, "lab", f"own-{number}", **a_pod(uid))
    await asyncio.gather(*[world.reader._pod_reports(Key("lab", JOB), uid) for _ in range(2)])
    assert world.read[: len(world.read) // 2] * 2 == world.read


async def test_the_pods_of_a_job_are_bounded() -> None:
    world = World()
    job = await job_of(world)
    for number in range(30):
        world.add(Pod.KIND, "lab", f"forged-{number}", **a_pod(job.metadata.uid))
    with pytest.raises(TooLarge, match="more than 20 pods have the profiling Job"):
        await anext(world.reader._live_pods(api.JobPodInFull, job))


@pytest.mark.parametrize(
    ("owner", "end", "left"),
    [
        *(("ours", end, ["temporary"]) for end in ("Failed", "Complete")),
        *((owner, "", ["temporary", "older"]) for owner in ("theirs", "")),  # replaced, or deleted
    ],
)
async def test_only_graphs_that_are_younger_than_the_profiling_are_temporary(
    owner: str, end: str, left: list[str]
) -> None:
    world = World(state="Profiling", observedGeneration=1, acceptedSpec={})
    world.add(ConfigMap.KIND, "lab", names.profiling_output("r"), data={"profiler_status.yaml": "phase: a"})
    request = await world.request()
    ours = {"uid": request.metadata.uid, "kind": "R", "name": "r", "apiVersion": "a/v1"}
    theirs = {**ours, "uid": "x"}
    if owner:
        controller = {**(ours if owner == "ours" else theirs), "controller": True}
        ends = [{"type": end, "status": "True"}]
        body: Object = {"name": JOB, "namespace": "lab", "creationTimestamp": "2026-11-25T10:00:00Z"}
        body = {"metadata": {**body, "ownerReferences": [controller]}, "status": {"conditions": ends}}
        world.cache.store(Job).on_watch_event(Changed(msgspec.convert(body, Job)))
    for name, time, owners in (
        ("temporary", "2026-11-25T10:00:05Z", [ours]),
        ("older", "2026-11-25T09:59:59Z", [ours]),  # any user who may patch it can write the owner
        ("shared", "2026-11-25T10:00:05Z", [ours, theirs]),
        ("theirs", "2026-11-25T10:00:05Z", []),
    ):
        body = {"name": name, "namespace": "lab", "creationTimestamp": time, "ownerReferences": owners}
        graph = msgspec.convert({"metadata": body}, DynamoGraphDeployment)
        world.cache.store(DynamoGraphDeployment).on_watch_event(Changed(graph))
    inputs = await world.reader.read(request)
    assert left == [it.metadata.name for it in inputs.temporary]


def test_only_a_short_status_of_the_profiler_is_cached() -> None:
    for size, kept in ((100, 1), (1_000_000, 0)):
        output = api.Output(data={"profiler_status.yaml": "x" * size, "results": "x" * size})
        assert kept == len(reduced(output).data)


NAME = "x-dgdr-profiling-nodes"
PATH = path_of(ClusterRoleBinding.KIND)


def a_request(
    namespace: str, state: str = "Pending", *, accepted: int = 1, results: str = "", **given: Any
) -> Request:
    """A request whose spec was accepted in that generation, if in any, and its results recorded."""
    spec = a_spec(**{"enable_gpu_discovery": True, **given})
    record = api.annotation(api.Record("u", accepted, "", job="j", results=results)) if accepted else {}
    metadata = Metadata(name="r", namespace=namespace, uid="u", generation=1, annotations=record)
    return Request(metadata, spec, RequestStatus(state=state))


def could_not_start(namespace: str, generation: int = 1) -> Request:
    """A request whose Job was refused, and which the operator retries, with its spec of that generation."""
    conditions = (
        Condition(Type.PROFILING, "False", Reason.JOB_CREATION_FAILED),
        Condition(Type.SUCCEEDED, "False", observed_generation=1),
    )
    status = RequestStatus(state="Failed", observed_generation=1, conditions=conditions)
    request = a_request(namespace)
    return replace(request, metadata=replace(request.metadata, generation=generation), status=status)


class WorldRbac:
    """A cluster with these requests and, usually, the list."""

    def __init__(self, *requests: Request, has_list: bool = True) -> None:
        self.server = Server()
        if has_list:
            self.server.storage.create(PATH, {"metadata": {"name": NAME}, "roleRef": {"name": NAME}})
        cache, client = a_cache([Request], requests), Client(self.server)
        writer = Writer(client, cache, excluded={"theirs"})
        self.readers = GpuDiscoveryRbac(client, writer, cache, NAME)

    def listed(self) -> list[str]:
        body: Any = self.server.storage.read(PATH, Key("", NAME))
        assert {"dgdr-profiling-job"} >= {each["name"] for each in body.get("subjects", ())}
        return [each["namespace"] for each in body.get("subjects", ())]


@pytest.mark.parametrize(
    ("requests", "admitted", "listed"),
    [
        ([a_request("b", "Profiling"), a_request("c", enable_gpu_discovery=False)], [a_request("a")], "ab"),
        ([could_not_start("a"), a_request("b", "Failed")], [a_request("c"), could_not_start("a")], "a"),
        # Of two that are tried again, the first has a Job by now, which its status does not report yet.
        (*2 * [[could_not_start("a"), could_not_start("b")]], "ab"),
        ([a_request("b", "Profiling", service_account_name="mine")], [a_request("a")], "a"),
        ([a_request("a", "Profiling", results="digest")], [a_request("b")], "b"),  # a forged state
        # What is not accepted, or not any more, starts no Job; in others' namespaces they start it.
        ([a_request("a", accepted=0), could_not_start("b", generation=2)], [a_request("c")], "c"),
        ([a_request("theirs", "Profiling")], [a_request("b")], "b"),
    ],
)
async def test_each_namespace_that_looks_for_gpus_is_listed_once(
    requests: list[Request], admitted: list[Request], listed: str
) -> None:
    world = WorldRbac(*requests)
    for request in admitted:
        assert "" == await world.readers.admit(request)
    assert [*listed] == world.listed()


async def test_gpu_discovery_that_is_not_installed_is_reported() -> None:
    world = WorldRbac(has_list=False)
    assert "spec.enableGpuDiscovery requires" in await world.readers.admit(a_request("a"))
    await world.readers.withdraw()


async def test_when_a_request_ends_or_is_deleted_its_account_is_taken_out_once() -> None:
    world = WorldRbac(a_request("b", "Profiling"))
    await world.readers.admit(a_request("a"))
    await world.readers.withdraw()  # the request in `a` is not in the cache any more
    asked = len(world.server.requests)
    await world.readers.withdraw()
    assert asked == len(world.server.requests)
    assert ["b"] == world.listed()
