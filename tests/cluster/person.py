"""A user at a terminal with `dynamoctl`."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.world import PATIENCE_SECONDS
from forks import fork


def dynamoctl(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """The result of a command without a kubeconfig and namespace."""
    command = [*map(str, arguments)]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = fork("dynamoctl.main:main", command, output.fileno(), errors.fileno(), {})
        code = process.wait(PATIENCE_SECONDS)
        for each in (output, errors):
            each.seek(0)
        return subprocess.CompletedProcess(command, code, output.read(), errors.read())


@dataclass(frozen=True, slots=True)
class Person:
    """A user with `dynamoctl` and a kubeconfig file."""

    kubeconfig: Path
    namespace: str

    def command(self, *arguments: str) -> list[str]:
        return [*arguments, f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}"]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return exit code, stdout and stderr."""
        done = dynamoctl(*self.command(*arguments))
        return done.returncode, done.stdout, done.stderr

    def json(self, *arguments: str) -> tuple[int, Any]:
        """Run a command with `-ojson`; return exit code and document."""
        code, text, _ = self.run(*arguments, "-ojson")
        return code, json.loads(text)

    @contextmanager
    def running(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        with subprocess.Popen(  # noqa: S603 - our own program
            [Path(sys.executable).with_name("dynamoctl"), *self.command(*arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()
