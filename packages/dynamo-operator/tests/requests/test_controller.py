"""ConfigMaps whose names were taken while the target namespace accepted no graphs get new names."""

from typing import Any

import msgspec

from dynamo_operator import names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import (
    DeploymentOverrides,
    DeploymentStatus,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    DynamoGraphDeploymentRequestStatus,
    JobPod,
    Output,
    ProfilingConfig,
    annotation,
    recorded,
    with_results,
)
from dynamo_operator.requests.controller import RequestActions, RequestController
from dynamo_operator.requests.plan import RequestConditionType, RequestFacts, RequestReason
from dynamo_operator.requests.read import GpuDiscoveryRbac, Grants, RequestReader
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.report import Reporter
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.status import StatusRateLimit
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.watch import Changed, Removed
from kube_runtime.client.client import Client
from kube_runtime.controller.events import EventWriter
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Condition, Key, Metadata, Object
from kube_runtime.wire import path_of
from simulated.caches import a_cache
from simulated.server import Server

REQUEST = Key("lab", "r")
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


def refused_before(refusal: RequestReason) -> DynamoGraphDeploymentRequest:
    """A request that was profiled, and whose graph could not be created in the other namespace."""
    curves = {"kind": "ConfigMap", "metadata": {"name": "curves"}, "data": {"a": "ours"}}
    spec = DynamoGraphDeploymentRequestSpec(
        model="m",
        backend="vllm",
        auto_apply=True,
        profiling_config=ProfilingConfig("p:1"),
        deployment_overrides=DeploymentOverrides(namespace=ELSEWHERE),
    )
    conditions = (
        Condition(RequestConditionType.DEPLOYED, "False", refusal),
        Condition(RequestConditionType.SUCCEEDED, "False", refusal, observed_generation=1),
    )
    status = DynamoGraphDeploymentRequestStatus(
        state="Failed",
        observed_generation=1,
        conditions=conditions,
        generated_deployment=mounting("curves"),
        additional_resources=(curves,),
        deployment=DeploymentStatus(name="r", namespace=ELSEWHERE),
    )
    metadata = Metadata(name="r", namespace="lab", uid="u", generation=1)
    request = DynamoGraphDeploymentRequest(metadata, spec, status)
    results = with_results(request)
    return msgspec.structs.replace(
        request, metadata=msgspec.structs.replace(metadata, annotations=annotation(results))
    )


class World:
    """A cluster with that request, where the other namespace has a ConfigMap `curves` already."""

    def __init__(self, request: DynamoGraphDeploymentRequest) -> None:
        self.server = Server()
        body = msgspec.json.decode(msgspec.json.encode(request))
        kind = request.KIND
        body |= {"apiVersion": kind.api_version, "kind": kind.name}
        body["metadata"].pop("resourceVersion", None)
        stored = self.server.storage.create(path_of(kind), body)
        if (record := recorded(request)) is not None:
            record = msgspec.structs.replace(record, uid=stored["metadata"]["uid"])
            annotated = {"metadata": {"annotations": annotation(record)}}
            self.server.storage.merge(path_of(kind), REQUEST, annotated)
        self.add_config_map("curves")
        self.client = Client(self.server, field_manager="m")
        self.cache = a_cache([DynamoGraphDeployment, DynamoGraphDeploymentRequest, Job, JobPod])
        writer, settings = Writer(self.client, self.cache), RenderSettings()
        reader = RequestReader(self.client, self.cache, settings, Grants(self.client, accepts_all=True))
        applier = Applier(writer, "hash", "generation")
        nodes = GpuDiscoveryRbac(self.client, writer, self.cache, "")
        actions = RequestActions(writer, reader, applier, settings, nodes)
        recorder = EventWriter(self.client, instance="i", metrics=RuntimeMetrics()).recorder("r")
        reporter = Reporter(writer, recorder, StatusRateLimit(), self.client)
        self.controller = RequestController(self.cache, actions, reporter)

    def add_config_map(self, name: str) -> None:
        """Create a ConfigMap of another owner."""
        metadata = {"name": name, "namespace": ELSEWHERE}
        self.server.storage.create(
            path_of(Output.KIND),
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata,
                "data": {"a": "theirs"},
            },
        )

    async def reconcile(self) -> DynamoGraphDeploymentRequest:
        """Let the cache catch up, and reconcile the request once."""
        await self._catch_up()
        await self.controller.reconcile(REQUEST)
        return await self._catch_up()

    async def _catch_up(self) -> DynamoGraphDeploymentRequest:
        request = await self.client.get(DynamoGraphDeploymentRequest, REQUEST)
        self.cache.store(DynamoGraphDeploymentRequest).on_watch_event(Changed(request))
        return request

    def read(self, type_: Any, name: str, namespace: str = ELSEWHERE) -> Any:
        """The object; None if it does not exist."""
        return self.server.storage.objects.get(path_of(type_.KIND), {}).get(Key(namespace, name))


def mounted(graph: Any) -> str:
    (volume,) = graph["spec"]["services"]["w"]["extraPodSpec"]["volumes"]
    name: str = volume["configMap"]["name"]
    return name


async def test_names_that_are_taken_change_before_the_graph_is_created() -> None:
    world = World(refused_before(RequestReason.DEPLOYMENT_CREATION_FAILED))
    renamed = await world.reconcile()
    assert "curves-r" == mounted(renamed.status.generated_deployment)
    created = await world.reconcile()
    assert created.status.deployment is not None
    assert created.status.deployment.created
    assert "curves-r" == mounted(world.read(DynamoGraphDeployment, "r"))
    assert "ours" == world.read(Output, "curves-r")["data"]["a"]
    assert "theirs" == world.read(Output, "curves")["data"]["a"]
    assert "ConfigMaps" not in (created.status.message or "")


async def test_a_new_name_that_is_taken_too_changes_again() -> None:
    world = World(refused_before(RequestReason.NAME_CONFLICT))
    world.add_config_map("curves-r")
    await world.reconcile()
    await world.reconcile()
    await world.reconcile()
    assert "curves-r-r" == mounted(world.read(DynamoGraphDeployment, "r"))
    assert "ours" == world.read(Output, "curves-r-r")["data"]["a"]


async def test_results_that_another_wrote_into_the_status_create_nothing() -> None:
    """The operator reads them again, from a ConfigMap that is gone here."""
    request = refused_before(RequestReason.DEPLOYMENT_CREATION_FAILED)
    planted = {"kind": "ConfigMap", "metadata": {"name": "planted"}}
    for change in (
        {"additional_resources": (planted,)},
        {"generated_deployment": mounting("planted"), "additional_resources": ()},
        {"accepted_spec": {"model": "m", "backend": "vllm", "autoApply": True}},
    ):
        status = msgspec.structs.replace(request.status, state="Deploying", **change)
        world = World(msgspec.structs.replace(request, status=status))
        for _ in range(3):
            await world.reconcile()
        assert world.read(Output, "planted") is None
        graph = world.read(DynamoGraphDeployment, "r")
        assert graph is None or "curves-r" == mounted(graph)


async def test_a_forged_status_takes_no_graph_to_another_namespace() -> None:
    request = refused_before(RequestReason.DEPLOYMENT_CREATION_FAILED)
    elsewhere = DeploymentStatus(name="r", namespace="victim")
    status = msgspec.structs.replace(request.status, state="Deploying", deployment=elsewhere)
    world = World(msgspec.structs.replace(request, status=status))
    for _ in range(3):
        await world.reconcile()
    assert world.read(DynamoGraphDeployment, "r", "victim") is None
    assert world.read(DynamoGraphDeployment, "r") is not None


async def test_what_was_created_is_recorded_so_that_no_status_creates_it_again() -> None:
    world = World(refused_before(RequestReason.DEPLOYMENT_CREATION_FAILED))
    await world.reconcile()
    request = await world.reconcile()
    record = recorded(request)
    assert record is not None
    assert record.created
    graph = await world.client.get(DynamoGraphDeployment, Key(ELSEWHERE, "r"))
    world.server.storage.delete(path_of(DynamoGraphDeployment.KIND), graph.key, {})
    world.cache.store(DynamoGraphDeployment).on_watch_event(Removed(graph.key, graph.metadata.uid))
    forged = {"state": "Deploying", "deployment": None}
    path = path_of(DynamoGraphDeploymentRequest.KIND)
    world.server.storage.merge(path, REQUEST, {"status": forged}, "status")
    request = await world.reconcile()
    assert "DeploymentDeleted" == request.status.state
    assert world.read(DynamoGraphDeployment, "r") is None


NAMESPACE = "lab"
SPEC = DynamoGraphDeploymentRequestSpec("m", "vllm", ProfilingConfig("p:1"))
REQUEST_START = DynamoGraphDeploymentRequest(Metadata("r", NAMESPACE, "u", generation=1), SPEC)
RESULTS = Key(NAMESPACE, names.profiling_output("r"))


async def test_the_results_of_an_earlier_job_are_gone_before_the_next_one_starts() -> None:
    server = Server()
    client, cache = Client(server, field_manager="m"), a_cache([DynamoGraphDeploymentRequest])
    settings = RenderSettings(operator_image="o:1", restricted_namespace=NAMESPACE)
    writer, reader = (
        Writer(client, cache),
        RequestReader(client, cache, settings, Grants(client)),
    )
    gpus = GpuDiscoveryRbac(client, writer, cache, "")
    applier = Applier(writer, "hash", "generation")
    actions = RequestActions(writer, reader, applier, settings, gpus)
    stale = Output.KIND.manifest({**RESULTS._asdict()}, data={"config_with_planner.yaml": "old"})
    server.storage.create(path_of(Output.KIND), stale)
    facts = RequestFacts(output=await client.get(Output, RESULTS))
    job = await actions.start(REQUEST_START, SPEC, facts)
    assert job.key == Key(NAMESPACE, names.profiling_job("r"))
    assert [job.key] == list(server.storage.objects[path_of(Job.KIND)])
    assert {} == server.storage.objects[path_of(Output.KIND)]
