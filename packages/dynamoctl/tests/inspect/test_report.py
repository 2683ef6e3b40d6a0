"""The archive about a graph: its objects, Events and logs, without secrets, and what could not be read."""

import asyncio
import json
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.inspect.report import REDACTED, redacted, redacted_text, write_report
from dynamoctl.options import Where
from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import ConfigError, Unreachable
from kube_runtime.types.kinds import Event, Pod
from kube_runtime.types.meta import Key, Object, Resource
from kube_runtime.wire import path_of
from planted_secrets import PLANTED, SECRETS
from scripted.connections import connect_to
from scripted.transport import answer, chunks
from simulated.server import Server

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
        self.log: Callable[[], AsyncIterator[bytes]] = lambda: chunks(LOG)
        graph = self._create(DynamoGraphDeployment, "chat", spec={"services": {}}, **fields)
        owner = {"kind": "DynamoGraphDeployment", "name": "chat", "uid": graph}
        variable = {"name": "HF_TOKEN", "value": "hf_do-not-show"}
        container = {"name": "main", "env": [variable], "args": ["sh", "-c", text]}
        pod = self._create(Pod, "chat-0", owner, spec={"containers": [container]})
        event = {"reason": "Pulled", "message": text, "lastTimestamp": "2026-11-23T04:00:00Z"}
        about = {"kind": "Pod", "name": "chat-0", "uid": pod}
        self._create(Event, "chat-0.1", involvedObject=about, **event)

    def _create(self, type_: type[Resource], name: str, *owners: Object, **fields: object) -> str:
        metadata = {"namespace": "prod", "name": name, "labels": LABELS, "ownerReferences": list(owners)}
        self.storage.create(path_of(type_.KIND), type_.KIND.manifest(metadata, **fields))
        uid: str = self.storage.read(path_of(type_.KIND), Key("prod", name))["metadata"]["uid"]
        return uid

    async def send(self, request: Request) -> Answer:
        self.paths.append(request.path)
        if request.path == "/api/v1/nodes" or request.path in self.refused:
            return answer(403, self.refusal)
        if request.path == "/apis":
            return answer(200, {"groups": [{"name": "nvidia.com"}, {"name": "apps"}]})
        if request.path == "/version":
            return answer(200, {"gitVersion": "v1.36.3"})
        if request.path.endswith("/log"):
            if "previous" in request.query:
                return answer(400, {"kind": "Status", "code": 400, "message": "never restarted"})
            return Answer(200, {}, self.log())
        return await super().send(request)


async def _broken(error: str, *before: bytes) -> AsyncIterator[bytes]:
    for chunk in before:
        yield chunk
    raise Unreachable(error)


def report(folder: Path) -> dict[str, str]:
    """The files of the archive that is written, without its own folder."""
    file = folder / "chat.tar.gz"
    assert 0 == asyncio.run(write_report("chat", Where(namespace="prod"), file))
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
    file, texts = tmp_path / "chat.tar.gz", report(tmp_path)
    assert f"{file}\n" == capsys.readouterr().out
    assert 0o600 == file.stat().st_mode & 0o777
    assert "started with HF_TOKEN=REDACTED\n" in texts["logs/chat-0.log"]
    assert "logs/chat-0-previous.log" not in texts
    assert "value: REDACTED" in texts["objects/Pod-chat-0.yaml"]
    assert "Pulled" in texts["events.txt"]
    assert "Kubernetes v1.36.3" in texts["versions.txt"]
    assert "not for you" in texts["missing.txt"]
    assert [] == [name for name, text in texts.items() if "do-not-show" in text]
    assert [] == [each for each in server.paths if "/secrets" in each]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_secret_is_in_any_file(secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    condition = {"type": "Ready", "status": "False", "reason": "x", "message": secret}
    server = Cluster(secret, status={"conditions": [condition], "state": secret})
    connect_to(server, monkeypatch)
    lines = (f"2026-11-23T04:00:00Z {line}\n" for line in ("before", *secret.splitlines()))
    server.log = lambda: chunks("".join(lines).encode())
    server.refusal = {**FORBIDDEN, "message": f"not for you: {secret}"}
    texts = report(tmp_path)
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
    server: Cluster, tmp_path: Path, before: tuple[bytes, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    server.log = lambda: _broken("the connection was cut", *before)
    texts = report(tmp_path)
    assert "log of prod/chat-0: the connection was cut\n" in texts["missing.txt"]
    assert ("ready" in texts.get("logs/chat-0.log", "")) is bool(before)
    assert "Pulled" in texts["events.txt"]
    assert "warning: 2 parts could not be read: see missing.txt" in capsys.readouterr().err


def test_each_part_that_cannot_be_read_is_named(server: Cluster, tmp_path: Path) -> None:
    pods = "/api/v1/namespaces/prod/pods"
    server.refused = {"/version", "/api/v1/namespaces/prod/events", f"{pods}/chat-0"}
    texts = report(tmp_path)
    assert {"why.txt", "versions.txt", "logs/chat-0.log", "missing.txt"} <= texts.keys()
    parts = [line.partition(":")[0] for line in texts["missing.txt"].splitlines()]
    assert ["version", "Pod prod/chat-0", "Events", "nodes"] == parts
    assert "nodes: not for you\n" in texts["missing.txt"]


def test_a_graph_whose_objects_cannot_be_listed_is_reported_alone(server: Cluster, tmp_path: Path) -> None:
    server.refused = {"/apis"}
    texts = report(tmp_path)
    assert "objects/DynamoGraphDeployment-chat.yaml" in texts
    assert "objects: not for you\n" in texts["missing.txt"]


HARMLESS = [
    "12 tokens in 1.3 s",
    "--max-num-batched-tokens=8192",
    "time to first token: 812ms",
    "tokenizer: fast",
    "basic use",
    "https://example.com/a:b",
    'MountVolume.SetUp failed for volume "hf-token" : secret "hf-token" not found',
    "secretName: weights",
    "automountServiceAccountToken: false",
    "registry.example.com/auth-proxy:1.0",
    "docker-pullable://registry:5000/x@sha256:0123",
    "--api-key-file /etc/key --port 80",
    "the author: me",
]


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_a_text_with_a_secret(text: str) -> None:
    cleaned = redacted_text(text)
    assert REDACTED in cleaned
    assert PLANTED not in cleaned
    assert cleaned == redacted_text(cleaned)


def test_the_keys_of_aws() -> None:
    assert "s3 REDACTED REDACTED" == redacted_text("s3 AKIAABCDEFGHIJKLMNOP ASIAABCDEFGHIJKLMNOP")


@pytest.mark.parametrize("text", HARMLESS)
def test_a_text_without_a_secret(text: str) -> None:
    assert text == redacted_text(text)


@given(
    st.lists(st.sampled_from([*SECRETS.values(), *HARMLESS, "", "x", "token", "secretName"])),
    st.sampled_from([" ", "\n", "; ", "\t"]),
)
def test_a_secret_among_others(texts: list[str], between: str) -> None:
    assert PLANTED not in redacted_text(between.join(texts))


def planted(secret: str) -> st.SearchStrategy[Any]:
    """JSON values that contain the secret somewhere: as a text, and in JSON in a text."""
    leaf = st.sampled_from([secret, f"before {secret}", json.dumps({"a": [secret]})])
    keys = st.sampled_from(["a", "args", "name", "secretName", "token", "value"])
    return st.recursive(
        leaf, lambda inner: st.lists(inner, min_size=1) | st.dictionaries(keys, inner, min_size=1)
    )


@given(st.data(), st.sampled_from(list(SECRETS.values())))
def test_a_secret_anywhere_in_an_object(data: st.DataObject, secret: str) -> None:
    body = {"kind": "Pod", "metadata": {"annotations": {"a": secret}}}
    body["spec"] = data.draw(planted(secret))
    assert PLANTED not in json.dumps(redacted(body))


VARIABLES = [{"name": "DB_LOGIN", "value": PLANTED}, {"name": "VLLM_USE_V1", "value": "1"}]


def test_a_variable_is_shown_only_if_it_is_known() -> None:
    spec = {"containers": [{"env": VARIABLES}]}
    body = redacted({"kind": "Pod", "metadata": {}, "spec": spec})
    assert [REDACTED, "1"] == [it["value"] for it in body["spec"]["containers"][0]["env"]]
    earlier = {"example.com/earlier": json.dumps(spec)}
    body = redacted({"kind": "Pod", "metadata": {"annotations": earlier}})
    assert PLANTED not in json.dumps(body)


@pytest.mark.parametrize(
    "fields", [{"credentials": {"a": PLANTED}}, {"passwords": [PLANTED]}, {"pin-auth": [{"x": PLANTED}]}]
)
def test_all_below_a_secret_name(fields: Object) -> None:
    assert PLANTED not in json.dumps(redacted({"kind": "Pod", "metadata": {}, "spec": fields}))


def test_an_object() -> None:
    def a_pod(token: str, key: str, password: str, **more: object) -> Object:
        notes = {"example.com/note": "kept", "example.com/auth-token": token}
        env = [
            {"name": "HF_TOKEN", "value": token},
            {"name": "DYN_ROUTER_MODE", "value": "kv"},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ]
        args = [f"--api-key={key}", "--password", password, "--port=8000"]
        volumes = [{"secret": {"secretName": "weights"}}]
        spec = {"containers": [{"env": env, "args": args}], "volumes": volumes}
        return Pod.KIND.manifest({"name": "chat-0", "annotations": notes, **more}, spec=spec)

    body = a_pod("abc", "sk-abcdefghijklmnopqrst", "x", managedFields=[{}])
    body["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
    assert a_pod(REDACTED, REDACTED, REDACTED) == redacted(body)


def test_a_secret_keeps_its_keys_alone() -> None:
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "eA=="}}
    assert {"a": REDACTED} == redacted(body)["data"]
