"""The certificate of the webhooks: issued, trusted, and repaired."""

from cluster.admission.conftest import CONFIGURATIONS, NAMESPACE, SECRET_NAME, Installation
from cluster.world import GRAPH, World
from dynamo_operator.shared.cluster import ServingSecret
from kube_runtime.wire import path_of
from reviews.rows import graph


def test_a_removed_ca_bundle_is_restored(webhooks: Installation, lab: World) -> None:
    before = webhooks.bundles()
    path = path_of(CONFIGURATIONS, "", webhooks.configuration)
    patch = [{"op": "remove", "path": f"/webhooks/{index}/clientConfig/caBundle"} for index in (0, 2)]
    assert 200 == webhooks.asker.patch(path, patch, "application/json-patch+json").code
    lab.until(lambda: webhooks.bundles() == before)
    assert 201 == webhooks.asker.create(GRAPH, graph()).code


def test_a_deleted_certificate_is_recreated(webhooks: Installation, lab: World) -> None:
    before = webhooks.certificate()
    webhooks.asker.delete(ServingSecret.KIND, NAMESPACE, SECRET_NAME)
    lab.until(lambda: webhooks.certificate() not in ("", before))
    lab.until(lambda: webhooks.asker.create(GRAPH, graph()).code == 201)
