"""Invalid command lines and files: each ends with a line that says what was expected."""

import sys
from pathlib import Path

import pytest

from dynamoctl.main import app
from dynamoctl.target import parse_service
from kube_runtime.commandline import execute
from scripted.connections import connect_to
from simulated.server import Server

DYNAMOCTL = Path(sys.executable).with_name("dynamoctl")
TARGET = "invalid target"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("logs chat/", f'{TARGET} "chat/" (expected GRAPH or GRAPH/SERVICE, for example chat/Decode)'),
        ("logs /Decode", f'{TARGET} "/Decode" (expected GRAPH or GRAPH/SERVICE'),
        ("logs chat --tail -2", "invalid --tail -2 (expected a number of lines, or -1)"),
        ("logs chat -f --previous", "--previous and --follow exclude each other"),
        ("scale chat --replicas 1", f'{TARGET} "chat" (expected GRAPH/SERVICE, for example'),
        ("scale dgd/chat --replicas 1", f'{TARGET} "dgd/chat" (expected GRAPH/SERVICE'),
        ("scale a/b --replicas 1.5", 'from 0 to 2147483647, got "1.5"'),
        ("status a/b/c", 'invalid name "a/b/c" (expected NAME or KIND/NAME, for example dgd/chat)'),
        ("tree dcd/chat", 'unsupported kind "dcd" (expected dgd)'),
        ("get pods", 'unsupported kind "pods" (expected one of dgd, dcd, dgdsa, dm, dgdr)'),
        ("get -n ../x", 'invalid namespace "../x" (expected a name, for example prod)'),
        (f"top --interval {'9' * 5000}s", "(expected a number and s, m, h or d, for example 10m)"),
        ("top --interval 0s", 'invalid interval "0s" (expected 1s to 1h, for example 5s)'),
        ("install --print -n UP", 'invalid namespace "UP" (expected a name'),
        ("new UP --model Qwen/Qwen3-32B", 'invalid name "UP" (expected a name, for example chat)'),
        ("new x --model Qwen/Qwen3-32B --replicas -1", '"-1" for --replicas'),
        ("port-forward chat --port 65536", '"65536" for --port'),
        ("port-forward chat --address=", "expected an address, for example 127.0.0.1"),
        ("chat chat hi --max-tokens 0", '"0" for --max-tokens'),
        ("curl chat / -X P\u00dcT", "expected letters, for example PUT"),
        ("explain services.nope", 'unknown field "nope" of spec.services.<name> (fields:'),
        ("apply --filename=", "missing file: expected FILE or --filename FILE"),
    ],
)
def test_a_usage_error_says_what_was_expected(
    line: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_to(Server(), monkeypatch)
    with pytest.raises(SystemExit) as end:
        execute(app(), line.split(" "))
    assert (2, True) == (end.value.code, message in capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("chat", ("chat", "")),
        ("chat/Decode", ("chat", "Decode")),
        ("dgd/chat", ("chat", "")),
        ("DGD/chat/Decode", ("chat", "Decode")),
        ("dgd", ("dgd", "")),
    ],
)
def test_a_target_may_name_the_kind(text: str, names: tuple[str, str]) -> None:
    assert names == parse_service(text)


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
    assert [] == server.requests


def test_an_object_whose_kind_is_no_text_is_of_no_kind_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("apiVersion: 5\nkind: {}\n", encoding="utf-8")
    assert 0 == execute(app(), ["lint", str(file)])
    assert "0 objects in 1 file: 0 errors, 0 warnings\n" == capsys.readouterr().err
