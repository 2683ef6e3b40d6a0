"""What a shell offers at the cursor: commands, options, values, and names from the cluster."""

import shutil
import subprocess
import sys

import pytest

from dynamoctl.commands.completion import SCRIPTS, candidates
from dynamoctl.main import app, kubectl_completion
from kube_runtime.errors import Unreachable
from kube_runtime.types.meta import Object
from scripted.connections import connect_to
from scripted.transport import Script
from simulated.server import Server

GRAPHS = "/apis/nvidia.com/v1alpha1/dynamographdeployments"
MODELS = "/apis/nvidia.com/v1alpha1/dynamomodels"


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """A cluster with one graph, `prod/chat`, and one model, `prod/lora`."""
    found = Server()
    metadata = {"namespace": "prod", "name": "chat"}
    services: Object = {"Decode": {}, "Frontend": {}}
    found.storage.create(GRAPHS, {"metadata": metadata, "spec": {"services": services}})
    found.storage.create(MODELS, {"metadata": {"namespace": "prod", "name": "lora"}})
    for name in ("prod", "test"):
        found.storage.create("/api/v1/namespaces", {"metadata": {"name": name}})
    connect_to(found, monkeypatch)
    return found


def words(*line: str) -> list[str]:
    return [*candidates(app(), line)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (("sta",), ["status"]),
        (("rollout", "re"), ["restart", "resume"]),
        (("get", "dg"), ["dgd", "dgdsa", "dgdr"]),
        (("get", "--all"), ["--all-namespaces"]),
        (("get", "dgd", "-n", "prod", ""), ["chat"]),
        (("get", "dm", "-n", "prod", ""), ["lora"]),
        (("get", "-n", "prod", "dm/"), ["dm/lora"]),
        (("get", "-n", "prod", "ch"), ["chat"]),
        (("get", "-n", "prod", "dgd", "chat", ""), []),
        (("-n", "prod", "get", "dgd", ""), ["chat"]),
        (("-n", "prod", "sta"), ["status"]),
        (("get", "-o", ""), ["wide", "json", "yaml", "name", "jsonpath="]),
        (("why", "-o", "j"), ["json", "jsonpath="]),
        (("status", "-n", "prod", "dg"), ["dgd/", "dgdsa/", "dgdr/"]),
        (("status", "-n", "prod", "dm/"), ["dm/lora"]),
        (("status", "-n", "prod", "dm", ""), ["lora"]),
        (("status", "-n", "prod", ""), ["chat"]),
        (("status", "--namespace=prod", "ch"), ["chat"]),
        (("rollout", "pause", "-n", "prod", ""), ["chat"]),
        (("scale", "-n", "prod", ""), ["chat/"]),
        (("logs", "-n", "prod", "chat/"), ["chat/Decode", "chat/Frontend"]),
        (("logs", "-n", "prod", "chat/F"), ["chat/Frontend"]),
        (("status", "-n", "prod", "chat", ""), []),
        (("nonsense", "x"), []),
    ],
)
def test_completion_offers_what_is_valid_at_the_cursor(line: tuple[str, ...], found: list[str]) -> None:
    assert found == words(*line)


def test_every_command_has_a_text() -> None:
    found = candidates(app(), [""])
    assert {"get", "logs", "chat", "dev"} <= {*found}
    assert [] == [word for word, text in found.items() if not text]


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    connect_to(Script([Unreachable("nothing listens")]), monkeypatch)
    assert [] == words("status", "-n", "prod", "")


@pytest.mark.parametrize("shell", [each for each in SCRIPTS if shutil.which(each)])
def test_a_shell_accepts_its_script(shell: str) -> None:
    program = shutil.which(shell)
    assert program
    done = subprocess.run(  # noqa: S603 - a shell that checks our own text
        [program, "-n"], input=SCRIPTS[shell], capture_output=True, text=True, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)


def test_bash_completes() -> None:
    script = (
        f"dynamoctl() {{ {sys.executable} -c 'from dynamoctl.main import main; main()' \"$@\"; }}\n"
        f"{SCRIPTS['bash']}"
        "COMP_WORDS=(dynamoctl rollout re) COMP_CWORD=2\n_dynamoctl\necho ${COMPREPLY[@]}\n"
    )
    done = subprocess.run(  # noqa: S603
        ["/bin/bash", "-c", script], capture_output=True, text=True, check=True
    )
    assert "restart resume\n" == done.stdout


def test_kubectl_asks_its_plugin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-dynamo", "status", "-n", "prod", "c"])
    kubectl_completion()
    assert "chat\n:4\n" == capsys.readouterr().out
