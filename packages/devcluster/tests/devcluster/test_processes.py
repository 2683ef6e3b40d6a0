import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.processes import Process, ProcessIdentity, first_ended, stop

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
STUBBORN = "trap '' TERM; echo ready; while true; do sleep 0.1; done"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    one = Process("one", tmp_path, tmp_path)
    yield one
    stop([one, Process("stranger", tmp_path, tmp_path)], grace_seconds=0)


def recorded_file(process: Process) -> Path:
    return process.records / "one.pid"


def test_a_started_process_is_known_by_its_pid_and_leads_its_own_session(process: Process) -> None:
    process.start(["sleep", "60"], ENVIRONMENT)
    pid = process.pid()
    assert pid is not None
    assert b"sleep\x0060\x00" == Path(f"/proc/{pid}/cmdline").read_bytes()
    assert pid == os.getsid(pid)
    assert first_ended([process], within_seconds=0) is None


def test_a_process_that_ended_is_not_running_and_its_log_has_both_streams(process: Process) -> None:
    process.start(["sh", "-c", "echo out; echo err >&2"], ENVIRONMENT)
    assert process == first_ended([process], within_seconds=10)
    assert process.pid() is None
    assert "out\nerr\n" == process.log.read_text()


def test_a_program_that_does_not_exist_is_a_process_that_ended(process: Process) -> None:
    process.start(["/no/such/program"], ENVIRONMENT)
    assert process == first_ended([process], within_seconds=10)
    assert "/no/such/program" in process.log.read_text()


def test_a_process_that_ignores_the_request_to_end_is_killed(process: Process) -> None:
    process.start(["sh", "-c", STUBBORN], ENVIRONMENT)
    deadline = time.monotonic() + 10
    while "ready" not in process.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    stop([process], grace_seconds=0.2)
    assert process.pid() is None


def test_another_process_with_the_same_pid_is_not_stopped(process: Process, tmp_path: Path) -> None:
    stranger = Process("stranger", tmp_path, tmp_path)
    stranger.start(["sleep", "60"], ENVIRONMENT)
    pid = stranger.pid()
    assert pid is not None
    boot, stat = (stranger.records / "stranger.pid").read_text().splitlines()
    fields = stat.split()
    fields[21] = str(int(fields[21]) - 1)
    recorded_file(process).write_text(f"{boot}\n{' '.join(fields)}\n")

    assert process.pid() is None
    stop([process], grace_seconds=0)
    assert pid == stranger.pid()


def test_a_record_from_before_the_last_boot_names_no_process(process: Process) -> None:
    process.start(["sleep", "60"], ENVIRONMENT)
    true_record = recorded_file(process).read_text()
    _, stat = true_record.splitlines()
    recorded_file(process).write_text(f"00000000-0000-0000-0000-000000000000\n{stat}\n")
    assert process.pid() is None
    recorded_file(process).write_text(true_record)
    assert process.pid() is not None


@pytest.mark.parametrize("text", ["", "boot\n", "boot\n12 (x)\n", "not\na record\n"])
def test_a_broken_record_names_no_process(process: Process, text: str) -> None:
    recorded_file(process).write_text(text)
    assert process.pid() is None


def test_a_name_with_parentheses_and_spaces_does_not_confuse_the_identity() -> None:
    stat = "42 (a) b (c) S 1 " + " ".join(str(field) for field in range(5, 53))
    assert ProcessIdentity("boot", 42, 22) == ProcessIdentity.of("boot\n", stat)
