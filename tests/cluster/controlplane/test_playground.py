"""The playground: what it promises about every example, and what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.controlplane.test_lifecycle import programs_below
from devcluster.components import KubectlError
from devcluster.instance import Instance
from dynamoctl.dev.commands import app

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[3] / "examples"
MODEL = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoModel
metadata: {name: legal}
spec:
  modelName: legal
  baseModelName: Qwen/Qwen3-0.6B
  modelType: lora
  source: {uri: "s3://vault/legal"}
"""
WRONG = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: wrong}
spec:
  services:
    Main: {componentType: frontend, ingress: {enabled: true}}
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        try:
            yield folder
        finally:
            app(["down", "--all"])
    assert [] == programs_below(folder)


@pytest.fixture(scope="module")
def playground(state: Path) -> Instance:
    assert state.exists()
    app(["up", "play"])
    return Instance("play")


def ready(instance: Instance, kind: str, *, condition: str = "Ready") -> None:
    instance.kubectl("wait", f"--for=condition={condition}", kind, "--all", "--timeout=500s")


def test_a_model_is_loaded_into_the_workers(playground: Instance) -> None:
    playground.kubectl("apply", "--filename", EXAMPLES / "tasks" / "lora.yaml")
    playground.kubectl("apply", "--filename=-", stdin=MODEL)
    playground.kubectl(*("wait", "--for=jsonpath={.status.readyEndpoints}=2", "dm/legal", "--timeout=500s"))
    assert "LoRA call done" in playground.companion.log.read_text(encoding="utf-8")


def test_a_profiling_job_that_finds_nothing_fails_with_the_cause(playground: Instance) -> None:
    text = (EXAMPLES / "request-rapid.yaml").read_text(encoding="utf-8")
    hopeless = text.replace("ttft: 500", "ttft: 0.001").replace("name: request-rapid", "name: hopeless")
    playground.kubectl("apply", "--filename=-", stdin=hopeless)
    playground.kubectl(*("wait", "--for=jsonpath={.status.phase}=Failed", "dgdr/hopeless", "--timeout=500s"))
    playground.kubectl("delete", "dgdr/hopeless")


def test_webhooks_refuse_a_graph_with_a_mistake(playground: Instance) -> None:
    with pytest.raises(KubectlError, match="host is required when ingress"):
        playground.kubectl("apply", "--filename=-", stdin=WRONG)


def test_up_repairs_what_does_not_run_and_nothing_else(
    playground: Instance, capsys: pytest.CaptureFixture[str]
) -> None:
    before = playground.companion.pid()
    app(["up", "play"])
    assert before == playground.companion.pid()
    assert before is not None
    os.kill(before, signal.SIGKILL)
    while playground.companion.pid() is not None:  # the kernel takes its time on a busy machine
        time.sleep(0.05)
    assert 1 == app(["status", "play"])
    assert "operator                 not running" in capsys.readouterr().out
    app(["up", "play"])
    assert playground.companion.pid() not in (None, before)
    ready(playground, "dgd")


def test_restart_has_another_process_and_the_same_log(
    playground: Instance, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["up", "play"])
    before = playground.companion.pid()
    app(["restart", "play"])
    assert playground.companion.pid() not in (None, before)
    capsys.readouterr()
    app(["logs", "play"])
    said = capsys.readouterr().out
    assert said.count("connected") >= 2
    assert "Traceback" not in said


def test_a_shell_can_use_what_env_prints(playground: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    app(["env", "play"])
    lines = capsys.readouterr().out
    shown = subprocess.run(  # noqa: S603 - what a user's shell does
        ["/bin/sh", "-c", f'{lines}\nprintf %s "$KUBECONFIG"'], capture_output=True, text=True, check=True
    )
    assert str(playground.kubeconfig) == shown.stdout


def test_down_ends_exactly_what_up_started(state: Path, playground: Instance) -> None:
    app(["up", "other", "--nodes", "1"])
    assert playground.companion.pid() is not None
    app(["down", "play"])
    other = Instance("other")
    assert other.companion.pid() is not None
    assert other.status().is_whole
    assert not playground.exists
    app(["down", "other"])
    assert [] == programs_below(state)


STARTER = "import sys; from dynamoctl.dev.commands import app; app(['up', 'healed', '--nodes', '1'])"


@pytest.mark.long
def test_up_heals_what_a_killed_up_left_and_two_at_once_are_one(state: Path) -> None:
    """Killed at each step that it reports, then twice at the same time."""
    for step in ("etcd", "controllers", "starting the operator"):
        with subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", STARTER], stderr=subprocess.PIPE, text=True
        ) as starter:
            assert starter.stderr is not None
            assert any(step in line for line in starter.stderr), step
            starter.kill()
    both = [subprocess.Popen([sys.executable, "-c", STARTER]) for _ in range(2)]  # noqa: S603
    assert [0, 0] == [each.wait() for each in both]
    healed = Instance("healed")
    assert healed.status().is_whole
    # The operator that runs is the one that the webhooks name.
    with pytest.raises(KubectlError, match="host is required when ingress"):
        healed.kubectl("apply", "--filename=-", stdin=WRONG)
    folder = healed.pki.parent
    app(["down", "healed"])
    assert [] == programs_below(folder)
