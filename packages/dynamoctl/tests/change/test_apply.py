"""`dynamoctl apply --wait`, and the history of a graph."""

import asyncio
from datetime import UTC, datetime

import pytest

from dynamo_graphs.history import Revision
from dynamo_graphs.reader import Reading, Target
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import Stated
from dynamoctl.change.apply import _history_lines, _ready
from dynamoctl.screen import plain
from kube_runtime.commandline import ExitCode
from kube_runtime.types.meta import Key, Object
from kube_runtime.wire import path_of
from simulated.clock import on_simulated_clock
from simulated.server import Server
from stated import counts

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


@on_simulated_clock
async def test_on_a_pipe_a_wait_prints_one_line_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server()
    spec = {"services": {"Decode": {"componentType": "worker", "replicas": 2}}}
    server.storage.create(path_of(KIND), KIND.manifest({"name": "chat", "namespace": "n"}, spec=spec))
    target: Target[Stated] = Target(Reading(server), DynamoGraphDeployment, Key("n", "chat"))

    async def change() -> None:
        for ready, message in ((0, "starting"), (0, "check the kubelet on gpu-0"), (1, ""), (2, "")):
            state = {"type": "Ready", "status": str(ready == 2), "reason": "r", "message": message}
            service = counts(ready, replicas=2, message=message)
            status: Object = {"observedGeneration": 1, "conditions": [state], "services": {"Decode": service}}
            await asyncio.sleep(1)
            server.storage.merge(path_of(KIND), Key("n", "chat"), {"status": status})

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(change())
        assert ExitCode.OK == await _ready([target], 60)
    name = f"{KIND.name} n/chat"
    assert [
        f"{name}: not ready: Decode 0/2",
        f"{name}: not ready: Decode 1/2",
        f"{name}: ready: Decode 2/2",
    ] == capsys.readouterr().out.splitlines()


def test_each_change_of_a_history_has_a_line_of_its_own() -> None:
    changes = tuple(f"services.Decode.envs[{index}]: nothing → {'a' * 60}" for index in range(5))
    revisions = [
        Revision(1, {}, "2026-01-01T00:00:00Z", ""),
        Revision(2, {}, "2026-01-01T00:00:00Z", "faster", changes),
    ]
    head, first, current, *below = plain(
        *_history_lines(revisions, datetime(2026, 1, 2, tzinfo=UTC))
    ).splitlines()
    assert [["REVISION", "AGE", "CAUSE"], ["1", "1d", "-"], ["2", "(current)", "1d", "faster"]] == [
        line.split() for line in (head, first, current)
    ]
    assert [*(f"  {change}" for change in changes[:3]), "  and 2 more"] == below
