"""Reviews on a real API server: changes of a request that profiles, graphs and their workload provider."""

from collections.abc import Iterator

import pytest

from cluster.admission.conftest import Install, Installation
from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.world import GRAPH, World
from dynamo_operator import labels
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.cluster import GROVE
from kube_runtime.types.meta import Object
from kube_runtime.wire import path_of
from reviews.rows import graph

pytestmark = pytest.mark.cluster

REQUEST = DynamoGraphDeploymentRequest.KIND
PATH = f"{path_of(REQUEST, 'lab', 'fixed')}?fieldManager=gitops&force=true"
APPLY = "application/apply-patch+yaml"


def manifest(*, model: str = "m", label: str = "a") -> Object:
    """The request as in a user's repository; paused, so that the operator ignores it."""
    metadata = {
        "name": "fixed",
        "namespace": "lab",
        "labels": {"team": label},
        "annotations": {"nvidia.com/paused": "true"},
    }
    profiling = {"profilerImage": "p:1", "config": {"sla": {"ttft": 200.0}}}
    spec = {"model": model, "backend": "vllm", "profilingConfig": profiling}
    head = {"apiVersion": REQUEST.api_version, "kind": REQUEST.name}
    return {**head, "metadata": metadata, "spec": spec}


@pytest.fixture
def profiling(webhooks: Installation, lab: World) -> Iterator[Installation]:
    """A request that profiles by its spec."""
    told = webhooks.asker.patch(PATH, manifest(), APPLY)
    assert 201 == told.code, told.text
    _status(webhooks, {"state": "Profiling", "acceptedSpec": told.body["spec"]})
    yield webhooks
    webhooks.asker.delete(REQUEST, "lab", "fixed")
    lab.gone(REQUEST, "fixed")


def _status(webhooks: Installation, status: Object) -> None:
    path = f"{path_of(REQUEST, 'lab', 'fixed')}/status"
    told = webhooks.asker.patch(path, {"status": status}, "application/merge-patch+json")
    assert 200 == told.code, told.text


def test_the_same_manifest_may_be_applied_again_and_labels_may_change(profiling: Installation) -> None:
    for label in ("a", "b"):
        told = profiling.asker.patch(PATH, manifest(label=label), APPLY)
        assert (200, label) == (told.code, told.body["metadata"]["labels"]["team"]), told.text


def test_another_spec_is_refused_and_the_accepted_one_may_be_restored(profiling: Installation) -> None:
    other = profiling.asker.patch(PATH, manifest(model="other"), APPLY)
    assert 403 == other.code, other.text
    assert "spec cannot be modified in state 'Profiling'" in other.text
    _status(profiling, {"state": None})  # so that a change gets in, as without webhooks
    assert 200 == profiling.asker.patch(PATH, manifest(model="other"), APPLY).code
    _status(profiling, {"state": "Profiling"})
    assert 403 == profiling.asker.patch(PATH, manifest(model="third"), APPLY).code
    told = profiling.asker.patch(PATH, manifest(), APPLY)
    assert (200, "m") == (told.code, told.body["spec"]["model"]), told.text


@pytest.fixture(scope="module")
def on_grove(kinds: ControlPlane, install: Install) -> Iterator[Installation]:
    with installed(kinds, ("grove",), GROVE.kinds), install() as found:
        yield found


def queued(**annotations: str) -> Object:
    """A graph with a queue that only Grove uses, and that cannot be a label."""
    found = graph()
    wanted = {labels.KAI_QUEUE: "not a queue", **annotations}
    return {**found, "metadata": {**found["metadata"], "annotations": wanted}}


def test_what_grove_cannot_run_is_refused_where_grove_will_run_it(on_grove: Installation) -> None:
    told = on_grove.asker.create(GRAPH, queued())
    assert 403 == told.code, told.text
    assert f"metadata.annotations[{labels.KAI_QUEUE}]: " in told.text


@pytest.mark.parametrize("annotation", [labels.ENABLE_GROVE, labels.WORKLOAD_PROVIDER])
def test_what_components_will_run_is_not_validated_for_grove(annotation: str, on_grove: Installation) -> None:
    value = "false" if annotation == labels.ENABLE_GROVE else "component"
    told = on_grove.asker.create(GRAPH, queued(**{annotation: value}))
    assert 201 == told.code, told.text
