"""What the statuses of the older generation say in each situation."""

import msgspec
import pytest

from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment, DynamoNimRequest
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status import claimless_status, deployment_status, imageless_status, nim_status, urls
from dynamo_operator.component.diagnosis import UNKNOWN
from dynamo_operator.component.status import NO_DEPLOYMENT, Readiness
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.conditions import ComponentReason
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.types.meta import Object, Status

READY = Readiness(ComponentReason.DEPLOYMENT_READY, "Deployment is ready", is_ready=True)
BLOCKED = (Blocked(Obstacle.REJECTED, "Deployment", "a", "Deployment a: is invalid"),)


def component(name: str = "a", observed: int = 2, status: str = "True") -> DynamoNimDeployment:
    """A component of generation 2, with the status of an observed one."""
    condition = {"type": "Available", "status": status}
    body = {
        "metadata": {"name": name, "generation": 2},
        "status": {"observedGeneration": observed, "conditions": [condition]},
    }
    return msgspec.convert(body, DynamoNimDeployment)


def deployment(*conditions: Object) -> DynamoDeployment:
    body = {"metadata": {"generation": 3}, "status": {"conditions": conditions}}
    return msgspec.convert(body, DynamoDeployment)


def reported(status: Status) -> dict[str, tuple[str, str, str]]:
    return {
        condition.type: (condition.status, condition.reason, condition.message)
        for condition in status.conditions
    }


def test_a_component_without_its_claim_has_found_its_image() -> None:
    conditions = reported(claimless_status(component(), None, "PersistentVolumeClaim data not found"))
    assert conditions == {
        "Available": (
            *("False", "Reconciling"),
            "Failed to reconcile DynamoNimDeployment: PersistentVolumeClaim data not found",
        ),
        "DynamoNimFound": ("True", "Reconciling", "DynamoNim found"),
    }


def test_all_components_are_ready() -> None:
    status = deployment_status(deployment(), [component("a"), component("b")], (), (), ())
    assert (status.state, status.observed_generation) == ("successful", 3)
    assert reported(status) == {"Ready": ("True", "all_deployments_are_ready", "All deployments are ready")}


@pytest.mark.parametrize("late", [component("b", observed=1), component("b", status="Unknown")])
def test_a_component_counts_once_its_newest_spec_runs(late: DynamoNimDeployment) -> None:
    status = deployment_status(deployment(), [late, component("a")], (), (), ())
    assert status.state == "pending"
    text = "The following deployments are not ready: [b]"
    assert reported(status)["Ready"] == ("False", "some_deployments_are_not_ready", text)


def test_what_is_refused_is_a_failure_with_the_answer() -> None:
    status = deployment_status(deployment(), [], BLOCKED, (), ())
    assert status.state == "failed"
    assert status.observed_generation == deployment().status.observed_generation
    reason = "failed_to_sync_the_DynamoNimRequest"
    assert reported(status)["Ready"] == ("False", reason, "Deployment a: is invalid")


def test_an_address_comes_and_goes() -> None:
    came = reported(deployment_status(deployment(), [], (), ("http://a.local",), ()))
    assert came["EndpointExposed"] == ("True", "EndpointExposed", "http://a.local")
    before = deployment({"type": "EndpointExposed", "status": "True"})
    gone = reported(deployment_status(before, [], (), (), ()))
    assert gone["EndpointExposed"][:2] == ("False", "EndpointNotExposed")


@pytest.mark.parametrize(("observed", "expected"), [(0, ()), (1, ("http://a.local",))])
def test_a_component_has_no_address_before_its_ingress(observed: int, expected: tuple[str, ...]) -> None:
    body = {
        "metadata": {"name": "a"},
        "spec": {"dynamoNim": "a--b", "ingress": {"enabled": True}},
        "status": {"observedGeneration": observed},
    }
    settings = RenderSettings(ingress_class_name="nginx")
    made = msgspec.convert(body, DynamoNimDeployment)
    assert expected == urls(made, settings, LegacySettings())


def test_a_component_without_image_says_who_builds_it() -> None:
    nim = msgspec.convert({"spec": {"dynamoNim": "a--b"}}, DynamoNimDeployment)
    alone = reported(imageless_status(nim, None))
    assert alone["Available"] == ("Unknown", "Reconciling", "Waiting for DynamoNim a--b")
    assert alone["DynamoNimRequestFound"][0] == "False"
    failed = {"type": "DynamoNimAvailable", "status": "False", "message": "the build failed"}
    request = msgspec.convert({"status": {"conditions": [failed]}}, DynamoNimRequest)
    built = reported(imageless_status(nim, request))
    text = "DynamoNimRequest a--b: the build failed"
    assert built["Available"] == ("False", "Reconciling", text)
    assert built["DynamoNimRequestFound"][0] == "True"


def test_a_component_after_an_apply() -> None:
    nim = component()
    ready = nim_status(nim, None, READY, (), UNKNOWN)
    assert reported(ready)["Available"] == ("True", "DeploymentReady", "Deployment is ready")
    assert ready.observed_generation == 2
    refused = nim_status(nim, None, NO_DEPLOYMENT, BLOCKED, UNKNOWN)
    assert reported(refused)["Available"] == (
        *("False", "Reconciling"),
        "Failed to reconcile DynamoNimDeployment: Deployment a: is invalid",
    )
    assert refused.observed_generation == nim.status.observed_generation
