"""Models while a real operator is killed between two calls, and after it was uninstalled."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.models.conftest import FLAGS
from cluster.models.launch import MODELS_PROGRAM, workers_at
from cluster.models.test_guide import said
from cluster.models.test_troubleshooting import graph, lora, until
from cluster.operator_process import OperatorProcess
from cluster.person import Person
from cluster.world import GRAPH, MODEL, World
from dynamo_operator.labels import FINALIZER
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object
from simulated.lora_fleet import Fleet
from simulated.lora_worker import LoraWorker

pytestmark = pytest.mark.cluster

UNLOAD, LOAD = "DELETE /v1/loras/my-custom-lora", "POST /v1/loras"
NEW = "s3://my-bucket/newer"


@pytest.mark.parametrize(
    "is_time",
    [
        pytest.param(lambda worker: UNLOAD in worker.asked, id="during the unload"),
        pytest.param(lambda worker: UNLOAD in worker.asked and not worker.loaded, id="after the unload"),
        pytest.param(lambda worker: worker.asked.count(LOAD) > 1, id="during the load"),
    ],
)
def test_new_weights_arrive_although_the_operator_is_killed(
    kinds: ControlPlane, world: World, fleet: Fleet, tmp_path: Path, is_time: Callable[[LoraWorker], bool]
) -> None:
    program = OperatorProcess(
        kinds.kubeconfig,
        tmp_path / "operator.log",
        FLAGS,
        program=MODELS_PROGRAM,
        variables=workers_at(fleet),
    )
    with program as operator:
        operator.ready(60)
        world.create(GRAPH, graph())
        world.create(MODEL, lora())
        until(world, "AllEndpointsReady", "All 2")
        workers = list(fleet.workers.values())
        for worker in workers:
            worker.takes_seconds = 2.0
        world.patch(MODEL, "my-lora", {"spec": {"source": {"uri": NEW}}})
        world.until(lambda: any(map(is_time, workers)))
        operator.kill()
        for worker in workers:
            worker.takes_seconds = 0.0
        operator.start()
        operator.ready(60)
        world.until(lambda: [{"my-custom-lora": NEW}] * 2 == fleet.loaded())
        until(world, "AllEndpointsReady", "All 2")
        ends = said(world)["endpoints"]
        assert {("my-custom-lora", NEW)} == {(each["loadedName"], each["loadedURI"]) for each in ends}
        assert not any(each.get("leftovers") or each.get("triedName") for each in ends)
        world.delete(MODEL, "my-lora")
        world.gone(MODEL, "my-lora")
        assert [{}, {}] == fleet.loaded()


OTHERS = "example.com/other"


def model(name: str, *finalizers: str) -> Object:
    spec = {"modelName": name, "baseModelName": "base", "modelType": "base"}
    return {"metadata": {"name": name, "finalizers": list(finalizers)}, "spec": spec}


def test_models_go_once_the_finalizer_is_removed(kinds: ControlPlane, world: World) -> None:
    admin = Person(kinds.kubeconfig, world.namespace)
    world.create(MODEL, model("held", FINALIZER))
    world.create(MODEL, model("shared", FINALIZER, OTHERS))
    world.delete(MODEL, "held")
    code, text, _ = admin.run("install", "cleanup", "--dry-run")
    assert 0 == code
    assert f"would remove the finalizer of DynamoModel {world.namespace}/held\n" in text
    found = world.read(MODEL, "held")
    assert [FINALIZER] == found["metadata"]["finalizers"]
    code, text, _ = admin.run("install", "cleanup")
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
    code, _, told = Person(kinds.kubeconfig, world.namespace).run("install", "cleanup")
    assert 1 == code
    assert f"an operator is still running in namespace {world.namespace}" in told
    found = world.read(MODEL, "held")
    assert [FINALIZER] == found["metadata"]["finalizers"]
    world.patch(MODEL, "held", {"metadata": {"finalizers": None}})
