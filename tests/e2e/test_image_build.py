"""Builds of the older generation with real parts: an archive becomes an image, and the image serves.

The operator, installed by its chart, does all of it: it asks the store for the graph of a tag, creates
the Job that builds and pushes the image, and runs the services from it.
"""

import json
import time
from collections.abc import Iterator

import pytest

from cluster.legacy.deployments import DEPLOYMENT, REQUEST, condition_of, is_successful
from cluster.world import NAMESPACES, PODS, World
from dynamo_legacy.build.job import BUILDER_ACCOUNT
from dynamo_legacy.build.source import CONFIG_MAP
from dynamo_legacy.names import GRAPH_CONFIG_KEY
from dynamo_legacy.render import parse_graph_config
from dynamo_operator.shared.cluster import PullSecret
from e2e.cluster import CHARTS, FIRST, SERVICES, SYSTEM, RealCluster
from e2e.conftest import Report, fresh
from e2e.image_services import (
    BUILDKIT_URL,
    CONFIG_MAPS,
    REGISTRY_OF_NODES,
    REGISTRY_OF_PODS,
    image_services,
    offer_archive,
)
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Kind, Object
from realnode.servers import PASSWORD, USER

ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts")
PATH = "/api/v1/dynamo_nims/chat/versions/v1/download"
START = "cd src && uv run dynamo serve --service-name Frontend graphs.chat:Frontend"
GREETING = "it's $(built) here"
PORT = 3000
WITHIN_SECONDS = 300.0
pytestmark = [pytest.mark.cluster, pytest.mark.builds]


@pytest.fixture(scope="module")
def store(bare: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The store of archives of a cluster whose operator serves the older generation and builds."""
    with image_services(bare, tmp_path_factory.mktemp("services")) as services, fresh(bare) as archives:
        url = offer_archive(archives, PATH)
        bare.helm(
            *("upgrade", "--install", "dynamo-crds", CHARTS / "dynamo-crds", "--namespace=default"),
            "--set=legacyKinds.enabled=true",
        )
        configured(bare.world(SYSTEM), base=services.base)
        settings = {
            "BUILDKIT_URL": BUILDKIT_URL,
            "DOCKER_REGISTRY_IN_CLUSTER_SERVER": REGISTRY_OF_PODS,
            "DOCKER_REGISTRY_SECURE": "false",
            "DOCKER_REGISTRY_SERVER": REGISTRY_OF_NODES,
            "DOCKER_REGISTRY_USERNAME": USER,
            "INTERNAL_IMAGES_BUILDKIT": services.client,
            "YATAI_ENDPOINT": url,
            "YATAI_IMAGE_BUILDER_NAMESPACE": SYSTEM,
        }
        legacy = "dynamo-operator.legacyKinds"
        values = {f"{legacy}.settings.{name}": value for name, value in settings.items()}
        values |= {f"{legacy}.enabled": "true", f"{legacy}.settingsSecret": "registry"}
        bare.install(FIRST, "upgrade", "--install", more=values)
        yield url


@pytest.fixture
def place(bare: RealCluster, store: str) -> Iterator[World]:
    """The test's own namespace, with a ServiceAccount whose pods may pull BuildKit's client."""
    with fresh(bare) as found:
        metadata = {"name": "builder", "labels": {BUILDER_ACCOUNT: "true"}}
        pulls = [{"name": "yatai-regcred"}]
        found.create(ACCOUNTS, {"metadata": metadata, "imagePullSecrets": pulls})
        yield found


def configured(system: World, base: str) -> None:
    """What the administrator writes: the password of the registry, and arguments of all builds."""
    if system.get(NAMESPACES, SYSTEM) is None:
        system.create(NAMESPACES, {"metadata": {"name": SYSTEM, "namespace": ""}})
    secret = {"stringData": {"DOCKER_REGISTRY_PASSWORD": PASSWORD}}
    system.create(PullSecret.KIND, {"metadata": {"name": "registry"}, **secret})
    arguments = json.dumps([f"BASE={base}", f"GREETING={GREETING}"])
    data = {"build_args": arguments}
    system.create(CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP}, "data": data})


def explained(world: World) -> str:
    kinds = (DEPLOYMENT, REQUEST, Job.KIND, PODS)
    return json.dumps([each.get("status") for kind in kinds for each in world.list(kind)], indent=1)


def test_a_deployment_is_built_pushed_pulled_and_served(
    bare: RealCluster, place: World, report: Report
) -> None:
    begun = time.monotonic()
    spec: Object = {"dynamoNim": "chat:v1", "services": {"Frontend": {"replicas": 1}}}
    place.create(DEPLOYMENT, {"metadata": {"name": "chat"}, "spec": spec})
    place.until(
        lambda: condition_of(place.get(REQUEST, "chat--v1") or {}, "DynamoNimAvailable")[:1] == ("True",),
        what=lambda: explained(place),
        within_seconds=WITHIN_SECONDS,
    )
    built = time.monotonic() - begun
    at = f"{place.eventually(SERVICES, 'chat-frontend')['spec']['clusterIP']}:{PORT}"
    place.until(
        lambda: bare.inside.get(at, "/").status == 200,
        what=lambda: explained(place),
        within_seconds=WITHIN_SECONDS,
    )
    report(f"{built:.1f} s to the image, {time.monotonic() - begun:.1f} s to the answer")
    answer = bare.inside.get(at, "/").json
    assert {"greeting": GREETING, "started": START.split()[4:]} == answer
    place.eventually(DEPLOYMENT, "chat", is_successful)


def test_a_build_that_fails_ends_at_once_says_why_and_leaves_the_graph(place: World, store: str) -> None:
    spec = {"bentoTag": "odd:v1", "downloadUrl": f"{store}{PATH}", "buildArgs": ["BASE=scratch"]}
    place.create(REQUEST, {"metadata": {"name": "odd--v1"}, "spec": spec})

    def reason() -> str:
        found = place.get(REQUEST, "odd--v1") or {}
        status, why, text = condition_of(found, "DynamoNimAvailable") or ("", "", "")
        return f"{why}: {text}" if status == "False" else ""

    said = place.until(reason, what=lambda: explained(place), within_seconds=WITHIN_SECONDS)
    assert said.startswith("BuildFailed: ")
    assert "builder: " in said
    assert "failed to solve" in said
    assert 1 == len(place.list(PODS))
    kept = place.eventually(CONFIG_MAPS, "odd--v1")["data"][GRAPH_CONFIG_KEY]
    graph = parse_graph_config(kept)
    assert ("graphs.chat:Frontend", "Frontend") == (graph.service, graph.entry_service)
