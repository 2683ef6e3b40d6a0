"""`make planted`: plant each fault in a copy of the repository, and print the test that finds it."""

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planted.faults import ROOT, Fault, faults, needs_control_plane

_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_OF_THE_LIST = "--ignore=tests/repository/test_planted_faults.py"
"""The test that the list fits the code: it would find every fault."""

_LIST = ("git", "ls-files", "-z")
_PASSED, _FAILURES = 0, 1
"""Exit codes of pytest. Any other one means that it could not run the tests."""


class NotRun(Exception):
    """The tests could not be run."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the repository, with an environment in which the packages are those of the copy."""

    folder: Path
    timeout_seconds: float

    @classmethod
    def made(cls, folder: Path, timeout_seconds: float) -> "Copy":
        """Copy the files that git tracks, as they are now, and install the packages."""
        names = subprocess.run(  # noqa: S603  # the git that developers use
            _LIST, cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
        for name in filter(None, names.stdout.decode().split("\0")):
            source, target = ROOT / name, folder / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        uv = [str(ROOT / ".make/bin/uv"), "sync", "--locked", "--quiet"]
        subprocess.run(uv, cwd=folder, env=_environment(), check=True)  # noqa: S603  # ours
        return cls(folder, timeout_seconds)

    def found_by(self, fault: Fault, parts: Sequence[str]) -> str:
        """The first test that fails with the fault; "" if none does.

        Raises:
            NotRun: the tests of a part could not be run, or the test fails without the fault as well.
        """
        files = [self.folder / edit.file for edit in fault.edits]
        originals = [file.read_text(encoding="utf-8") for file in files]
        for file, original, edit in zip(files, originals, fault.edits, strict=True):
            file.write_text(edit.applied(original), encoding="utf-8")
        try:
            failed = next(filter(None, (self._failed(*shlex.split(part)) for part in parts)), "")
        finally:
            for file, original in zip(files, originals, strict=True):
                file.write_text(original, encoding="utf-8")
        if failed and self._failed(failed):
            raise NotRun(f"{failed} fails without the fault as well")
        return failed

    def _failed(self, *arguments: str) -> str:
        """Run pytest until a test fails, and return its name; "" if all pass."""
        pytest = [str(self.folder / ".venv/bin/pytest"), "-x", "-q", _OF_THE_LIST, *arguments]
        with subprocess.Popen(  # noqa: S603  # ours
            pytest,
            cwd=self.folder,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that a timeout ends what the tests have started, too
        ) as run:
            try:
                output, _ = run.communicate(timeout=self.timeout_seconds)
            except BaseException as error:
                os.killpg(run.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise NotRun(f"no end within {self.timeout_seconds:g} s") from error
                raise
        failed = _FAILED.search(output)
        if run.returncode == _FAILURES and failed is not None:
            return failed[1]
        if run.returncode != _PASSED:
            raise NotRun(output)
        return ""


def _environment() -> dict[str, str]:
    """Without the variables by which programs of the copy would use another environment."""
    others = ("PYTHONPATH", "VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT")
    return {name: text for name, text in os.environ.items() if name not in others}


def _described(fault: Fault) -> str:
    return " ".join((fault.name, fault.class_, *(edit.file for edit in fault.edits)))


def main() -> int:
    """Plant the chosen faults one after the other; return 1 if a test misses one."""
    arguments = argparse.ArgumentParser(prog="make planted", description=__doc__)
    arguments.add_argument(
        "-k", nargs="+", default=[""], help="only faults with such a text in name, class or file"
    )
    arguments.add_argument("--units", action="store_true", help="only tests without a control plane")
    arguments.add_argument("--tests", nargs="+", help="these tests instead of those of each fault")
    arguments.add_argument("--timeout", type=float, default=900, help="seconds for each part")
    options = arguments.parse_args()
    chosen = [fault for fault in faults() if any(text in _described(fault) for text in options.k)]
    count = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Copy.made(Path(folder), options.timeout)
        print("| fault | class | found by | seconds |\n|---|---|---|---|", flush=True)
        for fault in chosen:
            began = time.monotonic()
            parts = options.tests or [
                part for part in fault.parts if not (options.units and needs_control_plane(part))
            ]
            try:
                found = copy.found_by(fault, parts)
            except NotRun as error:
                print(error, file=sys.stderr)
                found = ""
            count += bool(found)
            test = f"`{found}`" if found else "**not found**"
            seconds = time.monotonic() - began
            print(f"| {fault.name} | {fault.class_} | {test} | {seconds:.0f} |", flush=True)
    print(f"\n{count} of {len(chosen)} found")
    return 0 if count == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
