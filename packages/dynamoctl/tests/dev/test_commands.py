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


@pytest.mark.parametrize("command", [["status", "mine"], ["kubeconfig", "mine"]])
def test_an_unknown_instance_is_one_clear_line(command: list[str]) -> None:
    with pytest.raises(ConfigError, match="mine: there is no such instance"):
        app(command)


def test_down_takes_a_name_or_all() -> None:
    with pytest.raises(ConfigError, match="not both"):
        app(["down", "mine", "--all"])


def test_an_unknown_kind_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ConfigError, match="none of grove"):
        app(["crds", "install", "grave"])


@pytest.mark.parametrize(
    "command", [["up", "--nodes", "-1"], ["up", "--nodes", "many"], ["up", "--node", "1"], ["fly"]]
)
def test_wrong_usage_ends_with_two(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        execute(app, command)
    assert 2 == ended.value.code
    assert capsys.readouterr().err.startswith("error: ")
