"""The command of profiling Jobs, as the operator renders it, in the image's working directory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynamo_operator.requests.api import FINAL_FILE, MOCKED_RESULTS_FILE, RESULTS_FILE, STATUS_FILE
from kube_runtime.types.meta import Object
from profiler_questions import status, text

ROOT = Path(__file__).parents[4]
IMAGE = ROOT / "packages/dynamo-profiler/src/dynamo_profiler/image"


def job(
    folder: Path, *args: str, module: str = "benchmarks.profiler.profile_sla"
) -> "subprocess.CompletedProcess[str]":
    """The command as the operator renders it, in the image's working directory."""
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(  # noqa: S603 - our own program
        ["python", "-m", module, *args],  # noqa: S607 - as in the Job
        cwd=IMAGE,
        env=environment | {"HOME": str(folder), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
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


@pytest.mark.parametrize("is_mocked", [True, False])
def test_the_spec_of_a_request_is_answered_with_the_graph_that_it_asks_for(
    tmp_path: Path, *, is_mocked: bool
) -> None:
    hardware = {"gpuSku": "h200_sxm", "vramMb": 143771, "numGpusPerNode": 8, "totalGpus": 8}
    features = {"features": {"mocker": {"enabled": True}}} if is_mocked else {}
    spec: Object = {"model": "Qwen/Qwen3-0.6B", "backend": "auto", "image": "i:1", "searchStrategy": "rapid"}
    spec |= {"autoApply": True, "hardware": hardware, **features}
    done = job(
        tmp_path, "--config", json.dumps(spec), "--output-dir", str(tmp_path), module="dynamo.profiler"
    )
    assert (0, "") == (done.returncode, done.stderr)
    files = {item.name: item.read_text(encoding="utf-8") for item in tmp_path.iterdir()}
    assert files[FINAL_FILE] == files[MOCKED_RESULTS_FILE if is_mocked else RESULTS_FILE]
    assert "success" == status(tmp_path)["status"]


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ("[", "--config: unreadable YAML"),
        ("[]", "the spec of a request must be a mapping"),
        ('{"model": "m", "workload": {"concurrency": 1, "requestRate": 1}}', "exclude each other"),
    ],
)
def test_a_spec_that_cannot_be_answered_is_a_failed_status(tmp_path: Path, spec: str, cause: str) -> None:
    done = job(tmp_path, "--config", spec, "--output-dir", str(tmp_path), module="dynamo.profiler")
    assert 1 == done.returncode or "[" == spec
    assert cause in done.stderr
    assert "failed" == status(tmp_path)["status"]


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
