"""Builds of the older generation with real parts: an archive becomes an image, and the image serves."""

import json
import time
from collections.abc import Iterator

import msgspec
import pytest

from cluster.world import PODS, World
from devcluster.image_services import PASSWORD, USER
from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.build.image import built_image, registry_secret
from dynamo_legacy.build.job import Build, build_job
from dynamo_legacy.build.plan import BuildFacts, fetched_config, plan_build
from dynamo_legacy.build.source import fetch_of
from dynamo_legacy.build.types import BuildJob, BuildPod
from dynamo_legacy.settings import LegacySettings, Secret
from e2e.cluster import FIRST, SERVICES, RealCluster
from e2e.conftest import Report, fresh
from e2e.image_services import (
    BUILDKIT_URL,
    REGISTRY_OF_NODES,
    REGISTRY_OF_PODS,
    ImageServices,
    image_services,
    offer_archive,
)
from kube_runtime.kind import Kind, Object
from kube_runtime.types.batch import Job
from kube_runtime.types.meta import condition

ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts")
IMAGE = f"{REGISTRY_OF_NODES}/yatai-bentos:yatai.chat.v1"
START = "cd src && uv run dynamo serve --service-name Frontend graphs.chat:Frontend"
GREETING = "it's $(built) here"
PORT = 3000
pytestmark = [pytest.mark.cluster, pytest.mark.builds]


@pytest.fixture(scope="module")
def services(
    bare: RealCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ImageServices]:
    """The registry and BuildKit, on the node."""
    with image_services(bare, tmp_path_factory.mktemp("services")) as found:
        yield found


@pytest.fixture
def place(bare: RealCluster) -> Iterator[World]:
    """The test's own namespace, without an operator."""
    with fresh(bare) as found:
        yield found


def settings_for(services: ImageServices) -> LegacySettings:
    """What an administrator of this cluster sets."""
    return LegacySettings(
        buildkit_url=BUILDKIT_URL,
        buildkit_image=services.client,
        fetch_image=FIRST,
        registry_server=REGISTRY_OF_NODES,
        registry_in_cluster_server=REGISTRY_OF_PODS,
        registry_username=USER,
        registry_password=Secret(PASSWORD),
    )


def request_for(world: World, url: str, *arguments: str) -> DynamoNimRequest:
    """A request to build the archive at this URL, with these build arguments."""
    body = {
        "metadata": {"name": "chat--v1", "namespace": world.namespace, "uid": "u"},
        "spec": {
            "bentoTag": "chat:v1",
            "downloadUrl": url,
            "buildArgs": list(arguments),
            "imageBuildTimeout": "5m",
        },
    }
    return msgspec.convert(body, DynamoNimRequest)


def apply(world: World, body: Object) -> None:
    """Create an object from its whole manifest."""
    plural = f"{body['kind'].lower()}s"
    group, _, version = body["apiVersion"].rpartition("/")
    world.create(Kind(group, version, body["kind"], plural), body)


def run_job(
    world: World, request: DynamoNimRequest, services: ImageServices
) -> tuple[Object, list[Object]]:
    """The Job of a request when it has ended, and its pods."""
    settings = settings_for(services)
    apply(world, registry_secret(world.namespace, settings))
    world.create(
        ACCOUNTS,
        {"metadata": {"name": "builder"}, "imagePullSecrets": [{"name": "yatai-regcred"}]},
    )
    image = built_image(request, settings)
    assert IMAGE == image.name
    build = Build(image, fetch_of(request, settings), settings, account="builder")
    job = build_job(request, build)
    apply(world, job)
    ended = world.eventually(Job.KIND, job["metadata"]["name"], _has_ended, within_seconds=240)
    pods = [each for each in world.list(PODS) if "job-name" in each["metadata"].get("labels", {})]
    return ended, pods


def serve(world: World) -> None:
    """A service of the image, as components of that generation start it, and its Service."""
    labels = {"app": "chat"}
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-c", START],
        "env": [{"name": "PORT", "value": str(PORT)}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    spec = {
        "containers": [container],
        "imagePullSecrets": [{"name": "yatai-regcred"}],
        "terminationGracePeriodSeconds": 0,
    }
    world.create(PODS, {"metadata": {"name": "chat", "labels": labels}, "spec": spec})
    ports = [{"port": PORT}]
    world.create(
        SERVICES, {"metadata": {"name": "chat"}, "spec": {"selector": labels, "ports": ports}}
    )


def test_an_archive_is_built_by_the_job_pushed_pulled_and_served(
    bare: RealCluster, place: World, services: ImageServices, report: Report
) -> None:
    arguments = (f"BASE={services.base}", f"GREETING={GREETING}")
    request = request_for(place, offer_archive(place), *arguments)

    begun = time.monotonic()
    ended, pods = run_job(place, request, services)
    assert "Complete" in _conditions(ended), json.dumps([each["status"] for each in pods], indent=1)
    built = time.monotonic() - begun

    graph = json.loads(fetched_config([msgspec.convert(each, BuildPod) for each in pods]))
    assert ("graphs.chat:Frontend", "Frontend") == (graph["service"], graph["entry_service"])

    serve(place)
    at = f"{place.eventually(SERVICES, 'chat')['spec']['clusterIP']}:{PORT}"
    place.until(
        lambda: bare.inside.get(at, "/").status == 200,
        what=lambda: json.dumps(place.get(PODS, "chat")),
    )
    report(
        f"{built:.1f} s from the Job to the image, {time.monotonic() - begun:.1f} s to the answer"
    )
    answer = bare.inside.get(at, "/").json
    assert {"greeting": GREETING, "started": START.split()[4:]} == answer


def test_a_build_that_fails_ends_at_once_and_says_why(
    place: World, services: ImageServices
) -> None:
    request = request_for(place, offer_archive(place), "BASE=scratch")
    ended, pods = run_job(place, request, services)
    assert "Failed" in _conditions(ended)
    assert 1 == len(pods)
    facts = BuildFacts(
        IMAGE,
        [msgspec.convert(ended, BuildJob)],
        [msgspec.convert(each, BuildPod) for each in pods],
    )
    said = condition(plan_build(request, facts).conditions, "DynamoNimAvailable")
    assert said is not None
    assert ("False", "BuildFailed") == (said.status, said.reason)
    assert "builder: " in said.message
    assert "failed to solve" in said.message


def _has_ended(body: Object) -> bool:
    return bool({"Complete", "Failed"} & _conditions(body))


def _conditions(body: Object) -> set[str]:
    found = body.get("status", {}).get("conditions", ())
    return {each["type"] for each in found if each["status"] == "True"}
