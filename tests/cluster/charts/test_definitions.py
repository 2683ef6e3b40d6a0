"""The chart of the CRDs: which versions they serve and store, by values and by the cluster."""

import json
from collections.abc import Iterator

import pytest

from cluster.charts.conftest import DEFINITIONS, ONE_VERSION, objects
from cluster.conftest import ControlPlane
from devcluster.programs import Helm, HelmError
from dynamo_operator.crds import custom_resource_definition, custom_resource_definitions
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.installation.manifests import WEBHOOK_SERVICE
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.meta import Object, Resource

pytestmark = pytest.mark.cluster

GRAPHS = str(DynamoGraphDeployment.KIND)
CA = "Y2E="


def definitions(helm: Helm, *values: str, of: type[Resource] | None = None) -> list[Object]:
    flags = [f"--set=conversion.{value}" for value in values]
    only = [f"--show-only=templates/{of.KIND.plural}.yaml"] if of else []
    bodies = objects(helm("template", "dynamo-crds", DEFINITIONS, "--namespace=default", *flags, *only))
    return sorted(bodies, key=lambda body: str(body["metadata"]["name"]))


def test_the_chart_has_the_definitions_of_the_code(offline: Helm) -> None:
    webhook = ConversionWebhook("dynamo-system", WEBHOOK_SERVICE)
    bodies = custom_resource_definitions(webhook)
    assert sorted(bodies, key=lambda body: str(body["metadata"]["name"])) == definitions(offline)


@pytest.mark.parametrize(
    ("values", "webhook", "stored"),
    [
        (["storedVersion=v1alpha1"], WEBHOOK_SERVICE, "v1alpha1"),
        (["service.name=hooks"], "hooks", ""),
        (["enabled=false"], "", ""),
        (["enabled=false", "storedVersion=v1beta1"], "", "v1beta1"),
    ],
)
def test_values_choose_the_versions_of_the_code(
    offline: Helm, values: list[str], webhook: str, stored: str
) -> None:
    """Of the smallest CRD: one function of `tools/charts.py` writes the templates of all."""
    conversion = ConversionWebhook("dynamo-system", webhook) if webhook else None
    body = custom_resource_definition(DynamoGraphDeploymentScalingAdapter, conversion, stored)
    assert [body] == definitions(offline, *values, of=DynamoGraphDeploymentScalingAdapter)


def test_the_authority_of_a_certificate_of_others_is_in_the_definitions(offline: Helm) -> None:
    (graphs,) = (
        body
        for body in definitions(
            offline, "injectCaFrom=dynamo-system/cert", f"caBundle={CA}", of=DynamoGraphDeployment
        )
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
