"""The same for builds of the older generation: their Secrets, Jobs, images and statuses.

The local control plane ends the pods of Jobs at once, as a build that succeeds.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec
import pytest

from cluster.legacy.conftest import legacy_kinds, operated
from cluster.legacy.deployments import (
    COMPONENT,
    DEPLOYMENT,
    GRAPH,
    NIM,
    REQUEST,
    TAG,
    condition_of,
    disagg,
    is_successful,
)
from cluster.legacy.test_request import JOB, NAME, SECRET, owned_jobs, request, unplaceable
from cluster.requests.playing import tell, terminated
from cluster.world import PODS, World
from dynamo_legacy.api import DynamoNimRequest
from dynamo_legacy.build.job import REBUILD, job_name
from dynamo_legacy.names import nim_name
from faults.scenarios import Scenario
from kube_runtime.types.meta import Kind
from simulated.image_store import archive, image_store

__all__ = ["legacy_kinds", "operated"]

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

EXISTING = "exists:1"


@pytest.fixture(scope="module")
def compared() -> tuple[Kind, ...]:
    """What there is of the older generation, and of its builds."""
    return DEPLOYMENT, COMPONENT, REQUEST, NIM, JOB, SECRET


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    """It serves the older generation."""
    return ("--enable-legacy-kinds",)


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


def says(status: str, name: str = NAME) -> Callable[[World], bool]:
    """Whether a request says that of its image."""

    def holds(world: World) -> bool:
        found = world.get(REQUEST, name)
        return found is not None and condition_of(found, "DynamoNimAvailable")[:1] == (status,)

    return holds


def is_rebuilt(world: World) -> bool:
    """Whether the only Job is that of the newest request, and has ended."""
    found = world.get(REQUEST, NAME)
    newest = job_name(msgspec.convert(found, DynamoNimRequest))
    names = [each["metadata"]["name"] for each in owned_jobs(world)]
    is_reported = newest in condition_of(found or {}, "ImageBuilding")[2]
    return names == [newest] and is_reported and says("True")(world)


def rebuild(world: World) -> None:
    """Have the user ask for another build of the same."""
    world.patch(REQUEST, NAME, {"metadata": {"annotations": {REBUILD: "2"}}})


def fails(world: World) -> bool:
    """Whether the request says that its build has failed; the builder fails on the way."""
    for pod in world.list(PODS):
        if pod["status"]["phase"] == "Pending":
            tell(world, pod["metadata"]["name"], "Failed", {"builder": terminated(1, "no space")})
    return says("False")(world)


def is_gone(world: World) -> bool:
    """Whether nothing is left of the request."""
    return not any(world.list(kind) for kind in (REQUEST, NIM, JOB, SECRET, PODS))


def is_deployed(world: World) -> bool:
    """Whether the deployment says that its newest spec runs, from an image that was built for it."""
    body = world.get(DEPLOYMENT, "disagg")
    return body is not None and is_successful(body) and says("True")(world)


def created(kind: Kind, body: dict[str, object]) -> Callable[[World], object]:
    """Have the user create it."""
    return lambda world: world.create(kind, body)


SCENARIOS = (
    Scenario("a build", None, created(REQUEST, request()), says("True")),
    Scenario("a build that fails", None, created(REQUEST, request(**unplaceable())), fails),
    Scenario(
        "an image that exists",
        None,
        created(REQUEST, request(EXISTING)),
        says("True", nim_name(EXISTING)),
    ),
    Scenario("another build", request(), rebuild, is_rebuilt, says("True"), REQUEST),
    Scenario(
        "delete a build",
        request(),
        lambda world: world.delete(REQUEST, NAME),
        is_gone,
        says("True"),
        REQUEST,
    ),
    Scenario("a deployment that is built", None, created(DEPLOYMENT, disagg()), is_deployed),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_build_ends_the_same_whenever_the_operator_is_killed(
    scenario: Scenario, survives: Callable[[Scenario], None]
) -> None:
    survives(scenario)
