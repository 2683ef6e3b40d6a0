"""Both programs, as a shell starts them."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import termios
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from dynamo_operator import version
from specs import MANIFEST as GRAPH

BIN = Path(sys.executable).parent
DEEP = """\
import sys
from contextlib import suppress
import msgspec
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.main import app
from kube_runtime.commandline import execute
from kube_runtime.wire import decode_items, decode_list

with suppress(SystemExit):
    execute(app(), ["run", "--config", "/nowhere"])
levels = int(sys.argv[1])
config = b'{"x":' * levels + b"1" + b"}" * levels
with suppress(RecursionError):
    msgspec.json.decode(config)
spec = b'{"services":{"a":{"componentType":"epp","eppConfig":{"config":%s}}}}' % config
text = b'{"items":[{"metadata":{"name":"a"},"spec":%s}]}' % spec
page = decode_list(DynamoGraphDeployment.KIND, text)
graphs, broken = decode_items(DynamoGraphDeployment, page.items)
print(*(graph.metadata.name for graph in graphs), *broken)
"""


def run(arguments: Sequence[str], text: str = "", columns: int = 120) -> subprocess.CompletedProcess[str]:
    program, *rest = arguments
    return subprocess.run(  # noqa: S603  our own programs
        [BIN / program, *rest],
        input=text,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={**os.environ, "COLUMNS": str(columns)},
    )


@pytest.mark.parametrize("word", ["version", "--version"])
@pytest.mark.parametrize("program", ["dynamoctl", "kubectl-dynamo", "dynamo-operator"])
def test_the_version_is_printed(program: str, word: str) -> None:
    answer = run([program, word])
    assert (0, f"{version()}\n", "") == (answer.returncode, answer.stdout, answer.stderr)


@pytest.mark.parametrize(
    ("program", "name"), [("dynamoctl", "dynamoctl"), ("kubectl-dynamo", "kubectl dynamo")]
)
def test_help_has_the_name_that_was_called(program: str, name: str) -> None:
    answer = run([program, "--help"])
    assert 0 == answer.returncode
    assert answer.stdout.startswith(f"Usage: {name} COMMAND")
    assert {"render", "install", "dev", "version"} <= set(answer.stdout.split())


def test_there_is_no_colour_without_a_terminal() -> None:
    assert "\x1b" not in run(["dynamoctl", "--help"]).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["dynamoctl", "rendr"],
        ["dynamoctl", "render"],
        ["dynamo-operator", "-leader-elec"],
        ["dynamo-operator", "run", "--natsAddr"],
        ["dynamo-operator", "walk"],
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: list[str]) -> None:
    answer = run(arguments, columns=20)
    assert (2, "") == (answer.returncode, answer.stdout)
    assert re.fullmatch(r"error: .+\n", answer.stderr)


def test_wrong_settings_are_one_line_each_and_exit_code_1() -> None:
    answer = run(["dynamo-operator", "-discovery-backend", "consul", "--leader-elect=maybe"])
    assert 1 == answer.returncode
    assert [
        "error: --discovery-backend: expected one of kubernetes, etcd, got 'consul'",
        "error: --leader-elect: expected true or false, got 'maybe'",
    ] == answer.stderr.splitlines()


def test_no_flag_is_broken_in_the_help() -> None:
    text = run(["dynamo-operator", "--help"], columns=80).stdout
    assert {"--leader-election-lease-duration", "--virtual-service-supports-https"} <= set(text.split())


def test_standard_input_is_rendered() -> None:
    answer = run(["dynamoctl", "render", "-f", "-"], GRAPH)
    assert (0, "") == (answer.returncode, answer.stderr)
    assert "\nkind: Deployment\n" in answer.stdout


def test_problems_go_to_stderr_and_nothing_to_stdout() -> None:
    answer = run(["dynamoctl", "render", "-f", "-"], GRAPH.replace("image:", "imag:"))
    assert (1, "") == (answer.returncode, answer.stdout)
    path = "spec.services.w.extraPodSpec.mainContainer.imag"
    assert [
        f"error: <stdin>:10:9: {path}e: missing image (there is no default)",
        f'error: <stdin>:11:11: {path}: unknown field; did you mean "image"?',
    ] == answer.stderr.splitlines()


def _until_it_waits_for_more(process: "subprocess.Popen[bytes]") -> None:
    """Return when all was read from standard input and the process sleeps: a signal just before a read
    would be noticed after it only, by any Python program."""
    assert process.stdin is not None
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        unread = fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4)
        state = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        if not any(unread) and state.split()[0] == "S":
            return
        time.sleep(0.01)
    raise AssertionError("standard input is not read")


@pytest.mark.parametrize("command", ["apply -", "curl chat --data @-"])
def test_one_signal_ends_a_command_that_reads_standard_input(command: str) -> None:
    # What runs the tests may ignore the signal, as shells do for what runs in the background.
    heeding = "import os, signal, sys; signal.signal(2, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    arguments = (sys.executable, "-c", heeding, str(BIN / "dynamoctl"), *command.split())
    with subprocess.Popen(  # noqa: S603
        arguments, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(b"# text whose end does not come\n")
            process.stdin.flush()
            _until_it_waits_for_more(process)
            process.send_signal(signal.SIGINT)
            assert 130 == process.wait(60)
        finally:
            process.kill()


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH, encoding="utf-8")
    with subprocess.Popen(  # noqa: S603  our own program
        [BIN / "dynamoctl", "render", "-f", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout
        assert program.stderr
        program.stdout.close()
        assert b"" == program.stderr.read()
    assert 0 == program.returncode


@pytest.mark.parametrize("levels", [1000, 9900, 1_000_000])
def test_deep_json_ends_no_program_and_is_known_by_its_name(levels: int) -> None:
    answer = run(["python", "-c", DEEP, str(levels)])
    assert 0 == answer.returncode
    assert answer.stdout == "a\n" or "a: maximum recursion depth exceeded" in answer.stdout
    assert answer.stdout == "a\n" or levels > 1000


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert version() == project["project"]["version"]
