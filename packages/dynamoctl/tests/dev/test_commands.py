from pathlib import Path

import pytest

from dynamoctl.dev.commands import app
from kube_runtime.commandline import execute
from kube_runtime.errors import ConfigError


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_without_instances_everything_is_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == app(["status"])
    app(["down", "--all"])
    app(["down"])
    assert "" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("status mine", "mine: there is no such instance"),
        ("kubeconfig mine", "mine: there is no such instance"),
        ("down mine --all", "not both"),
        ("crds install grave", "none of grove"),
    ],
)
def test_an_unknown_instance_or_crd_is_a_config_error(command: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        app(command.split())


@pytest.mark.parametrize(
    "command", [["up", "--nodes", "-1"], ["up", "--nodes", "many"], ["up", "--node", "1"], ["fly"]]
)
def test_wrong_usage_ends_with_two(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        execute(app, command)
    assert 2 == ended.value.code
    assert capsys.readouterr().err.startswith("error: ")
