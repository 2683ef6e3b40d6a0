"""Programs of ours in processes of their own, quick to start: forked from one that has imported them all.

Each is the whole program, from its command line on. An import takes most of the CPU time of a short one.
"""

import atexit
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cluster.world import is_readable

_IMPORTED = (
    *("dynamo_operator.process.main", "dynamo_legacy.process", "dynamoctl.main", "dynamoctl.change.apply"),
    *("dynamoctl.inspect.why", "dynamoctl.inspect.tree"),
)
_LONGEST = 1 << 18  # bytes of a message: an environment and a command line


@dataclass(slots=True)
class Fork:
    """A program that was started; `pid` is that of its process. Threads may share it."""

    pid: int
    _status: socket.socket
    _descriptor: int
    _code: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def poll(self, seconds: float = 0) -> int | None:
        """Wait so long for its end; return its exit code, or None while it runs."""
        if self._code is None and is_readable(self._status.fileno(), seconds):
            with self._lock:
                if self._code is None:
                    self._code = int(self._status.recv(_LONGEST) or -signal.SIGKILL)  # with its keeper
                    self._status.close()
                    os.close(self._descriptor)
        return self._code

    def wait(self, seconds: float) -> int:
        """Wait for its end; return its exit code. Raises TimeoutError."""
        code = self.poll(seconds)
        if code is None:
            raise TimeoutError(f"process {self.pid} still runs")
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, through a descriptor of the process; nothing happens when it has ended."""
        with self._lock, suppress(ProcessLookupError):
            if self._code is None:
                signal.pidfd_send_signal(self._descriptor, number)


def fork(
    program: str, arguments: Sequence[str], output: int, errors: int, variables: Mapping[str, str]
) -> Fork:
    """Start a program, a module or `module:function`, with these descriptors as standard output and error."""
    request = {"program": program, "arguments": arguments, "environment": {**os.environ, **variables}}
    status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, Path(os.devnull).open("rb") as nothing:
        descriptors = [nothing.fileno(), output, errors, theirs.fileno()]
        socket.send_fds(_server(), [json.dumps(request).encode()], descriptors)
    number, (descriptor,), *_ = socket.recv_fds(status, _LONGEST, 1)
    return Fork(int(number), status, descriptor)


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    folders = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    process = subprocess.Popen([sys.executable, "-m", "forks"], stdin=theirs.fileno(), env=environment)
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)  # the last that is registered is called first
    return ours


def _serve() -> None:
    """Fork a keeper for each request: it starts the program, and reports its number and exit code."""
    for name in _IMPORTED:
        pkgutil.resolve_name(name)
    requests = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for keepers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which ends what it started
    while True:
        body, descriptors, *_ = socket.recv_fds(requests, _LONGEST, 4)
        if not body:
            return
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                requests.detach()
                for target, source in enumerate(descriptors[:3]):
                    os.dup2(source, target)
                os.closerange(3, 1 + max(descriptors))
                _become(**json.loads(body))
                return
            for each in (0, *descriptors[:3]):
                os.close(each)
            status = socket.socket(fileno=descriptors[3])
            socket.send_fds(status, [b"%d" % pid], [os.pidfd_open(pid)])
            status.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            os._exit(0)
        for each in descriptors:
            os.close(each)


def _become(program: str, arguments: list[str], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [program, *arguments]
    if ":" in program:
        pkgutil.resolve_name(program)()
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve()
