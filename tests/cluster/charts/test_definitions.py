"""The chart of the CRDs: which versions they serve and store, by values and by the cluster."""

import json
from collections.abc import Iterator

import pytest

from cluster.charts.conftest import DEFINITIONS, ONE_VERSION, objects
from cluster.conftest import ControlPlane
from devcluster.programs import Helm, HelmError
from dynamo_operator.crds import custom_resource_definitions
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.installation.manifests import WEBHOOK_SERVICE
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

GRAPHS = str(DynamoGraphDeployment.KIND)
CA = "Y2E="


def definitions(helm: Helm, *values: str) -> list[Object]:
    flags = [f"--set=conversion.{value}" for value in values]
    bodies = objects(helm("template", "dynamo-crds", DEFINITIONS, "--namespace=default", *flags))
    return sorted(bodies, key=lambda body: str(body["metadata"]["name"]))


def in_order(*, service: str = WEBHOOK_SERVICE, stored: str = "", is_converted: bool = True) -> list[Object]:
    webhook = ConversionWebhook("dynamo-system", service) if is_converted else None
    bodies = custom_resource_definitions(webhook, stored)
    return sorted(bodies, key=lambda body: str(body["metadata"]["name"]))


def test_the_chart_has_the_definitions_of_the_code(offline: Helm) -> None:
    assert in_order() == definitions(offline)
    assert in_order(stored="v1alpha1") == definitions(offline, "storedVersion=v1alpha1")
    assert in_order(service="hooks") == definitions(offline, "service.name=hooks")
    assert in_order(is_converted=False) == definitions(offline, "enabled=false")
    alone = definitions(offline, "enabled=false", "storedVersion=v1beta1")
    assert in_order(is_converted=False, stored="v1beta1") == alone


def test_the_authority_of_a_certificate_of_others_is_in_the_definitions(offline: Helm) -> None:
    (graphs,) = (
        body
        for body in definitions(offline, "injectCaFrom=dynamo-system/cert", f"caBundle={CA}")
        if body["metadata"]["name"] == GRAPHS
    )
    assert "dynamo-system/cert" == graphs["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    assert CA == graphs["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]


def test_an_older_kubernetes_has_one_version(offline: Helm) -> None:
    old = ("template", "dynamo-crds", DEFINITIONS, "--kube-version=v1.29.0")
    with pytest.raises(HelmError, match=r"requires Kubernetes 1\.30"):
        offline(*old)
    assert offline(*old, ONE_VERSION)


@pytest.fixture
def upgraded(kinds: ControlPlane, online: Helm) -> Iterator[list[Object]]:
    """The versions of graphs after an upgrade with default values; afterwards one version again."""
    online("upgrade", "dynamo-crds", DEFINITIONS, "--namespace=default", "--reset-values")
    yield json.loads(kinds.kubectl("get", "crd", GRAPHS, "--output=json"))["spec"]["versions"]
    online("upgrade", "dynamo-crds", DEFINITIONS, "--namespace=default", ONE_VERSION)


def test_an_upgrade_serves_both_versions_and_keeps_the_stored_one(upgraded: list[Object]) -> None:
    stored = {version["name"]: version["storage"] for version in upgraded}
    assert {"v1alpha1": True, "v1beta1": False} == stored
