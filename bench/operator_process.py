"""The operator as a separate process."""

import asyncio
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from bench.plane import Plane
from bench.processes import Process

QUIET_CPU_SECONDS = 0.02
"""CPU time in half a second that counts as idle."""
_BEAT = 0.5
_IDLE_BEATS = 4


@dataclass(slots=True)
class Operator:
    """A running operator."""

    process: Process
    metrics_port: int
    log: Path
    started: float

    def reconciles(self) -> float:
        """The number of reconciles so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as answer:
            text = answer.read().decode()
        counts = re.findall(r"^dynamo_operator_reconcile_total\{.*\} (\S+)$", text, re.MULTILINE)
        return sum(map(float, counts))

    async def ready(self) -> None:
        """Wait until its caches are synced."""
        async with asyncio.timeout(120):
            while '"message": "ready"' not in self.log.read_text(encoding="utf-8"):
                await asyncio.sleep(0.02)

    async def quiet(self, *, within_seconds: float = 600) -> float:
        """Wait until it is idle; return when it last used CPU."""
        async with asyncio.timeout(within_seconds):
            busy, used, idle_beats = monotonic(), self.process.cpu_seconds(), 0
            while idle_beats < _IDLE_BEATS:
                await asyncio.sleep(_BEAT)
                now = self.process.cpu_seconds()
                idle_beats = idle_beats + 1 if now - used < QUIET_CPU_SECONDS else 0
                busy = busy if idle_beats else monotonic()
                used = now
        return busy


@contextmanager
def operator(plane: Plane, *more: str) -> Iterator[Operator]:
    """Run the operator with additional flags, until the end of the block."""
    log = plane.folder / "operator.log"
    log.unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = (f"--metrics-bind-address=127.0.0.1:{port}", "--metrics-secure=false", *more)
    started = monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [
                *(sys.executable, "-m", "dynamo_operator", "run"),
                "--health-probe-bind-address=0",
                *("--kubeconfig", str(plane.instance.kubeconfig), *flags),
            ],
            stdout=output,
            stderr=output,
        )
    try:
        yield Operator(Process(process.pid), port, log, started)
    finally:
        process.terminate()
        process.wait(60)
