"""ServiceAccounts that discover GPUs may read nodes for as long as such a request exists."""

from typing import Any

from msgspec.structs import replace

from dynamo_operator.requests.api import (
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    DynamoGraphDeploymentRequestStatus,
    ProfilingConfig,
    Record,
    annotation,
)
from dynamo_operator.requests.plan import RequestConditionType, RequestReason
from dynamo_operator.requests.read import GpuDiscoveryRbac
from kube_runtime.apply.writer import Writer
from kube_runtime.client.client import Client
from kube_runtime.kind import Key
from kube_runtime.types.kinds import ClusterRoleBinding
from kube_runtime.types.meta import Condition, Metadata
from kube_runtime.url_path import path_of
from simulated.caches import a_cache
from simulated.server import Server

NAME = "x-dgdr-profiling-nodes"
PATH = path_of(ClusterRoleBinding.KIND)


def a_request(
    namespace: str, state: str = "Pending", *, searches: bool = True, account: str = ""
) -> DynamoGraphDeploymentRequest:
    spec = DynamoGraphDeploymentRequestSpec(
        model="m",
        backend="vllm",
        enable_gpu_discovery=searches,
        profiling_config=ProfilingConfig("p:1", service_account_name=account or None),
    )
    status = DynamoGraphDeploymentRequestStatus(state=state)
    return DynamoGraphDeploymentRequest(Metadata(name="r", namespace=namespace), spec, status)


def could_not_start(namespace: str) -> DynamoGraphDeploymentRequest:
    """A request whose Job was refused, and which the operator retries."""
    conditions = (
        Condition(RequestConditionType.PROFILING, "False", RequestReason.JOB_CREATION_FAILED),
        Condition(RequestConditionType.SUCCEEDED, "False", observed_generation=1),
    )
    status = DynamoGraphDeploymentRequestStatus(
        state="Failed", observed_generation=1, conditions=conditions
    )
    metadata = Metadata(name="r", namespace=namespace, generation=1)
    return replace(a_request(namespace), metadata=metadata, status=status)


class World:
    """A cluster with these requests and, usually, the list."""

    def __init__(self, *requests: DynamoGraphDeploymentRequest, has_list: bool = True) -> None:
        self.server = Server()
        if has_list:
            self.server.storage.create(
                PATH, {"metadata": {"name": NAME}, "roleRef": {"name": NAME}}
            )
        cache, client = a_cache([DynamoGraphDeploymentRequest], requests), Client(self.server)
        self.readers = GpuDiscoveryRbac(client, Writer(client, cache), cache, NAME)

    def listed(self) -> list[str]:
        body: Any = self.server.storage.read(PATH, Key("", NAME))
        assert {"dgdr-profiling-job"} >= {each["name"] for each in body.get("subjects", ())}
        return [each["namespace"] for each in body.get("subjects", ())]


async def test_each_namespace_that_looks_for_gpus_is_listed_once() -> None:
    world = World(a_request("b", "Profiling"), a_request("c", searches=False))
    assert "" == await world.readers.admit(a_request("a"))
    assert ["a", "b"] == world.listed()


async def test_who_has_found_what_he_looked_for_is_taken_out() -> None:
    world = World(a_request("b", "Profiling"))
    await world.readers.admit(a_request("a"))
    ended = World(a_request("a", "Ready"), a_request("b", "Failed"))
    ended.server = world.server
    ended.readers = GpuDiscoveryRbac(
        world.readers.client, world.readers.writer, ended.readers.cache, NAME
    )
    await ended.readers.admit(a_request("d"))
    assert ["d"] == world.listed()


async def test_one_that_could_not_start_before_is_listed_when_it_is_tried_again() -> None:
    failed = could_not_start("a")
    world = World(failed, a_request("b", "Failed"))
    await world.readers.admit(failed)
    assert ["a"] == world.listed()


async def test_of_two_that_are_tried_again_together_none_takes_the_other_out() -> None:
    one, two = could_not_start("a"), could_not_start("b")
    world = World(one, two)
    for each in (one, two):  # the first has a Job by now, which its status does not report yet
        await world.readers.admit(each)
    assert ["a", "b"] == world.listed()


async def test_an_account_of_the_users_own_is_not_listed() -> None:
    world = World(a_request("b", "Profiling", account="mine"))
    await world.readers.admit(a_request("a"))
    assert ["a"] == world.listed()


async def test_an_installation_without_the_list_is_told_of() -> None:
    world = World(has_list=False)
    assert "spec.enableGpuDiscovery requires" in await world.readers.admit(a_request("a"))


async def test_when_a_request_ends_or_is_deleted_its_account_is_taken_out_at_once() -> None:
    world = World(a_request("b", "Profiling"))
    await world.readers.admit(a_request("a"))
    await world.readers.withdraw()  # the request in `a` is not in the cache any more
    assert ["b"] == world.listed()


async def test_without_any_to_take_out_nothing_is_asked_twice() -> None:
    world = World(a_request("b", "Profiling"))
    await world.readers.withdraw()
    asked = len(world.server.requests)
    await world.readers.withdraw()
    assert asked == len(world.server.requests)
    assert ["b"] == world.listed()


async def test_an_installation_without_the_list_has_none_to_take_out() -> None:
    world = World(has_list=False)
    await world.readers.withdraw()


async def test_a_forged_status_grants_no_reading_of_nodes() -> None:
    ended = a_request("a", "Profiling")
    record = Record("u", 1, "", job="j", results="digest")
    metadata = replace(ended.metadata, uid="u", annotations=annotation(record))
    world = World(replace(ended, metadata=metadata))
    await world.readers.admit(a_request("b"))
    assert ["b"] == world.listed()
