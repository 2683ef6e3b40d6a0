"""The command of profiling Jobs, as the operator renders it, in the image's working directory."""

import os
import subprocess
import sys
from pathlib import Path

from dynamo_operator.requests.api import MOCKED_RESULTS_FILE, RESULTS_FILE, STATUS_FILE
from profiler_questions import status, text

ROOT = Path(__file__).parents[4]
IMAGE = ROOT / "packages/dynamo-profiler/src/dynamo_profiler/image"


def job(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    """The command as the operator renders it, in the image's working directory."""
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(  # noqa: S603 - our own program
        ["python", "-m", "benchmarks.profiler.profile_sla", *args],  # noqa: S607 - as in the Job
        cwd=IMAGE,
        env=environment | {"HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_jobs_command_ends_well_with_all_files(tmp_path: Path) -> None:
    done = job(tmp_path, "--profile-config", text(tmp_path))
    assert (0, "") == (done.returncode, done.stderr)
    assert {RESULTS_FILE, MOCKED_RESULTS_FILE, STATUS_FILE} == {x.name for x in tmp_path.iterdir()}
    assert "success" == status(tmp_path)["status"]
    assert "Done" == status(tmp_path)["phase"]


def test_the_jobs_command_ends_badly_with_one_line(tmp_path: Path) -> None:
    done = job(tmp_path, "--profile-config", text(tmp_path, sla={"itl": 0.01}))
    assert 1 == done.returncode
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: sla.itl of 0.01 ms cannot be met: ")
    assert {"failed", "SweepingDecode"} == {status(tmp_path)[entry] for entry in ("status", "phase")}
    assert line.removeprefix("error: ") == status(tmp_path)["message"]
    assert {STATUS_FILE} == {item.name for item in tmp_path.iterdir()}


def test_the_image_has_the_command_in_its_working_directory() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    source = f"/source/{IMAGE.relative_to(ROOT)}"
    (copied,) = (line for line in lines if source in line)
    target = copied.split()[-1]
    assert f"WORKDIR {target}" in lines[lines.index(copied) :]
