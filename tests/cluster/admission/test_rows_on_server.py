"""Every row of the rule tables, asked of a real API server, and what users see there."""

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from cluster.admission.asking import Told
from cluster.admission.conftest import CONFIGURATIONS, NAMESPACE, SECRET_NAME, Installation
from cluster.conftest import ControlPlane
from cluster.world import GRAPH, World
from dynamo_graphs.offline import expanded
from dynamo_operator.admission.configuration import entry_name
from dynamo_operator.crds import RESOURCES
from dynamo_operator.shared.cluster import Facts, ServingSecret
from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of
from reviews.asking import SETTINGS
from reviews.mutation import mutated
from reviews.rows import ROWS, Row, graph

KINDS = {each.KIND.name: each.KIND for each in RESOURCES}
ODD_MANIFESTS = int(os.environ.get("FUZZ_MANIFESTS", "300"))
EVERYWHERE = Facts(lws_served=True, component_service_account="default")
NATIVE = {
    "Deployment": "deployments",
    "Service": "services",
    "Ingress": "ingresses",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ServiceAccount": "serviceaccounts",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ConfigMap": "configmaps",
}
"""The kinds of children that every API server knows."""
HERE = [row for row in ROWS if not row.restricted and row.pools_served is not True]
"""What does not need another cluster or another mode."""


@pytest.fixture(scope="module", autouse=True)
def claims(kinds: ControlPlane, account: Path) -> None:
    """The PVCs that rows name; a missing one would be a warning."""
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    items = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "lab"},
            "spec": spec,
        }
        for name in ("c", "m")
    ]
    body = {"apiVersion": "v1", "kind": "List", "items": items}
    kinds.kubectl("apply", "-f", "-", input=json.dumps(body))


@pytest.mark.parametrize("row", HERE, ids=lambda row: row.name)
def test_a_row_is_refused_or_stored_in_these_words(row: Row, webhooks: Installation, lab: World) -> None:
    kind = KINDS[row.new["kind"]]
    told = _asked(row, kind, webhooks, lab)
    if row.by_schema:
        assert (422, True) == (told.code, row.by_schema in told.text)
    elif row.refused:
        assert 403 == told.code, told.text
        denied = f'admission webhook "{entry_name(kind)}" denied the request: {row.refused}'
        assert told.text.endswith(denied)
    else:
        assert told.code in (200, 201), told.text
    if not row.by_schema:
        assert row.warnings == told.warnings


def _asked(row: Row, kind: Kind, webhooks: Installation, lab: World) -> Told:
    if row.old is None:
        return webhooks.asker.create(kind, row.new, user=row.user)
    made = webhooks.asker.create(kind, row.old, is_tried_only=False)
    assert 201 == made.code, made.text
    try:
        return webhooks.asker.replace(kind, row.new, user=row.user)
    finally:
        webhooks.asker.delete(kind, "lab", "chat")
        lab.gone(kind, "chat")


def test_a_missing_claim_is_a_warning_until_it_is_there(webhooks: Installation) -> None:
    kind = KINDS["DynamoGraphDeployment"]
    told = webhooks.asker.create(kind, graph(pvcs=[{"name": "weights"}]))
    text = 'spec.pvcs[0].name: PersistentVolumeClaim "weights" not found; pods wait for it'
    assert (text,) == told.warnings


def test_odd_manifests_are_refused_or_stored_and_nothing_breaks(webhooks: Installation) -> None:
    chance = random.Random(7)  # noqa: S311  # the same manifests in each run
    codes: Counter[int] = Counter()
    for _ in range(ODD_MANIFESTS):
        manifest = mutated(chance)
        told = webhooks.asker.create(KINDS[manifest["kind"]], manifest)
        codes[told.code] += 1
        assert told.code in (201, 400, 403, 422), (told.text, manifest)
        assert "failed calling webhook" not in told.text
        if told.code == 201:
            _children_are_taken(webhooks, told.body)
    assert codes[403]
    assert codes[201]
    assert webhooks.process.ended is None


def _children_are_taken(webhooks: Installation, stored: Object) -> None:
    """Objects that controllers render from an accepted object are accepted as well."""
    if stored["kind"] not in ("DynamoGraphDeployment", "DynamoComponentDeployment"):
        return
    found = expanded(_as_written(stored), EVERYWHERE, SETTINGS)
    assert () == found.problems, stored
    for each in found.objects:
        group, _, version = each["apiVersion"].rpartition("/")
        if each["kind"] not in NATIVE or "/" in each["metadata"].get("name", ""):
            continue
        kind = Kind(group, version, each["kind"], NATIVE[each["kind"]])
        kept = {name: value for name, value in each["metadata"].items() if name != "ownerReferences"}
        told = webhooks.asker.create(kind, {**each, "metadata": {**kept, "namespace": "lab"}})
        assert told.code in (201, 409), (told.text, stored)


def _as_written(stored: Object) -> Object:
    metadata = {
        name: stored["metadata"][name]
        for name in ("name", "namespace", "labels", "annotations")
        if name in stored["metadata"]
    }
    return {**{k: v for k, v in stored.items() if k != "status"}, "metadata": metadata}


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
