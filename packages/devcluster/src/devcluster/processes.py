"""Processes that outlive their starter and that a later command can stop.

Pids are reused, so a record has the boot and the start time too, and signals go through a pid descriptor that
was opened before the record was compared: it cannot refer to a later process. Each process writes its own
record before it executes the program, so a starter that is killed leaves no unknown process.
"""

import os
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kube_runtime.errors import OperatorError

GRACE_SECONDS = 10.0
_KILL_SECONDS = 10.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SHELL = "/bin/sh"
_RECORD_THEN_RUN = f'cat {_BOOT} /proc/$$/stat >"$0" && cd "$1" && shift && exec "$@" 3>&-'
_RECORDED = 3  # this descriptor is closed once the record is written


class ProcessError(OperatorError):
    """A process of the control plane ended, did not become ready, or does not end."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The identity of a process, which no other one ever has."""

    boot: str
    pid: int
    start_ticks: int

    @classmethod
    def of(cls, boot: str, stat: str) -> Self:
        """The identity in the text of a `/proc/<pid>/stat` file.

        Source: proc_pid_stat(5); the second field is arbitrary text in parentheses.
        """
        before, _, after = stat.rpartition(")")
        return cls(boot.strip(), int(before.split()[0]), int(after.split()[19]))


@dataclass(frozen=True, slots=True)
class Process:
    """One named process, with its record `<name>.pid` and its log `<name>.log`."""

    name: str
    records: Path
    logs: Path

    @property
    def log(self) -> Path:
        """The file with the output of the process."""
        return self.logs / f"{self.name}.log"

    def start(
        self, command: Sequence[str | Path], environment: Mapping[str, str], *, folder: Path | None = None
    ) -> None:
        """Start the process in its own session; return once its record is written.

        Its working directory is `folder`, by default ours.
        """
        reading, writing = os.pipe()
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        stdin = os.open(os.devnull, os.O_RDONLY)
        files = [
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
            (os.POSIX_SPAWN_DUP2, writing, _RECORDED),
        ]
        arguments = [_SHELL, "-c", _RECORD_THEN_RUN, str(self._record)]
        arguments += [str(folder or "."), *map(str, command)]
        try:
            os.posix_spawn(_SHELL, arguments, environment, file_actions=files, setsid=True)
        finally:
            for descriptor in (log, stdin, writing):
                os.close(descriptor)
        with os.fdopen(reading, "rb") as recorded:
            recorded.read()

    def pid(self) -> int | None:
        """The pid, or None if the process does not run."""
        try:
            boot, stat = self._record.read_text().splitlines()
            recorded = ProcessIdentity.of(boot, stat)
        except (FileNotFoundError, ValueError, IndexError):
            return None
        return recorded.pid if recorded == identity(recorded.pid) else None

    @contextmanager
    def descriptor(self) -> Iterator[int | None]:
        """A pid descriptor of exactly this process, or None if it does not run."""
        pid = self.pid()
        if pid is None:
            yield None
            return
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield descriptor if self.pid() == pid else None
        finally:
            os.close(descriptor)

    def forget(self) -> None:
        """Remove the record of a process that has ended."""
        self._record.unlink(missing_ok=True)

    @property
    def _record(self) -> Path:
        return self.records / f"{self.name}.pid"


def completed(
    command: Sequence[str | Path],
    environment: Mapping[str, str] | None = None,
    *,
    stdin: str | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and capture its output. The default `environment` is ours."""
    return subprocess.run(  # noqa: S603 - programs of the system, or found or built here
        command, env=environment, input=stdin, cwd=folder, capture_output=True, text=True, check=False
    )


def last_line(text: str, otherwise: str) -> str:
    """The last non-blank line of an output, which usually has the cause of a failure."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), otherwise)


def identity(pid: int) -> ProcessIdentity | None:
    """The process with this pid, or None if there is none or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if stat.rpartition(")")[2].split()[0] in "ZX":
        with suppress(ChildProcessError):  # another process's child
            os.waitpid(pid, os.WNOHANG)
        return None
    return ProcessIdentity.of(_BOOT.read_text(), stat)


def first_ended(processes: Sequence[Process], *, within_seconds: float) -> Process | None:
    """The first of these processes to end, or None if all ran for so long."""
    with ExitStack() as stack:
        poll = select.poll()
        by_descriptor: dict[int, Process] = {}
        for process in processes:
            descriptor = stack.enter_context(process.descriptor())
            if descriptor is None:
                return process
            by_descriptor[descriptor] = process
            poll.register(descriptor, select.POLLIN)
        ended = poll.poll(within_seconds * 1000)
        return by_descriptor[ended[0][0]] if ended else None


def stop(processes: Sequence[Process], *, grace_seconds: float = GRACE_SECONDS) -> None:
    """Stop these processes together: SIGTERM, then SIGKILL after the grace period.

    Raises: ProcessError if a killed process does not end.
    """
    with ExitStack() as stack:
        opened = [(process, stack.enter_context(process.descriptor())) for process in processes]
        for signal_, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, _KILL_SECONDS)):
            running = [fd for _, fd in opened if fd is not None and not _ended(fd, 0)]
            for descriptor in running:
                with suppress(ProcessLookupError):  # it ended just now
                    signal.pidfd_send_signal(descriptor, signal_)
            for descriptor in running:
                _ended(descriptor, seconds)
    for process in processes:
        if process.pid() is not None:
            raise ProcessError(f"{process.name}: process {process.pid()} does not end")
        process.forget()


def _ended(descriptor: int, within_seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(within_seconds * 1000))
