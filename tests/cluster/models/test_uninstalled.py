"""After the operator was removed, `dynamoctl uninstall` lets models and namespaces go."""

import pytest

from cluster.conftest import ControlPlane
from cluster.person import Person
from cluster.world import MODEL, World
from dynamo_operator.labels import FINALIZER
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object

OTHERS = "example.com/other"

pytestmark = pytest.mark.cluster


def model(name: str, *finalizers: str) -> Object:
    spec = {"modelName": name, "baseModelName": "base", "modelType": "base"}
    return {"metadata": {"name": name, "finalizers": list(finalizers)}, "spec": spec}


def test_models_go_once_the_finalizer_is_removed(kinds: ControlPlane, world: World) -> None:
    admin = Person(kinds.kubeconfig, world.namespace)
    world.create(MODEL, model("held", FINALIZER))
    world.create(MODEL, model("shared", FINALIZER, OTHERS))
    world.delete(MODEL, "held")
    code, text, _ = admin.run("uninstall", "--dry-run")
    assert 0 == code
    assert f"would remove the finalizer of DynamoModel {world.namespace}/held\n" in text
    found = world.read(MODEL, "held")
    assert [FINALIZER] == found["metadata"]["finalizers"]
    code, text, _ = admin.run("uninstall")
    assert 0 == code
    assert "remaining: 2 DynamoModel" in text
    world.gone(MODEL, "held")
    left = world.read(MODEL, "shared")
    assert [OTHERS] == left["metadata"]["finalizers"]
    world.patch(MODEL, "shared", {"metadata": {"finalizers": None}})


def test_nothing_is_changed_while_an_operator_runs(kinds: ControlPlane, world: World) -> None:
    labels = {"control-plane": "controller-manager", "app.kubernetes.io/part-of": "dynamo-operator"}
    container = {
        "name": "manager",
        "image": "registry.example.com/dynamo-operator:1",
        "args": [f"--restrictedNamespace={world.namespace}"],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    world.create(Deployment.KIND, {"metadata": {"name": "operator", "labels": labels}, "spec": spec})
    world.create(MODEL, model("held", FINALIZER))
    code, _, told = Person(kinds.kubeconfig, world.namespace).run("uninstall")
    assert 1 == code
    assert f"an operator is still running in namespace {world.namespace}" in told
    found = world.read(MODEL, "held")
    assert [FINALIZER] == found["metadata"]["finalizers"]
    world.patch(MODEL, "held", {"metadata": {"finalizers": None}})
