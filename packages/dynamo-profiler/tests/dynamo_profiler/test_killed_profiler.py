"""A profiler that is killed at any of its writes leaves whole files, and its next run the same result."""

import json
import subprocess
import sys
from pathlib import Path

from dynamo_operator.documents import documents
from dynamo_operator.requests.api import MOCKED_RESULTS_FILE, RESULTS_FILE, STATUS_FILE
from dynamo_profiler.run import Phase
from kube_runtime.types.meta import Object

PROGRAM = """
import os, pathlib, signal, sys
from itertools import count
from dynamo_profiler import command
from dynamo_profiler.command import run

folder, config = sys.argv[1:]
place = pathlib.Path.replace

def dies_at(number):
    # Killed with the file that it would put in place still beside it. Whether it was killed.
    writes = count(1)
    def replace(self, target):
        if next(writes) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return place(self, target)
    sys.stdout.flush()
    child = os.fork()
    if not child:
        pathlib.Path.replace = replace
        run(config.replace("FOLDER", f"{folder}/{number}"))
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])

for number in count(1):
    os.mkdir(f"{folder}/{number}")
    if not dies_at(number):
        break
"""
CONFIG: Object = {
    "deployment": {"model": "a/8B"},
    "engine": {"backend": "vllm"},
    "sla": {"ttft": 2000, "itl": 100},
    "planner": {},
    "output_dir": "FOLDER",
}
FILES = (STATUS_FILE, MOCKED_RESULTS_FILE, RESULTS_FILE)


def run(program: str, *args: str) -> None:
    """A process of one thread, which may fork."""
    command = [sys.executable, "-c", program, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert (0, "") == (done.returncode, done.stderr)


def content(folder: Path) -> dict[str, str]:
    """The files that others read."""
    return {file: (folder / file).read_text("utf-8") for file in FILES if (folder / file).exists()}


def test_wherever_it_is_killed_its_files_are_whole_and_the_next_run_ends_alike(tmp_path: Path) -> None:
    run(PROGRAM, str(tmp_path), json.dumps(CONFIG))
    *killed, whole = sorted(tmp_path.iterdir(), key=lambda folder: int(folder.name))
    finished = content(whole)
    assert set(FILES) == set(finished)
    left = [content(folder) for folder in killed]
    phases: list[str] = []
    for files in left:
        for name, text in files.items():
            found = [document.value for document in documents(name, text)]
            if name == STATUS_FILE:
                phases.append(found[0]["phase"])
            else:
                assert finished[name] == text
        assert RESULTS_FILE not in files or MOCKED_RESULTS_FILE in files, "the last one is waited for"
    assert [phase.value for phase in Phase if phase is not Phase.DONE] == list(dict.fromkeys(phases))
    again = "import sys; from dynamo_profiler.command import run; [run(text) for text in sys.argv[1:]]"
    run(again, *(json.dumps({**CONFIG, "output_dir": str(folder)}) for folder in killed))
    assert [finished] * len(killed) == [content(folder) for folder in killed]
