"""The start of profiling: what the request finds in its way."""

from dynamo_operator import names
from dynamo_operator.requests.api import (
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    Output,
    ProfilingConfig,
)
from dynamo_operator.requests.controller import RequestActions
from dynamo_operator.requests.plan import RequestFacts
from dynamo_operator.requests.read import GpuDiscoveryRbac, Grants, RequestReader
from dynamo_operator.settings import RenderSettings
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.writer import Writer
from kube_runtime.client.client import Client
from kube_runtime.kind import Key
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Metadata
from kube_runtime.url_path import path_of
from simulated.caches import a_cache
from simulated.server import Server

NAMESPACE = "lab"
SPEC = DynamoGraphDeploymentRequestSpec("m", "vllm", ProfilingConfig("p:1"))
REQUEST = DynamoGraphDeploymentRequest(Metadata("r", NAMESPACE, "u", generation=1), SPEC)
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
    job = await actions.start(REQUEST, SPEC, facts)
    assert job.key == Key(NAMESPACE, names.profiling_job("r"))
    assert [job.key] == list(server.storage.objects[path_of(Job.KIND)])
    assert {} == server.storage.objects[path_of(Output.KIND)]
