"""The operator as a separate process, which a test can stop or kill."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from cluster.chart_role import operator_kubeconfig
from cluster.world import PATIENCE_SECONDS
from forks import Fork, fork

_LOG_SHOWN = 20_000
"""Characters of its log that a failure shows."""

OFF = ("--metrics-bind-address=0", "--health-probe-bind-address=0")


@dataclass(slots=True)
class OperatorProcess:
    """One operator, started and stopped by a `with` block or explicitly, as often as needed."""

    kubeconfig: Path
    log: Path
    flags: tuple[str, ...] = OFF
    program: str = "dynamo_operator"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    _start: int = field(default=0, init=False)
    _process: Fork | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        self._start = self.log.stat().st_size if self.log.exists() else 0
        arguments = ["run", "--kubeconfig", str(operator_kubeconfig(self.kubeconfig)), *self.flags]
        with self.log.open("ab") as log:
            self._process = fork(self.program, arguments, log.fileno(), log.fileno(), self.variables)

    def ready(self, within_seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until its caches are synced."""
        self.says("ready", within_seconds)

    def says(self, message: str, within_seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + within_seconds
        while f'"message": "{message}"' not in self._log():
            if time.monotonic() > deadline or self.ended is not None:
                raise AssertionError(f"the operator has not logged {message!r}:\n{self._log()}")
            time.sleep(0.05)

    def _log(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._start)
            return log.read().decode()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._process.poll() if self._process else None

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def stop(self, within_seconds: float = PATIENCE_SECONDS) -> int:
        return self._signal(signal.SIGTERM, within_seconds)

    def wait(self, within_seconds: float = PATIENCE_SECONDS) -> int:
        """Wait until it exits; return its exit code."""
        assert self._process is not None
        return self._process.wait(within_seconds)

    def _signal(self, number: signal.Signals, within_seconds: float = PATIENCE_SECONDS) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(within_seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.ended is None:
            self.stop()
        if error is not None:  # pytest shows it if the test fails
            print(self._log()[-_LOG_SHOWN:])  # noqa: T201


@dataclass
class Nursery:
    """Starts operators that talk to `kubeconfig`, and are killed in the end."""

    kubeconfig: Path
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    _numbers: Iterator[int] = field(default_factory=count)

    @contextmanager
    def operator(self, namespace: str, *flags: str) -> Iterator[OperatorProcess]:
        """An operator for that namespace; whatever becomes of it, it does not run afterwards."""
        log = self.folder / f"{namespace}-{next(self._numbers)}.log"
        own = (f"--restrictedNamespace={namespace}", "--operator-image=dynamo-operator:test")
        process = OperatorProcess(self.kubeconfig, log, (*OFF, *own, *flags), variables=self.variables)
        process.start()
        try:
            yield process
        finally:
            process.kill()
