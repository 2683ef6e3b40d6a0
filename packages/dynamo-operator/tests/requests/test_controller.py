"""ConfigMaps whose names were taken while the target namespace accepted no graphs get new names."""

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.api import RequestConditionType as Type
from dynamo_operator.requests.api import RequestReason as Reason
from dynamo_operator.requests.decide import Destination
from dynamo_operator.settings import RenderSettings
from kube_runtime.cache.watch import Removed
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Condition, Key, Metadata, Object, condition
from kube_runtime.wire import path_of
from simulated.requests import REQUEST, RequestWorld, a_spec

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


def refused_before(refusal: Reason) -> Request:
    """A request that was profiled, and whose graph could not be created in the other namespace."""
    curves = {"kind": "ConfigMap", "metadata": {"name": "curves"}, "data": {"a": "ours"}}
    overrides = api.DeploymentOverrides(namespace=ELSEWHERE)
    spec = a_spec(auto_apply=True, deployment_overrides=overrides)
    conditions = (
        Condition(Type.DEPLOYED, "False", refusal),
        Condition(Type.SUCCEEDED, "False", refusal, observed_generation=1),
    )
    status = RequestStatus(
        state="Failed",
        observed_generation=1,
        conditions=conditions,
        generated_deployment=mounting("curves"),
        additional_resources=(curves,),
        deployment=api.DeploymentStatus(name="r", namespace=ELSEWHERE),
    )
    metadata = Metadata(name="r", namespace="lab", uid="u", generation=1)
    request = Request(metadata, spec, status)
    results = api.with_results(request)
    return replace(request, metadata=replace(metadata, annotations=api.annotation(results)))


class World(RequestWorld):
    """A cluster with that request, where the other namespace has these ConfigMaps already."""

    def __init__(self, request: Request, *taken: str) -> None:
        super().__init__()
        body = msgspec.json.decode(msgspec.json.encode(request))
        self.add(request.KIND, *REQUEST, spec=body["spec"], status=body["status"])
        uid = self.stored(request.KIND, *REQUEST)["metadata"]["uid"]
        if (record := api.recorded(request)) is not None:
            annotated = {"metadata": {"annotations": api.annotation(replace(record, uid=uid))}}
            self.server.storage.merge(path_of(request.KIND), REQUEST, annotated)
        for name in taken or ("curves",):
            self.add(api.Output.KIND, ELSEWHERE, name, data={"a": "theirs"})

    def graph(self, namespace: str = ELSEWHERE) -> Object | None:
        """The graph of the request."""
        graph: Object | None = self.stored(DynamoGraphDeployment.KIND, namespace, "r")
        return graph

    def content(self, config_map: str) -> str:
        """What a ConfigMap in the other namespace contains."""
        return str(self.stored(api.Output.KIND, ELSEWHERE, config_map)["data"]["a"])


def mounted(graph: Object | None) -> str:
    assert graph is not None
    (volume,) = graph["spec"]["services"]["w"]["extraPodSpec"]["volumes"]
    name: str = volume["configMap"]["name"]
    return name


@pytest.mark.parametrize(
    ("refusal", "taken", "name"),
    [
        (Reason.DEPLOYMENT_CREATION_FAILED, ("curves",), "curves-r"),
        (Reason.NAME_CONFLICT, ("curves", "curves-r"), "curves-r-r"),
    ],
)
async def test_names_that_are_taken_change_before_the_graph_is_created(
    refusal: Reason, taken: tuple[str, ...], name: str
) -> None:
    world = World(refused_before(refusal), *taken)
    *_, renamed = [await world.reconciled() for _ in taken]
    assert name == mounted(renamed.status.generated_deployment)
    created = await world.reconciled()
    assert created.status.deployment is not None
    assert created.status.deployment.created
    assert name == mounted(world.graph())
    assert "ours" == world.content(name)
    assert ["theirs"] * len(taken) == [*map(world.content, taken)]
    assert "ConfigMaps" not in (created.status.message or "")


async def test_a_graph_whose_config_map_is_refused_gets_it_as_soon_as_that_is_possible() -> None:
    world = World(refused_before(Reason.DEPLOYMENT_CREATION_FAILED), "other")
    denied = {"code": 403, "reason": "Forbidden", "message": "exceeded quota"}
    world.server.refuse = lambda request, _: denied if request.path.endswith("/curves") else None
    for reason in (*2 * [Reason.DEPLOYMENT_CREATION_FAILED], Reason.DEPLOYMENT_CREATED):
        if reason is Reason.DEPLOYMENT_CREATED:
            world.server.refuse = lambda *_: None
        request = await world.reconciled()
        step = condition(request.status.conditions, Type.DEPLOYED)
        assert step is not None
        assert ("Deploying", reason) == (request.status.state, step.reason)
        assert ("exceeded quota" in step.message) == (reason is Reason.DEPLOYMENT_CREATION_FAILED)
    assert "ours" == world.content("curves")


async def test_results_that_another_wrote_into_the_status_create_nothing() -> None:
    """The operator reads them again, from a ConfigMap that is gone here."""
    request = refused_before(Reason.DEPLOYMENT_CREATION_FAILED)
    planted = {"kind": "ConfigMap", "metadata": {"name": "planted"}}
    for change in (
        {"additional_resources": (planted,)},
        {"generated_deployment": mounting("planted"), "additional_resources": ()},
        {"accepted_spec": {"model": "m", "backend": "vllm", "autoApply": True}},
    ):
        status = replace(request.status, state="Deploying", **change)
        world = World(replace(request, status=status))
        for _ in range(3):
            await world.reconciled()
        assert world.stored(api.Output.KIND, ELSEWHERE, "planted") is None
        graph = world.graph()
        assert graph is None or "curves-r" == mounted(graph)


async def test_a_forged_status_takes_no_graph_to_another_namespace() -> None:
    request = refused_before(Reason.DEPLOYMENT_CREATION_FAILED)
    elsewhere = api.DeploymentStatus(name="r", namespace="victim")
    status = replace(request.status, state="Deploying", deployment=elsewhere)
    world = World(replace(request, status=status))
    for _ in range(3):
        await world.reconciled()
    assert world.graph("victim") is None
    assert world.graph() is not None


async def test_what_was_created_is_recorded_so_that_no_status_creates_it_again() -> None:
    world = World(refused_before(Reason.DEPLOYMENT_CREATION_FAILED))
    await world.reconciled()
    request = await world.reconciled()
    record = api.recorded(request)
    assert record is not None
    assert record.created
    graph = await world.client.get(DynamoGraphDeployment, Key(ELSEWHERE, "r"))
    world.server.storage.delete(path_of(DynamoGraphDeployment.KIND), graph.key, {})
    world.cache.store(DynamoGraphDeployment).on_watch_event(Removed(graph.key, graph.metadata.uid))
    forged = {"state": "Deploying", "deployment": None}
    path = path_of(Request.KIND)
    world.server.storage.merge(path, REQUEST, {"status": forged}, "status")
    request = await world.reconciled()
    assert "DeploymentDeleted" == request.status.state
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


async def test_a_config_map_of_others_stays_as_it_is() -> None:
    world = World(refused_before(Reason.DEPLOYMENT_CREATION_FAILED))
    request, curves = await world.request(), {"kind": "ConfigMap", "metadata": {"name": "curves"}}
    theirs = await world.client.get(api.Output, Key(ELSEWHERE, "curves"))
    there = Destination(ELSEWHERE, config_maps={"curves": theirs})
    (problem,) = await world.controller.create_config_maps(request, [curves], there, None)
    assert problem.endswith("curves: it exists and has another owner; the operator leaves it alone")
    assert "theirs" == world.content("curves")
