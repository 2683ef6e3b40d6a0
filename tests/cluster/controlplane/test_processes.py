"""Pods of the playground are local processes: they answer, log, crash and end as on a node."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from cluster.controlplane.test_lifecycle import programs_below
from devcluster.components import KubectlError
from devcluster.instance import Instance
from devcluster.kubelet import egress
from devcluster.kubelet.pods import REASON
from devcluster.layout import cache_folder
from dynamoctl.dev.commands import app

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "vllm-aggregated.yaml"
GRAPH = "vllm-aggregated"
FRONTEND, WORKER = (
    f"--selector=nvidia.com/selector={GRAPH}-{component}" for component in ("frontend", "worker")
)
WITHOUT_NETWORK = ("unshare", "--user", "--map-root-user", "--net")


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        try:
            app(["up", "pods"])
            instance = Instance("pods")
            patch.setenv("KUBECONFIG", str(instance.kubeconfig))
            instance.kubectl("apply", f"--filename={EXAMPLE}")
            await_ready(instance)
            yield instance
        finally:
            app(["down", "--all"])
    assert [] == programs_below(folder)


def await_ready(instance: Instance) -> None:
    instance.kubectl("wait", "--for=condition=Ready", f"dgd/{GRAPH}", "--timeout=500s")


def eventually(holds: Callable[[], bool], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def typed(*words: str) -> str:
    """What a command of dynamoctl prints."""
    dynamoctl = Path(sys.executable).with_name("dynamoctl")
    done = subprocess.run(  # noqa: S603 - our own program
        [dynamoctl, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def first(instance: Instance, selector: str, path: str) -> str:
    return instance.kubectl("get", "pods", selector, f"--output=jsonpath={{.items[0]{path}}}")


def processes_of(instance: Instance) -> list[int]:
    """The processes that the kubelet started."""
    kubelet = instance.status().pids["local-kubelet"]
    children = Path(f"/proc/{kubelet}/task/{kubelet}/children").read_text()
    return [int(pid) for pid in children.split()]


def listening(pid: int) -> set[IPv4Address]:
    """The addresses at which a process accepts connections."""
    inodes = set[str]()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            inodes |= set(re.findall(r"socket:\[(\d+)\]", str(file.readlink())))
    lines = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    own = (line[1].partition(":")[0] for line in lines if line[3] == "0A" and line[9] in inodes)
    return {IPv4Address(int.from_bytes(bytes.fromhex(address), sys.byteorder)) for address in own}


def test_a_graph_answers_and_its_load_is_measured(playground: Instance) -> None:
    def answers() -> bool:
        try:
            return len(typed("chat", GRAPH, "Hello").split()) > 1
        except subprocess.CalledProcessError:  # the frontend has not discovered the worker yet
            return False

    eventually(answers)
    metrics = typed("curl", GRAPH, "/metrics")
    assert re.search(r"dynamo_frontend_requests_total\{.*\} [1-9]", metrics)
    assert "Qwen/Qwen3-0.6B" in typed("curl", GRAPH, "/v1/models")


def test_nothing_listens_beyond_this_machine(playground: Instance) -> None:
    pids = processes_of(playground)
    addresses = {address for pid in pids for address in listening(pid)}
    assert len(addresses) >= 2
    assert all(address.is_loopback for address in addresses)


def test_the_environment_of_a_process_is_that_of_its_pod(playground: Instance) -> None:
    command = r"dynamo\.frontend|simulation\.py.frontend"
    (frontend,) = (
        pid
        for pid in processes_of(playground)
        if re.search(command, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
    )
    content = Path(f"/proc/{frontend}/environ").read_text().rstrip("\0").split("\0")
    variables = dict(line.split("=", 1) for line in content)
    assert variables["POD_NAMESPACE"] == "default"
    assert variables["DYN_NAMESPACE"] == f"default-{GRAPH}"
    assert "XDG_STATE_HOME" not in variables


def test_logs_have_times_and_ends(playground: Instance) -> None:
    name = first(playground, FRONTEND, ".metadata.name")
    lines = playground.kubectl("logs", name).splitlines()
    assert lines[0].startswith("playground: ")
    (last,) = playground.kubectl("logs", name, "--tail=1").splitlines()
    assert last in playground.kubectl("logs", name).splitlines()[len(lines) - 1 :]  # probes add lines
    assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z playground", playground.kubectl("logs", name, "--timestamps"))
    assert "playground: " in typed("logs", GRAPH)


def test_a_process_that_dies_is_started_again_and_its_log_is_kept(playground: Instance) -> None:
    name = first(playground, WORKER, ".metadata.name")
    address = IPv4Address(first(playground, WORKER, ".status.podIP"))
    host = IPv4Address(egress.loopback(address))
    (worker,) = (pid for pid in processes_of(playground) if host in listening(pid))
    os.kill(worker, signal.SIGKILL)
    status = ".status.containerStatuses[0]"
    eventually(lambda: first(playground, WORKER, f"{status}.lastState.terminated.exitCode") == "137")
    eventually(lambda: first(playground, WORKER, f"{status}.restartCount") == "1")
    assert "playground: " in playground.kubectl("logs", name, "--previous")
    await_ready(playground)


def test_a_pod_that_is_deleted_ends_within_its_grace_period(playground: Instance) -> None:
    name = first(playground, FRONTEND, ".metadata.name")
    playground.kubectl("delete", "pod", name, "--timeout=300s")
    await_ready(playground)
    assert first(playground, FRONTEND, ".metadata.name") != name


def test_a_missing_secret_is_an_error_of_the_container(playground: Instance) -> None:
    playground.kubectl("create", "namespace", "elsewhere")
    playground.kubectl("apply", "--namespace=elsewhere", f"--filename={EXAMPLE}")
    waiting = ".status.containerStatuses[0].state.waiting"
    selector = ("--namespace=elsewhere", WORKER)

    def seen() -> bool:
        text = playground.kubectl("get", "pods", *selector, f"--output=jsonpath={{.items[*]{waiting}}}")
        return "CreateContainerConfigError" in text and "hf-token-secret" in text

    eventually(seen)
    playground.kubectl("delete", "namespace", "elsewhere", "--wait=false")


def test_what_cannot_run_here_is_simulated_and_says_why(playground: Instance) -> None:
    spec = {"containers": [{"name": "main", "image": "planner", "command": ["python3", "-m", "planner_sla"]}]}
    metadata = {"name": "planner", "labels": {"nvidia.com/dynamo-component-type": "planner"}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    playground.kubectl("create", "--filename=-", stdin=json.dumps(body))
    playground.kubectl("wait", "--for=condition=Ready", "pod/planner", "--timeout=300s")
    annotation = f"--output=jsonpath={{.metadata.annotations.{REASON}}}"
    assert "main runs no program of Dynamo" in playground.kubectl("get", "pod", "planner", annotation)
    for command in (("logs", "planner"), ("exec", "planner", "--", "true")):
        with pytest.raises(KubectlError, match=egress.SIMULATED):
            playground.kubectl(*command)
    playground.kubectl("delete", "pod", "planner")


def test_processes_end_with_a_killed_kubelet_and_start_with_the_next(playground: Instance) -> None:
    before = processes_of(playground)
    kubelet = playground.status().pids["local-kubelet"]
    assert kubelet is not None
    os.kill(kubelet, signal.SIGKILL)
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in before))
    app(["up", "pods"])
    restarts = ".status.containerStatuses[0].restartCount"
    eventually(lambda: first(playground, FRONTEND, restarts) != "0")
    await_ready(playground)


def test_without_a_network_and_without_the_runtime_a_graph_answers(tmp_path: Path) -> None:
    """The programs of the control plane are there; nothing can be installed or reached."""
    if subprocess.run([*WITHOUT_NETWORK, "true"], check=False).returncode:  # noqa: S603
        pytest.skip("this machine permits no network namespaces")
    programs = tmp_path / "cache" / "dynamo-operator" / "controlplane"
    programs.parent.mkdir(parents=True)
    programs.symlink_to(cache_folder())
    demo = f"from dynamoctl.dev.demo import demo; from pathlib import Path; demo(Path({str(EXAMPLE)!r}))"
    loopback = f"{shutil.which('ip') or '/usr/sbin/ip'} link set lo up"
    done = subprocess.run(  # noqa: S603 - our own program
        [*WITHOUT_NETWORK, "/bin/sh", "-c", f'{loopback} && exec "$@"', "sh", sys.executable, "-c", demo],
        env={
            **os.environ,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert "This answer is simulated" in done.stdout
    assert "a small simulation answers" in done.stderr
