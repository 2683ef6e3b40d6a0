"""Files that `apply` and `diff` refuse."""

from pathlib import Path

import pytest

from dynamoctl.main import app
from kube_runtime.commandline import execute
from scripted.connections import connect_to
from simulated.server import Server


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("apiVersion: ../v1\nmetadata: {name: a}", 'apiVersion: invalid value "../v1" (for example'),
        ("apiVersion: v1\nmetadata: {name: a/b}", 'metadata.name: invalid name "a/b"'),
        ("apiVersion: v1\nmetadata: {name: ..}", 'metadata.name: invalid name ".."'),
        ("apiVersion: v1\nmetadata: {name: a, namespace: a%2fb}", 'invalid namespace "a%2fb"'),
    ],
)
def test_no_manifest_leads_to_another_object(
    head: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server()
    connect_to(server, monkeypatch)
    file = tmp_path / "object.yaml"
    file.write_text(f"kind: ConfigMap\n{head}\n", encoding="utf-8")
    for command in ("apply", "diff"):
        with pytest.raises(SystemExit) as end:
            execute(app(), [command, "-n", "prod", "-f", str(file)])
        assert (1, True) == (end.value.code, message in capsys.readouterr().err)
    assert {"/apis/nvidia.com/v1beta1"} == {request.path for request in server.requests}
