"""The process is killed when a worker has just been called; the next one comes to the same end.

Every point of every scenario is played on simulated servers in
`packages/dynamo-operator/tests/models/test_model_crash.py`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.models.conftest import FLAGS
from cluster.models.launch import MODELS_PROGRAM, workers_at
from cluster.models.test_guide import MODEL, hosts, said
from cluster.models.test_troubleshooting import GRAPH, graph, lora
from cluster.operator_process import OperatorProcess
from cluster.world import World
from simulated.lora_fleet import Fleet

pytestmark = [pytest.mark.cluster, pytest.mark.long]

OLD, NEW = "s3://my-bucket/my-lora", "s3://my-bucket/my-lora-v2"


@pytest.mark.parametrize("is_answered", [False, True], ids=["before it answers", "after"])
def test_killed_at_each_call_of_a_create_a_change_and_a_deletion(
    kinds: ControlPlane, world: World, fleet: Fleet, tmp_path: Path, *, is_answered: bool
) -> None:
    flags = (*FLAGS, f"--restrictedNamespace={world.namespace}")
    started = OperatorProcess(
        *(kinds.kubeconfig, tmp_path / "log", flags),
        program=MODELS_PROGRAM,
        variables=workers_at(fleet),
    )
    with started as process:
        process.ready(60)
        world.create(GRAPH, graph())
        world.create(MODEL, lora("scout", modelType="base", modelName="scout"))
        world.until(lambda: said(world, "scout").get("readyPods") == 2)
        at = hosts(said(world, "scout"))

        def survives(act: Callable[[], object], wanted: dict[str, str]) -> None:
            """Kill it at the first call, and start the next one."""
            fleet.kills(process.kill, is_answered=is_answered)
            act()
            assert fleet.killed.wait(30)
            process.start()
            world.until(
                lambda: [fleet.workers[each].loaded for each in at] == [wanted] * 2,
                what=lambda: f"{fleet.workers} {said(world)}",
            )

        survives(lambda: world.create(MODEL, lora()), {"my-custom-lora": OLD})
        world.until(lambda: said(world).get("readyEndpoints") == 2)
        change = {"spec": {"source": {"uri": NEW}}}
        survives(lambda: world.patch(MODEL, "my-lora", change), {"my-custom-lora": NEW})
        world.until(lambda: said(world).get("readyEndpoints") == 2)
        survives(lambda: world.delete(MODEL, "my-lora"), {})
        world.gone(MODEL, "my-lora")
