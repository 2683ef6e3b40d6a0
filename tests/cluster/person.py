"""A user at a terminal with `dynamoctl`."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.world import PATIENCE_SECONDS

PROGRAM = "import sys; from dynamoctl.main import main; main()"


def finished(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - our own program
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )


def dynamoctl(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """The result of a command without a kubeconfig and namespace."""
    return finished([sys.executable, "-c", PROGRAM, *map(str, arguments)])


@dataclass(frozen=True, slots=True)
class Person:
    """A user with `dynamoctl` and a kubeconfig file."""

    kubeconfig: Path
    namespace: str

    def command(self, *arguments: str) -> list[str]:
        where = (f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}")
        return [sys.executable, "-c", PROGRAM, *arguments, *where]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return exit code, stdout and stderr."""
        done = finished(self.command(*arguments))
        return done.returncode, done.stdout, done.stderr

    def json(self, *arguments: str) -> tuple[int, Any]:
        """Run a command with `-ojson`; return exit code and document."""
        code, text, _ = self.run(*arguments, "-ojson")
        return code, json.loads(text)

    @contextmanager
    def running(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        with subprocess.Popen(  # noqa: S603 - our own program
            self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()
