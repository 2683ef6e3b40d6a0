"""What commands import: a person waits for it at each call, and a shell at each Tab."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = str(Path(__file__).parents[4] / "examples/vllm-disaggregated.yaml")

PROGRAM = """
import atexit, os, sys
atexit.register(lambda: os.write(int(os.environ["REPORT"]), "\\n".join(sys.modules).encode()))
from dynamoctl.main import main
main()
"""

LOGGING = ("structlog", "pygments")  # of operators; structlog brings pygments
CLUSTER = ("aiohttp", "ssl", "asyncio")
ELSEWHERE = (
    "dynamo_legacy",
    "dynamo_profiler",
    "devcluster.instance",
    "cryptography",
    "kubernetes",
    "dynamo_operator.process.operator",
)
LOOKUPS = ("importlib.metadata", "tomllib")  # of versions and of texts
RENDERING = ("jsonschema_rs", "dynamo_graphs.offline")


def imported(*arguments: str, folder: Path) -> set[str]:
    """The modules that a command line has imported at its end. No cluster answers it."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        '{"apiVersion": "v1", "kind": "Config", "current-context": "a", "users": [{"name": "a", "user": {}}],'
        '"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],'
        '"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}'
    )
    reader, writer = os.pipe()
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "REPORT": str(writer)}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(  # noqa: S603 - our own program
        command, env=environment, pass_fds=[writer], capture_output=True, check=False
    )
    os.close(writer)
    with os.fdopen(reader) as report:
        names = {*report.read().split()}
    assert "cyclopts" in names, done.stderr
    return names


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("--help", (*LOGGING, *CLUSTER, *ELSEWHERE, *RENDERING, "msgspec", "yaml")),
        ("version", (*LOGGING, *CLUSTER, *ELSEWHERE, *RENDERING, "msgspec", "yaml")),
        ("apply --help", (*LOGGING, *CLUSTER, *ELSEWHERE, *RENDERING, "msgspec", "yaml")),
        ("__complete d", (*LOGGING, *CLUSTER, *ELSEWHERE, *RENDERING, *LOOKUPS, "msgspec", "yaml", "rich")),
        (
            "__complete dev u",
            (*LOGGING, *CLUSTER, *ELSEWHERE, *RENDERING, *LOOKUPS, "msgspec", "yaml", "rich"),
        ),
        ("__complete apply --", (*LOGGING, *CLUSTER, *ELSEWHERE, *RENDERING, "msgspec", "yaml", "rich")),
        ("__complete why c", (*LOGGING, *ELSEWHERE, *RENDERING, *LOOKUPS)),
        ("get", (*LOGGING, *ELSEWHERE, *RENDERING, *LOOKUPS)),
        ("why chat", (*LOGGING, *ELSEWHERE, *RENDERING, *LOOKUPS)),
        (f"lint {EXAMPLE}", (*LOGGING, *ELSEWHERE, "aiohttp")),
        (f"diff -f {EXAMPLE}", (*LOGGING, *ELSEWHERE, *RENDERING)),
        (f"apply -f {EXAMPLE}", (*LOGGING, *ELSEWHERE, *RENDERING)),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_use(
    command: str, unneeded: tuple[str, ...], tmp_path: Path
) -> None:
    assert set() == {*unneeded} & imported(*command.split(), folder=tmp_path)
