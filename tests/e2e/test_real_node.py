"""The node itself: it comes up, survives, and leaves nothing behind, however it ended."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.layout import Layout
from realnode.node import RealInstance, namespaces

GROUPS = Path("/sys/fs/cgroup")
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("node")


@pytest.fixture(scope="module")
def kept(folder: Path) -> Iterator[RealInstance]:
    """The node of these tests, whatever state the one before has left it in."""
    found = RealInstance(f"node-{os.getpid()}", folder)
    yield found
    found.down()


@pytest.fixture
def instance(kept: RealInstance) -> RealInstance:
    kept.up()
    return kept


def traces(instance: RealInstance, folder: Path) -> list[str]:
    """What shows on this machine that the instance exists or existed."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line]
    groups = [str(each) for each in GROUPS.glob(f"**/*{instance.name}*")]
    return [*mounts, *groups, *map(str, folder.glob(f"{instance.name}"))]


def processes(folder: Path, instance: RealInstance) -> set[int]:
    return namespaces(Layout(folder / instance.name)).processes()


def test_a_stopped_node_leaves_no_trace(instance: RealInstance, folder: Path) -> None:
    assert instance.status().is_whole
    running = processes(folder, instance)
    assert len(running) > 8
    assert [] != traces(instance, folder)
    instance.down()
    assert [] == traces(instance, folder)
    assert [] == [pid for pid in running if _is_alive(pid)]


def test_what_a_crash_left_is_found_and_removed(instance: RealInstance, folder: Path) -> None:
    running = processes(folder, instance)
    programs = {pid for pid in instance.status().pids.values() if pid}
    for pid in programs:  # containers keep running, and so do the shims that watch over them
        os.kill(pid, signal.SIGKILL)
    left = {pid for pid in running - programs if _is_alive(pid)}
    assert left
    instance.down()
    assert [] == traces(instance, folder)
    assert [] == [pid for pid in left if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
