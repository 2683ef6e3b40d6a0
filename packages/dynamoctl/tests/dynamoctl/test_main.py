"""The help of every command, in one form."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from dynamoctl.main import app
from kube_runtime.commandline import execute

WITHOUT_EXAMPLE = ("rollout", "version", "profiler")


def commands(tool: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of all commands, without the program's."""
    for name in tool:
        if not name.startswith("-"):
            yield (*path, name)
            yield from commands(tool[name], (*path, name))


ALL = sorted(commands(app()))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_value_is_named_after_what_it_is_and_there_is_an_example(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    app()([*path, "--help"])
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: dynamoctl {' '.join(path)}")
    assert {"INT", "STR", "FLOAT"}.isdisjoint(text.split())
    if path[0] != "dev" and path[-1] not in WITHOUT_EXAMPLE:
        (example,) = (line for line in text.splitlines() if line.startswith("Example: "))
        assert f"dynamoctl {path[0]}" in example


PROGRAM = """
import json, os, sys
from dynamoctl.main import app
from kube_runtime.commandline import execute
stdout, sys.stdout = sys.stdout, open(os.devnull, "w")
try:
    execute(app(), sys.argv[1:])
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=stdout)
"""
NEVER = ("structlog", "pygments", "jsonschema_rs", "kubernetes", "devcluster", "prometheus_client")
NO_CLUSTER = (*NEVER, "aiohttp", "yaml", "dynamo_operator.names", "dynamo_operator.component")
NO_OPERATOR = (
    *NEVER,
    *(f"dynamo_operator.{it}" for it in ("process.flags", "component.render", "component.validate")),
)


DOWN = """
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: it, user: {}}]
"""
"""The kubeconfig of a cluster that does not run."""


def imported(folder: Path, *arguments: str) -> set[str]:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(DOWN)
    program = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        check=True,
        text=True,
        env={"KUBECONFIG": str(kubeconfig)},
    )
    return set(json.loads(program.stdout))


HELP, READING = ("--help", "version", "get --help", "logs --help"), ("status chat", "get", "tree chat")


@pytest.mark.parametrize("command", [*HELP, *READING])
def test_help_imports_nothing_of_the_commands_and_reading_nothing_of_the_operator(
    command: str, tmp_path: Path
) -> None:
    found = imported(tmp_path, *command.split())
    assert (command in READING) == ("dynamo_operator.graph.api" in found)
    others = {*(NO_OPERATOR if command in READING else NO_CLUSTER)}
    assert set() == others & found


@pytest.mark.parametrize("command", ["render", "apply", "rollout history", "dev up"])
def test_the_text_of_help_fills_the_lines_of_a_narrow_terminal(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    execute(app(), (*command.split(), "--help"))
    text = capsys.readouterr().out.partition("╭")[0]
    for paragraph in text.replace("\nExample:", "\n\nExample:").split("\n\n"):
        *full, _ = paragraph.strip().splitlines() or [""]
        following = paragraph.strip().splitlines()[1:]
        assert all(
            len(f"{line.rstrip()} {after.split()[0]}") > 80
            for line, after in zip(full, following, strict=True)
        ), paragraph
