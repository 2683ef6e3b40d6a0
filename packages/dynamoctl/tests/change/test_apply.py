"""`dynamoctl apply --wait`, and the history of a graph."""

import asyncio
from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from dynamo_graphs import InvalidObject
from dynamo_graphs.history import Revision
from dynamo_graphs.reader import Reading, Target
from dynamo_operator.documents import documents
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import Stated
from dynamoctl.authoring.manifest import Manifest
from dynamoctl.change.apply import _history_lines, _ready, _served
from dynamoctl.screen import plain
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ConfigError, NotFound
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


class Serving:
    """A client of an API server that serves these versions of nvidia.com."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions

    async def get_json(self, *path: str) -> Object:
        if path[-1] not in self.versions:
            raise NotFound(HTTPStatus.NOT_FOUND, "NotFound", "not found")
        resource = {"name": KIND.plural, "kind": KIND.name, "namespaced": True}
        return {"resources": [resource]}


def later(extra: str = "") -> Manifest:
    (document,) = documents("chat.yaml", LATER + extra)
    return Manifest(document.value, document)


LATER = """\
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  components:
  - name: Frontend
    type: frontend
"""


def reading(*versions: str) -> Reading:
    at = Reading(Server())
    at.client = Serving(*versions)  # type: ignore[assignment]  # of the client, discovery alone is used
    return at


async def test_a_file_of_v1beta1_is_sent_as_it_is_where_that_is_served() -> None:
    kind, body = await _served(reading("v1alpha1", "v1beta1"), later())
    assert ("v1beta1", later().value) == (kind.version, body)


async def test_a_file_of_v1beta1_is_converted_where_that_is_not_served() -> None:
    kind, body = await _served(reading("v1alpha1"), later())
    assert ("v1alpha1", "nvidia.com/v1alpha1") == (kind.version, body["apiVersion"])
    assert {"Frontend": {"componentType": "frontend"}} == body["spec"]["services"]


async def test_a_file_with_a_typo_is_not_converted() -> None:
    with pytest.raises(InvalidObject, match="unknown field"):
        await _served(reading("v1alpha1"), later("    replica: 2\n"))


async def test_without_any_version_the_one_of_the_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nvidia\.com/v1beta1 DynamoGraphDeployment is not served"):
        await _served(reading(), later())
