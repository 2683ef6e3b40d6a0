"""Instances that live side by side, die in the middle, and leave nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from devcluster.instance import Instance
from dynamoctl.dev.commands import app
from kube_runtime.errors import ConfigError, Unreachable

pytestmark = pytest.mark.cluster

STARTER = """
import sys
from pathlib import Path
from devcluster.instance import Instance
from devcluster.progress import Lines
Instance(sys.argv[1], Path(sys.argv[2])).up(progress=Lines(sys.stdout))
"""
Make = Callable[[str], Instance]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Instance] = []

    def instance(name: str) -> Instance:
        made.append(Instance(name, tmp_path))
        return made[-1]

    yield instance
    for each in made:
        each.down()


def programs_below(folder: Path) -> list[str]:
    """The programs that run with a path in this folder among their arguments."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if any(str(folder) in argument for argument in command[1:]):
            found.append(Path(command[0]).name)
    return sorted(found)


def kill(instance: Instance, *names: str) -> None:
    pids = instance.status().pids
    for name in names:
        pid = pids[name]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)


def test_up_repairs_what_was_killed_and_nothing_else_and_keeps_the_data(make: Make) -> None:
    instance = make("repaired")
    instance.up(nodes=2)
    instance.kubectl("create", "namespace", "kept")
    kubeconfig = instance.kubeconfig.read_text()
    before = instance.status().pids
    instance.up(nodes=2)
    assert before == instance.status().pids
    kill(instance, "etcd", "kube-apiserver", "kwok")
    with pytest.raises(Unreachable, match="is it up"):
        instance.install_crds(["kai"])

    instance.up(nodes=1)
    after = instance.status().pids
    assert instance.status().is_whole
    assert before["kube-scheduler"] == after["kube-scheduler"]
    assert "namespace/kept" in instance.kubectl("get", "namespaces", "--output=name")
    assert "node/gpu-0\n" == instance.kubectl("get", "nodes", "--output=name")
    assert kubeconfig == instance.kubeconfig.read_text()


def test_what_a_killed_starter_left_is_taken_over_and_ended_by_others(make: Make, tmp_path: Path) -> None:
    instance = make("orphan")
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", STARTER, "orphan", tmp_path], stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        for line in starter.stdout:
            if "controllers" in line:  # etcd and the API server run, nothing else does
                starter.kill()
                break
    assert not instance.status().is_whole
    instance.up()
    assert instance.status().is_whole
    instance.down()
    assert [] == programs_below(tmp_path)


def test_up_serves_the_kinds_that_it_is_given_and_down_leaves_neither_processes_nor_files(
    make: Make, tmp_path: Path
) -> None:
    instance = make("gone")
    instance.up(nodes=0, crds=["podgroup"])
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"minMember": 2},
    }
    instance.kubectl("create", "--filename=-", stdin=json.dumps(group))
    stored = json.loads(instance.kubectl("get", "podgroup/gang", "--output=json"))
    assert {"minMember": 2, "queue": "default"} == stored["spec"]
    assert len(instance.status().pids) == len(programs_below(tmp_path / "gone"))
    kill(instance, "kube-apiserver")  # the others must end without it
    instance.down()
    assert [] == programs_below(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


def test_the_commands_start_show_and_remove_an_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="dynamoctl dev up shown"):
        app(["logs", "shown"])
    try:
        app(["up", "shown", "--nodes", "0", "--no-operator"])
        with pytest.raises(ConfigError, match="has no operator"):
            app(["logs", "shown"])
        capsys.readouterr()
        assert 0 == app(["status", "shown"])
        assert capsys.readouterr().out.startswith("shown            running  v1.36.")
        app(["kubeconfig", "shown"])
        path = Path(capsys.readouterr().out.removesuffix("\n"))
        app(["kubeconfig", "shown", "--content"])
        assert path.read_text() == capsys.readouterr().out
        kill(Instance("shown"), "kwok")
        assert 1 == app(["status"])
        assert "kwok                     not running" in capsys.readouterr().out
    finally:
        app(["down", "--all"])
    assert [] == Instance.all()


LISTENS = "0A"


def test_nothing_listens_beyond_this_machine(control_plane: ControlPlane) -> None:
    pids = control_plane.instance.status().pids
    listening = {
        f"{name} {address}"
        for name, pid in pids.items()
        if pid is not None
        for address in listening_addresses(pid)
    }
    assert {f"{name} 127.0.0.1" for name in ("etcd", "kube-apiserver")} == listening


def listening_addresses(pid: int) -> Iterator[str]:
    """The addresses that a process listens on; those of version 6 as the kernel writes them."""
    links = [link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    own = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in own:
                address = fields[1].partition(":")[0]
                octets = bytes.fromhex(address)[::-1]
                yield ".".join(map(str, octets)) if table == "tcp" else address


def test_every_file_is_closed_to_other_users(control_plane: ControlPlane) -> None:
    folder = control_plane.instance.pki.parent
    assert 0o700 == folder.stat().st_mode & 0o777
    private = [*folder.glob("pki/*"), *folder.glob("kubeconfigs/*")]
    assert {0o600} == {path.stat().st_mode & 0o777 for path in private}
