"""DynamoNimDeployments on the real control plane: the printed example, PVCs, autoscalers, late images."""

import pytest

from cluster.legacy.deployments import COMPONENT, IMAGE, condition_of, with_image, worker
from cluster.world import World
from dynamo_legacy.names import HorizontalPodAutoscaler
from kube_runtime.types.kinds import Deployment, PersistentVolumeClaim, Service
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

NAME = "test-41fa991-vllmworker"
AUTOSCALER = HorizontalPodAutoscaler.KIND


def is_available(component: Object) -> bool:
    status = component.get("status", {})
    is_current = status.get("observedGeneration") == component["metadata"]["generation"]
    return is_current and condition_of(component, "Available")[:1] == ("True",)


def test_the_printed_example_waits_for_its_image_and_runs(world: World) -> None:
    world.create(COMPONENT, worker())
    waiting = world.eventually(COMPONENT, NAME, lambda it: bool(condition_of(it, "Available")))
    assert condition_of(waiting, "Available")[:2] == ("Unknown", "Reconciling")
    assert condition_of(waiting, "DynamoNimFound")[0] == "False"
    assert condition_of(waiting, "DynamoNimRequestFound")[0] == "False"
    with_image(world)
    made = world.eventually(COMPONENT, NAME, is_available)
    assert condition_of(made, "Available") == ("True", "DeploymentReady", "Deployment is ready")
    assert condition_of(made, "DynamoNimFound")[0] == "True"
    deployment = world.read(Deployment.KIND, NAME)
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["image"] == IMAGE
    [line] = container["args"]
    assert line.endswith("graphs.disagg:Frontend --Frontend.ServiceArgs.dynamo.namespace=dynamo")
    assert pod["imagePullSecrets"] == [{"name": "yatai-regcred"}]
    assert pod["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "10Gi"}
    service = world.read(Service.KIND, NAME)
    assert [each["port"] for each in service["spec"]["ports"]] == [3000, 3001]


def test_an_autoscaler_owns_the_replicas(world: World) -> None:
    with_image(world)
    made = worker()
    made["spec"] |= {"resources": {}, "replicas": 3}
    world.create(COMPONENT, made)
    world.eventually(COMPONENT, NAME, is_available)
    autoscaling = {"enabled": True, "minReplicas": 1, "maxReplicas": 5}
    world.patch(COMPONENT, NAME, {"spec": {"autoscaling": autoscaling}})
    world.eventually(AUTOSCALER, NAME, lambda it: it["spec"]["maxReplicas"] == 5)
    found = world.read(Deployment.KIND, NAME)
    assert found["spec"]["replicas"] == 3  # not reset
    world.patch(Deployment.KIND, NAME, {"spec": {"replicas": 4}})  # as an autoscaler does
    world.patch(COMPONENT, NAME, {"spec": {"labels": {"team": "a"}}})
    found = world.eventually(Deployment.KIND, NAME, lambda it: it["metadata"]["labels"].get("team") == "a")
    assert found["spec"]["replicas"] == 4
    world.patch(COMPONENT, NAME, {"spec": {"autoscaling": {"enabled": False}}})
    world.gone(AUTOSCALER, NAME)
    world.eventually(Deployment.KIND, NAME, lambda it: it["spec"]["replicas"] == 3)


def test_a_claim_is_created_once_or_waited_for(world: World) -> None:
    with_image(world)
    made = worker()
    made["spec"]["pvc"] = {"name": "data", "mountPoint": "/data"}
    world.create(COMPONENT, made)
    found = world.eventually(COMPONENT, NAME, lambda it: bool(condition_of(it, "Available")))
    status, reason, text = condition_of(found, "Available")
    assert (status, reason) == ("False", "Reconciling")
    assert text == (
        "Failed to reconcile DynamoNimDeployment: PersistentVolumeClaim data not found "
        "(spec.pvc.create is not true)"
    )
    created = {"create": True, "size": "1Gi", "volumeAccessMode": "ReadWriteOnce"}
    world.patch(COMPONENT, NAME, {"spec": {"pvc": created}})
    world.eventually(Deployment.KIND, NAME)  # no volume provisioner runs here
    claim = world.read(PersistentVolumeClaim.KIND, "data")
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "DynamoNimDeployment"


def test_a_spec_that_cannot_be_used_changes_nothing_that_runs(world: World) -> None:
    with_image(world)
    world.create(COMPONENT, worker())
    world.eventually(COMPONENT, NAME, is_available)
    before = world.get(Deployment.KIND, NAME)
    port = [{"name": "PORT", "value": "http"}]
    world.patch(COMPONENT, NAME, {"spec": {"envs": port}})
    found = world.eventually(COMPONENT, NAME, lambda it: condition_of(it, "Available")[:1] == ("False",))
    assert 'spec.envs[0].value: invalid port "http"' in condition_of(found, "Available")[2]
    after = world.get(Deployment.KIND, NAME)
    assert before is not None
    assert after is not None
    assert before["metadata"]["generation"] == after["metadata"]["generation"]
