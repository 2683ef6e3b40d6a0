"""The help of every command, in one form."""

from collections.abc import Iterator

import pytest
from cyclopts import App

from dynamoctl.main import app

GROUPS = ("dev", "rollout")
PLAIN = ("version", "profiler")


def commands(tool: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of all commands, without the program's."""
    for name in tool:
        if not name.startswith("-"):
            yield (*path, name)
            yield from commands(tool[name], (*path, name))


ALL = sorted(commands(app()))


def help_of(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    app()([*path, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_value_is_named_after_what_it_is(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = help_of(path, capsys)
    assert text.startswith(f"Usage: dynamoctl {' '.join(path)}")
    types = ("INT", "STR", "FLOAT")
    assert [] == [word for line in text.splitlines() for word in line.split() if word in types]


@pytest.mark.parametrize(
    "path",
    [path for path in ALL if path[0] != "dev" and path[-1] not in (*GROUPS, *PLAIN)],
    ids=" ".join,
)
def test_there_is_an_example(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    lines = help_of(path, capsys).splitlines()
    (example,) = (line for line in lines if line.startswith("Example: "))
    assert f"dynamoctl {path[0]}" in example
