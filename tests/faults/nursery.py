"""Operators in processes of their own, quick to start: forked from one that has imported it all.

Each is the whole program, from its command line on. It is killed with SIGKILL, through a descriptor of the
process and not its number, so no other process can be hit.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

from cluster.operator_process import OFF
from cluster.world import PATIENCE_SECONDS, is_readable

_READY = b'"message": "ready"'


@dataclass
class Operator:
    log: Path
    descriptor: int

    @property
    def has_ended(self) -> bool:
        return is_readable(self.descriptor)

    def ready(self, within_seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + within_seconds
        while _READY not in self.log.read_bytes():
            if self.has_ended or time.monotonic() > deadline:
                raise AssertionError(f"the operator is not ready:\n{self.log.read_text()}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as a power cut would; returns at once. Nothing happens when it has ended."""
        try:
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
        except ProcessLookupError:
            return

    def ended(self, within_seconds: float = PATIENCE_SECONDS) -> None:
        assert is_readable(self.descriptor, within_seconds), "it still runs"


@dataclass
class Nursery:
    """Starts operators that talk to `kubeconfig`."""

    kubeconfig: Path
    folder: Path
    _requests: IO[bytes]
    _answers: IO[bytes]
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def operator(self, namespace: str, *flags: str) -> Iterator[Operator]:
        """An operator for that namespace; whatever becomes of it, it does not run afterwards."""
        with self._lock:
            operator = self._born(namespace, flags)
        try:
            yield operator
        finally:
            operator.kill()
            operator.ended()
            os.close(operator.descriptor)

    def _born(self, namespace: str, more: Sequence[str]) -> Operator:
        self._count += 1
        log = self.folder / f"{namespace}-{self._count}.log"
        log.touch()
        flags = ["--kubeconfig", str(self.kubeconfig), *OFF, f"--restrictedNamespace={namespace}"]
        flags.append("--operator-image=dynamo-operator:test")  # profiling copies its results with it
        flags.extend(more)
        line = json.dumps({"log": str(log), "arguments": ["run", *flags]}) + "\n"
        self._requests.write(line.encode())
        self._requests.flush()
        return Operator(log, os.pidfd_open(int(self._answers.readline())))


@contextmanager
def nursery(kubeconfig: Path, folder: Path, **variables: str) -> Iterator[Nursery]:
    """A nursery, meanwhile; its operators have these variables beside those of this process."""
    folders = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    with subprocess.Popen(
        [sys.executable, "-m", "faults.nursery"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Nursery(kubeconfig, folder, process.stdin, process.stdout)
        process.stdin.close()


def _serve() -> None:
    """Fork an operator for each line of standard input, and print its process number."""
    import dynamo_operator.process.main  # noqa: F401 - so that those who are forked need not
    from dynamo_operator import main as manager

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for them
    while line := os.read(0, 4096):  # one at a time, and nothing buffered that a fork would copy
        request = json.loads(line)
        number = os.fork()
        if number == 0:
            _become_operator(Path(request["log"]), request["arguments"], manager.main)
        os.write(1, f"{number}\n".encode())


def _become_operator(log: Path, arguments: list[str], main: object) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    sys.argv = ["dynamo-operator", *arguments]
    try:
        assert callable(main)
        main()
    finally:
        os._exit(1)


if __name__ == "__main__":
    _serve()
