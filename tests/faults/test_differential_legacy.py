"""The same for DynamoDeployments: edits, other tags and other graphs leave nothing behind.

A registry has the images and a store the graphs of all tags. `make long` plays 50 sequences, `make test` 3.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conditions import condition
from cluster.conftest import ControlPlane
from cluster.legacy.conftest import legacy_kinds
from cluster.legacy.deployments import COMPONENT, DEPLOYMENT, NIM, REQUEST, is_successful
from cluster.world import World
from dynamo_legacy.names import HorizontalPodAutoscaler
from dynamo_operator.shared.cluster import PullSecret
from faults.differential import Subject, operated_through_proxy, sequences
from faults.proxy import Proxy
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object
from simulated.image_store import archive, image_store

__all__ = ["legacy_kinds"]

SEQUENCES = sequences(in_full=50, sample=3)
NAME = "agg"
WORKER = "{name: Worker, config: {dynamo: {enabled: true, name: Worker}, resources: {cpu: '1'}}}"
GRAPHS = {
    "agg:v1": f"service: g:F\nentry_service: Frontend\nservices: [{{name: Frontend}}, {WORKER}]",
    "agg:v2": f"service: g:F\nentry_service: Frontend\nservices: [{{name: Frontend}}, {WORKER}, "
    "{name: Router, config: {dynamo: {enabled: true, name: Router}}}]",
    "bare:v1": "service: b:F\nservices: [{name: Frontend}]",
}
SERVICES = ("Frontend", "Worker", "Router")
SCALED = 2
"""The replicas that an autoscaler brings a service to: without measurements, only its bounds count."""
ALWAYS = {"enabled": True, "minReplicas": SCALED, "maxReplicas": SCALED}
PROBE = {"httpGet": {"path": "/live", "port": 3000}, "periodSeconds": 7}
FIELDS: dict[str, tuple[object, ...]] = {
    "replicas": (None, 0, 1, 2),
    "envs": (None, [], [{"name": "A", "value": "1"}], [{"name": "PORT", "value": "3500"}]),
    "labels": (None, {"team": "search"}, {"team": None, "tier": "gold"}),
    "annotations": (None, {"note": "x"}, {"yatai.ai/deployment-strategy": "Recreate"}),
    "livenessProbe": (None, PROBE, {**PROBE, "periodSeconds": 9}),
    "readinessProbe": (None, PROBE),
    "ingress": (None, {"enabled": True}, {"enabled": False}, {"host": "chat", "hostPrefix": "a-"}),
    "extraPodMetadata": (None, {"labels": {"a": "b"}}, {"annotations": {"c": "d"}}),
    "resources": (None, {"limits": {"memory": "2Gi"}}, {"requests": {"cpu": "1"}}),
    "autoscaling": (None, ALWAYS, {"enabled": False}),
}

pytestmark = pytest.mark.cluster


def a_deployment() -> Object:
    return {"metadata": {"name": NAME}, "spec": {"dynamoNim": "agg:v1"}}


def edit(_: Object, dice: random.Random) -> Object:
    """A merge patch that keeps the deployment valid."""
    match dice.choices(("tag", "envs", "service", "field"), (2, 1, 1, 6))[0]:
        case "tag":
            return {"spec": {"dynamoNim": dice.choice(tuple(GRAPHS))}}
        case "envs":
            return {"spec": {"envs": dice.choice((None, [{"name": "ALL", "value": "1"}]))}}
        case "service":
            return {"spec": {"services": {dice.choice(SERVICES): None}}}
    field = dice.choice(tuple(FIELDS))
    services = {dice.choice(SERVICES): {field: dice.choice(FIELDS[field])}}
    return {"spec": {"services": services}}


def is_settled(world: World) -> bool:
    """Whether the newest spec runs, and autoscalers have done what they do without measurements.

    They scale late: a deployment that was successful before has components that are not available meanwhile.
    """
    body = world.get(DEPLOYMENT, NAME)
    if body is None or not is_successful(body):
        return False
    scaled = {each["metadata"]["name"] for each in world.list(HorizontalPodAutoscaler.KIND)}
    deployments = world.list(Deployment.KIND)
    components = world.list(COMPONENT)
    return (
        all(map(is_available, deployments))
        and all(condition(it, "Available").get("status") == "True" for it in components)
        and all(
            deployment["spec"]["replicas"] == SCALED
            for deployment in deployments
            if deployment["metadata"]["name"] in scaled
        )
    )


def is_available(deployment: Object) -> bool:
    """Whether all replicas that a Deployment has now been given are available."""
    status = deployment.get("status", {})
    is_observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return bool(is_observed and status.get("availableReplicas", 0) == deployment["spec"]["replicas"])


DEPLOYMENTS = Subject(
    *(DEPLOYMENT, a_deployment, edit, is_settled),
    more=(DEPLOYMENT, COMPONENT, REQUEST, NIM, PullSecret.KIND, HorizontalPodAutoscaler.KIND),
)


@pytest.fixture
def proxy(legacy_kinds: ControlPlane, tmp_path: Path) -> Iterator[Proxy]:
    with image_store() as store:
        for tag, graph in GRAPHS.items():
            store.images.add(f"yatai.{tag.replace(':', '.')}")
            store.archives[tag] = archive(graph)
        variables = {
            "DOCKER_REGISTRY_SECURE": "false",
            "DOCKER_REGISTRY_SERVER": f"{store.address}/nvidian",
            "DOCKER_REGISTRY_USERNAME": "me",
            "YATAI_ENDPOINT": f"http://{store.address}",
        }
        flags = ("--enable-legacy-kinds", "--ingress-controller-class-name=nginx")
        with operated_through_proxy(legacy_kinds, tmp_path, *flags, **variables) as running:
            yield running


@pytest.mark.timeout(600 + 60 * SEQUENCES)
def test_edits_end_as_the_last_spec_created_afresh(proxy: Proxy, measured: list[str]) -> None:
    told = DEPLOYMENTS.differences(proxy, SEQUENCES)
    measured.append(f"older generation: {SEQUENCES - len(told)} of {SEQUENCES} sequences end alike")
    assert [] == told, "\n".join(told)
