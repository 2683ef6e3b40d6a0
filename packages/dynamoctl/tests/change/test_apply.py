"""`dynamoctl apply --wait`: its end is the exit code."""

import pytest

from dynamo_graphs.reader import Reading, Target
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import Stated
from dynamoctl.change.apply import _ready
from kube_runtime.commandline import ExitCode
from kube_runtime.types.meta import Key, Object
from kube_runtime.wire import path_of
from simulated.clock import on_simulated_clock
from simulated.server import Server

KIND = DynamoGraphDeployment.KIND


@pytest.mark.parametrize(("status", "code"), [("True", ExitCode.OK), ("False", ExitCode.PROBLEMS)])
@on_simulated_clock
async def test_objects_that_are_not_ready_in_time_are_a_problem(
    status: str, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server()
    ready = {"type": "Ready", "status": status, "reason": "r", "message": "m"}
    reported: Object = {"observedGeneration": 1, "conditions": [ready]}
    graph = KIND.manifest({"name": "chat", "namespace": "n"}, spec={}, status=reported)
    server.storage.create(path_of(KIND), graph)
    target: Target[Stated] = Target(Reading(server), DynamoGraphDeployment, Key("n", "chat"))
    assert code == await _ready([target], 60)
    late = "error: not ready within 60 s"
    assert (late in capsys.readouterr().err) == (code is ExitCode.PROBLEMS)
