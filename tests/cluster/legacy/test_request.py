"""DynamoNimRequests on the real control plane, with a registry of this test."""

from collections.abc import Callable, Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.legacy.deployments import (
    DEPLOYMENT,
    NIM,
    REQUEST,
    TAG,
    condition_of,
    disagg,
    is_successful,
    with_graph,
)
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import PODS, World
from dynamo_legacy.names import nim_name
from dynamo_operator.shared.cluster import PullSecret
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Object
from simulated.image_store import ImageStore, image_store

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

JOB, SECRET = Job.KIND, PullSecret.KIND
NAME = nim_name(TAG)


@pytest.fixture(scope="module")
def registry() -> Iterator[ImageStore]:
    """The administrator's registry."""
    with image_store() as found:
        yield found


@pytest.fixture(scope="module")
def shared_operator(
    operated: ControlPlane, registry: ImageStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """An operator that builds."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    variables = {
        "DOCKER_REGISTRY_SECURE": "false",
        "DOCKER_REGISTRY_SERVER": f"{registry.address}/nvidian",
        "DOCKER_REGISTRY_USERNAME": "me",
        "DOCKER_REGISTRY_PASSWORD": "s3cret-of-the-registry",
        "BUILDKIT_URL": "tcp://buildkitd:1234",
        "INTERNAL_IMAGES_BENTO_DOWNLOADER": "operator:1",
    }
    flags = (*OFF, "--enable-legacy-kinds")
    with OperatorProcess(operated.kubeconfig, log, flags, variables=variables) as process:
        process.ready()
        yield process
    assert "s3cret-of-the-registry" not in log.read_text()


def request(tag: str = TAG, annotations: dict[str, str] | None = None, **spec: object) -> Object:
    """A request with an archive."""
    source = {"downloadUrl": "https://archives.example.com/a.tar"}
    return {
        "metadata": {"name": nim_name(tag), "annotations": annotations or {}},
        "spec": {"bentoTag": tag, **source, **spec},
    }


def says(type_: str, status: str, text: str = "") -> Callable[[Object], bool]:
    """Whether a condition has that status, and the text in its message."""

    def holds(found: Object) -> bool:
        said = condition_of(found, type_)
        return bool(said) and said[0] == status and text in said[2]

    return holds


def owned_jobs(world: World) -> list[Object]:
    """The Jobs of the namespace that are not on their way out."""
    return [each for each in world.list(JOB) if "deletionTimestamp" not in each["metadata"]]


def unplaceable() -> Object:
    """What keeps the pods of a build from running, so that the test can be their kubelet."""
    return {"imageBuilderExtraPodSpec": {"nodeSelector": {"no": "such-node"}}}


def image_tag(world: World, tag: str) -> str:
    """The tag of the image that a request is for."""
    return f"yatai.{tag.replace(':', '.')}"


def test_an_image_that_exists_is_not_built(world: World, registry: ImageStore) -> None:
    tag = "exists:1"
    registry.images.add(image_tag(world, tag))
    world.create(REQUEST, request(tag))
    found = world.eventually(REQUEST, nim_name(tag), says("DynamoNimAvailable", "True"))
    image = f"{registry.address}/nvidian/yatai-bentos:yatai.exists.1"
    assert condition_of(found, "ImageExists") == ("True", "Succeeded", image)
    nim = world.get(NIM, nim_name(tag))
    assert nim is not None
    assert nim["spec"] == {
        "tag": tag,
        "image": image,
        "imagePullSecrets": [{"name": "yatai-regcred"}],
    }
    assert [] == world.list(JOB)
    secret = world.get(SECRET, "yatai-regcred")
    assert secret is not None
    assert "kubernetes.io/dockerconfigjson" == secret["type"]
    assert [tag.replace(":", ".")] == [
        each.removeprefix("yatai.") for each in registry.requested if "exists" in each
    ]


def test_a_failed_build_says_the_last_line_of_its_log(world: World) -> None:
    world.create(REQUEST, request(**unplaceable()))
    world.until(lambda: bool(world.list(PODS)))
    (pod,) = world.list(PODS)
    log = "#7 RUN uv sync\nerror: failed to solve: exit code: 1"
    ended = {"terminated": {"exitCode": 1, "message": log}}
    status = {
        "name": "builder",
        "ready": False,
        "restartCount": 0,
        "image": "b",
        "imageID": "b",
        "state": ended,
    }
    report = {"phase": "Failed", "containerStatuses": [status]}
    world.patch(PODS, pod["metadata"]["name"], {"status": report}, "status")
    found = world.eventually(REQUEST, NAME, says("DynamoNimAvailable", "False", "failed to solve"))
    assert condition_of(found, "DynamoNimAvailable")[1] == "BuildFailed"
    assert None is world.get(NIM, NAME)


def test_a_deployment_runs_from_the_image_that_its_request_built(world: World) -> None:
    with_graph(world)
    world.create(DEPLOYMENT, disagg())
    world.eventually(REQUEST, NAME, says("DynamoNimAvailable", "False", "no archive"))
    source = {"http": {"url": "https://archives.example.com/a.tar"}}
    world.patch(REQUEST, NAME, {"spec": {"source": source}})
    world.eventually(DEPLOYMENT, "disagg", is_successful)
    (job,) = owned_jobs(world)
    assert "builder" == job["spec"]["template"]["spec"]["containers"][0]["name"]


def test_a_request_over_the_size_limit_says_so(world: World) -> None:
    world.create(REQUEST, request(buildArgs=[f"A={'x' * 300_000}"]))
    world.eventually(REQUEST, NAME, says("DynamoNimAvailable", "False", "bytes"))
    assert [] == world.list(JOB)
