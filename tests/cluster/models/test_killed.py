"""A real operator is killed between, or during, two calls to a worker; the next one comes to the same end.

`tests/models/test_model_crash.py` of the operator plays every moment on a simulated clock; this is the whole
program with SIGKILL, an API server and HTTP.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.models.conftest import FLAGS
from cluster.models.launch import MODELS_PROGRAM, workers_at
from cluster.models.test_guide import said
from cluster.models.test_troubleshooting import graph, lora, until
from cluster.operator_process import OperatorProcess
from cluster.world import GRAPH, MODEL, World
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
