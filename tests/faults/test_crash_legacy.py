"""The same for the older generation: builds, with their Secrets, Jobs, images and statuses, and deployments.

The local control plane ends the pods of Jobs at once, as a build that succeeds.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec
import pytest

from cluster.legacy.conftest import legacy_kinds, operated, operator_flags
from cluster.legacy.deployments import (
    COMPONENT,
    CONFIG,
    DEPLOYMENT,
    GRAPH,
    NIM,
    REQUEST,
    TAG,
    condition_of,
    disagg,
    graph_config,
    image,
    is_successful,
)
from cluster.requests.playing import tell, terminated
from cluster.world import PODS, World
from dynamo_legacy.api import DynamoNimRequest
from dynamo_legacy.build.job import REBUILD, job_name
from dynamo_legacy.names import nim_name
from dynamo_operator.shared.cluster import PullSecret
from faults.playing import every_second
from faults.scenarios import Scenario
from kube_runtime.types.kinds import Deployment, Job
from kube_runtime.types.meta import Kind, Object
from simulated.image_store import archive, image_store

__all__ = ["legacy_kinds", "operated", "operator_flags"]

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

UNPLACEABLE: Object = {"imageBuilderExtraPodSpec": {"nodeSelector": {"no": "such-node"}}}
"""What keeps the pods of a build from running, so that the test can be their kubelet."""
JOB, SECRET = Job.KIND, PullSecret.KIND
NAME = nim_name(TAG)
EXISTING = "exists:1"
SMALL = """
service: graphs.agg:Frontend
entry_service: Frontend
services:
- name: Frontend
- name: Worker
  config: {dynamo: {enabled: true, name: Worker}, autoscaling: {min_replicas: 1, max_replicas: 2}}
"""
WITHOUT_WORKER = "service: graphs.agg:Frontend\nservices: [{name: Frontend}]"
BESIDE = ((NIM, image()), (CONFIG, graph_config(SMALL)))


@pytest.fixture(scope="module")
def compared() -> tuple[Kind, ...]:
    return DEPLOYMENT, COMPONENT, REQUEST, NIM, JOB, SECRET


@pytest.fixture(scope="module")
def operator_variables() -> Iterator[Mapping[str, str]]:
    """A registry that has one image, and a store that has one archive."""
    with image_store() as store:
        store.images.add(f"yatai.{EXISTING.replace(':', '.')}")
        store.archives[TAG] = archive(GRAPH)
        yield {
            "BUILDKIT_URL": "tcp://buildkitd:1234",
            "DOCKER_REGISTRY_SECURE": "false",
            "DOCKER_REGISTRY_SERVER": f"{store.address}/nvidian",
            "DOCKER_REGISTRY_USERNAME": "me",
            "INTERNAL_IMAGES_BENTO_DOWNLOADER": "operator:1",
            "YATAI_ENDPOINT": f"http://{store.address}",
        }


def request(tag: str = TAG, **spec: object) -> Object:
    source = {"downloadUrl": "https://archives.example.com/a.tar"}
    return {"metadata": {"name": nim_name(tag)}, "spec": {"bentoTag": tag, **source, **spec}}


def says(status: str, name: str = NAME) -> Callable[[World], bool]:
    def holds(world: World) -> bool:
        found = world.get(REQUEST, name)
        return found is not None and condition_of(found, "DynamoNimAvailable")[:1] == (status,)

    return holds


def is_rebuilt(world: World) -> bool:
    """Whether the only Job is that of the newest request, and has ended."""
    found = world.get(REQUEST, NAME)
    newest = job_name(msgspec.convert(found, DynamoNimRequest))
    names = [
        each["metadata"]["name"] for each in world.list(JOB) if "deletionTimestamp" not in each["metadata"]
    ]
    is_reported = newest in condition_of(found or {}, "ImageBuilding")[2]
    return names == [newest] and is_reported and says("True")(world)


def rebuild(world: World) -> None:
    world.patch(REQUEST, NAME, {"metadata": {"annotations": {REBUILD: "2"}}})


def fails(world: World) -> bool:
    """Whether the request says that its build has failed; the builder fails on the way."""
    for pod in world.list(PODS):
        if pod["status"]["phase"] == "Pending":
            tell(world, pod["metadata"]["name"], "Failed", {"builder": terminated(1, "no space")})
    return says("False")(world)


def is_gone(world: World) -> bool:
    return not any(world.list(kind) for kind in (REQUEST, NIM, JOB, SECRET, PODS))


def created(kind: Kind, body: dict[str, object]) -> Callable[[World], object]:
    return lambda world: world.create(kind, body)


def small() -> Object:
    made = disagg()
    made["spec"]["services"] = {"Frontend": {"replicas": 1}}
    return made


def runs(world: World) -> bool:
    body = world.get(DEPLOYMENT, "disagg")
    return body is not None and is_successful(body)


def is_deployed(world: World) -> bool:
    """Whether that is so, with an image that was built for it."""
    return runs(world) and says("True")(world)


def is_undeployed(world: World) -> bool:
    kinds = (DEPLOYMENT, COMPONENT, Deployment.KIND)
    return not any(world.list(kind) for kind in kinds)


def is_without_worker(world: World) -> bool:
    """Whether the service that left the graph is gone, and the rest runs."""
    return runs(world) and world.get(COMPONENT, "disagg-worker") is None


def edit(world: World) -> None:
    services = {"Frontend": {"replicas": 2, "labels": {"team": "a"}}}
    spec = {"services": services, "envs": [{"name": "A", "value": "b"}]}
    world.patch(DEPLOYMENT, "disagg", {"spec": spec})


def remove_worker(world: World) -> None:
    world.patch(CONFIG, nim_name(TAG), {"data": {"bento.yaml": WITHOUT_WORKER}})


def scenario(
    name: str, before: Object | None, act: Callable[[World], object], end: Callable[[World], bool] = runs
) -> Scenario:
    """A scenario of a deployment whose graph and image are there."""
    return Scenario(name, before, act, end, runs, kind=DEPLOYMENT, beside=BESIDE)


SCENARIOS = (
    Scenario("a build", None, created(REQUEST, request()), says("True")),
    Scenario("a build that fails", None, created(REQUEST, request(**UNPLACEABLE)), fails),
    Scenario(
        "an image that exists", None, created(REQUEST, request(EXISTING)), says("True", nim_name(EXISTING))
    ),
    Scenario("another build", request(), rebuild, is_rebuilt, says("True"), REQUEST),
    Scenario(
        "delete a build", request(), lambda world: world.delete(REQUEST, NAME), is_gone, says("True"), REQUEST
    ),
    Scenario("a deployment that is built", None, created(DEPLOYMENT, disagg()), is_deployed),
    scenario("create", None, lambda world: world.create(DEPLOYMENT, small())),
    scenario("edit", small(), edit),
    scenario("take a service out of the graph", small(), remove_worker, is_without_worker),
    scenario("delete", small(), lambda world: world.delete(DEPLOYMENT, "disagg"), is_undeployed),
)


@every_second(SCENARIOS)
def test_builds_and_deployments_end_the_same_whenever_the_operator_is_killed(
    scenario: Scenario, survives: Callable[[Scenario], None]
) -> None:
    survives(scenario)
