"""The archive about a graph: its objects, Events and logs, without secrets, and what could not be read."""

import asyncio
import json
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from dynamoctl.inspect.report import write_report
from dynamoctl.options import Where
from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import ConfigError, Unreachable
from kube_runtime.kind import Key, Object
from planted_secrets import PLANTED, SECRETS
from scripted.connections import connect_to
from simulated.server import Server

GRAPHS = "/apis/nvidia.com/v1alpha1/dynamographdeployments"
FORBIDDEN = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not for you"}
LABELS = {"nvidia.com/dynamo-graph-deployment-name": "chat"}
LOG = b"2026-11-23T04:00:00Z started with HF_TOKEN=hf_do-not-show\n2026-11-23T04:00:01Z ready\n"


class Cluster(Server):
    """An API server with one graph and its pod, whose nodes may not be listed."""

    def __init__(self, text: str = "", **fields: object) -> None:
        super().__init__()
        self.refusal = FORBIDDEN
        self.paths: list[str] = []
        self.refused: set[str] = set()
        self.log: Callable[[], AsyncIterator[bytes]] = lambda: _chunks(LOG)
        graph = self._create(
            GRAPHS, "DynamoGraphDeployment", "chat", spec={"services": {}}, **fields
        )
        owner = {"kind": "DynamoGraphDeployment", "name": "chat", "uid": graph}
        variable = {"name": "HF_TOKEN", "value": "hf_do-not-show"}
        args = ["sh", "-c", text]
        spec = {"containers": [{"name": "main", "env": [variable], "args": args}]}
        pod = self._create("/api/v1/pods", "Pod", "chat-0", owners=[owner], spec=spec)
        about = {"kind": "Pod", "name": "chat-0", "uid": pod}
        self._create(
            *("/api/v1/events", "Event", "chat-0.1"),
            involvedObject=about,
            reason="Pulled",
            message=text,
            lastTimestamp="2026-11-23T04:00:00Z",
        )

    def _create(
        self, collection: str, kind: str, name: str, owners: object = (), **fields: object
    ) -> str:
        metadata: Object = {"namespace": "prod", "name": name, "labels": LABELS}
        metadata["ownerReferences"] = list(owners) if isinstance(owners, list) else []
        version = collection.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
        self.storage.create(collection, body)
        uid: str = self.storage.read(collection, Key("prod", name))["metadata"]["uid"]
        return uid

    async def send(self, request: Request) -> Answer:
        self.paths.append(request.path)
        if request.path == "/api/v1/nodes" or request.path in self.refused:
            return _answer(self.refusal, 403)
        if request.path == "/apis":
            return _answer({"groups": [{"name": "nvidia.com"}, {"name": "apps"}]})
        if request.path == "/version":
            return _answer({"gitVersion": "v1.36.3"})
        if request.path.endswith("/log"):
            if "previous" in request.query:
                return _answer({"kind": "Status", "code": 400, "message": "never restarted"}, 400)
            return Answer(200, {}, self.log())
        return await super().send(request)


def _answer(body: Object, status: int = 200) -> Answer:
    return Answer(status, {}, _chunks(json.dumps(body).encode()))


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _broken(error: str, *before: bytes) -> AsyncIterator[bytes]:
    for chunk in before:
        yield chunk
    raise Unreachable(error)


def texts_of(file: Path) -> dict[str, str]:
    """The files of an archive without its folder."""
    with tarfile.open(file) as archive:
        return {
            entry.name.partition("/")[2]: member.read().decode()
            for entry in archive.getmembers()
            if (member := archive.extractfile(entry))
        }


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()
    connect_to(found, monkeypatch)
    return found


def test_the_archive(server: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "chat.tar.gz"
    assert 0 == asyncio.run(write_report("chat", Where(namespace="prod"), file))
    assert f"{file}\n" == capsys.readouterr().out
    assert 0o600 == file.stat().st_mode & 0o777
    texts = texts_of(file)
    assert "started with HF_TOKEN=REDACTED\n" in texts["logs/chat-0.log"]
    assert "logs/chat-0-previous.log" not in texts
    assert "value: REDACTED" in texts["objects/Pod-chat-0.yaml"]
    assert "Pulled" in texts["events.txt"]
    assert "Kubernetes v1.36.3" in texts["versions.txt"]
    assert "not for you" in texts["missing.txt"]
    assert [] == [name for name, text in texts.items() if "do-not-show" in text]
    assert [] == [each for each in server.paths if "/secrets" in each]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_secret_is_in_any_file(
    secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    condition = {"type": "Ready", "status": "False", "reason": "x", "message": secret}
    server = Cluster(secret, status={"conditions": [condition], "state": secret})
    connect_to(server, monkeypatch)
    lines = (f"2026-11-23T04:00:00Z {line}\n" for line in ("before", *secret.splitlines()))
    server.log = lambda: _chunks("".join(lines).encode())
    server.refusal = {**FORBIDDEN, "message": f"not for you: {secret}"}
    file = tmp_path / "chat.tar.gz"
    assert 0 == asyncio.run(write_report("chat", Where(namespace="prod"), file))
    texts = texts_of(file)
    assert {"why.txt", "events.txt", "missing.txt", "logs/chat-0.log"} <= texts.keys()
    assert [] == [name for name, text in texts.items() if PLANTED in text]


@pytest.mark.usefixtures("server")
def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "chat.tar.gz"
    file.write_text("mine")
    with pytest.raises(ConfigError, match="cannot create it: File exists"):
        asyncio.run(write_report("chat", Where(namespace="prod"), file))
    assert "mine" == file.read_text()


def test_half_of_a_report_is_not_kept(
    server: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    file = tmp_path / "chat.tar.gz"
    monkeypatch.setattr("dynamoctl.inspect.report.version", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(write_report("chat", Where(namespace="prod"), file))
    assert not file.exists()


@pytest.mark.parametrize("before", [(LOG,), ()], ids=["cut", "no answer"])
def test_a_log_that_cannot_be_read_is_named_and_the_rest_is_there(
    server: Cluster,
    tmp_path: Path,
    before: tuple[bytes, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "chat.tar.gz"
    server.log = lambda: _broken("the connection was cut", *before)
    assert 0 == asyncio.run(write_report("chat", Where(namespace="prod"), file))
    texts = texts_of(file)
    assert "log of prod/chat-0: the connection was cut\n" in texts["missing.txt"]
    assert ("ready" in texts.get("logs/chat-0.log", "")) is bool(before)
    assert "Pulled" in texts["events.txt"]
    assert "warning: 2 parts could not be read: see missing.txt" in capsys.readouterr().err


def test_each_part_that_cannot_be_read_is_named(server: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "chat.tar.gz"
    pods = "/api/v1/namespaces/prod/pods"
    server.refused = {"/version", "/api/v1/namespaces/prod/events", f"{pods}/chat-0"}
    assert 0 == asyncio.run(write_report("chat", Where(namespace="prod"), file))
    texts = texts_of(file)
    assert {"why.txt", "versions.txt", "logs/chat-0.log", "missing.txt"} <= texts.keys()
    parts = [line.partition(":")[0] for line in texts["missing.txt"].splitlines()]
    assert ["version", "Pod prod/chat-0", "Events", "nodes"] == parts
    assert "nodes: not for you\n" in texts["missing.txt"]


def test_a_graph_whose_objects_cannot_be_listed_is_reported_alone(
    server: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "chat.tar.gz"
    server.refused = {"/apis"}
    assert 0 == asyncio.run(write_report("chat", Where(namespace="prod"), file))
    texts = texts_of(file)
    assert "objects/DynamoGraphDeployment-chat.yaml" in texts
    assert "objects: not for you\n" in texts["missing.txt"]
