"""One container of a pod as a local process: started, probed, restarted and ended as by a kubelet."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from devcluster.kubelet import probes
from devcluster.kubelet.programs import Program
from devcluster.kubelet.status import BACKOFF_RESET_SECONDS, ContainerState, backoff_seconds, is_restarted
from kube_runtime.errors import OperatorError
from kube_runtime.times import loop_time, microtime, rfc3339, wall_clock
from kube_runtime.types.meta import Object

_LAUNCHER = Path(__file__).with_name("launch.py")
_LINE_BYTES = 1 << 14
_RETRY_SECONDS = 5.0
_MOST_LOG_BYTES = 16 * 1024 * 1024


def now() -> str:
    """The time in the API's format."""
    return rfc3339(wall_clock())


def _instant() -> str:
    return microtime(wall_clock())


def launched(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command line of a program that ends with this process."""
    return (sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *command)


Record = Callable[[str, str, str], None]
"""Type, reason and message of an Event about the container."""


class Container:
    """One container; `changed` is called when its state changes, `record` for each Event."""

    def __init__(
        self,
        spec: Object,
        *,
        state: ContainerState,
        policy: str,
        address: str,
        grace_seconds: float,
        logs: Path,
        program: Program,
        environment: Callable[[], Awaitable[Mapping[str, str]]],
        changed: Callable[[], None],
        record: Record,
    ) -> None:
        self.spec = spec
        self.state = state
        self._policy = policy
        self._address = address
        self._grace_seconds = grace_seconds
        self._logs = logs
        self._program = program
        self._environment = environment
        self._changed = changed
        self._record = record
        self._process: asyncio.subprocess.Process | None = None
        self._ending = asyncio.Event()

    def log(self, *, previous: bool = False) -> Path:
        """The file with the output of the current process, or of the one before."""
        return self._logs / f"{self.state.restarts - previous}.log"

    async def run(self) -> None:
        """Run until the container is not restarted any more, or cancelled."""
        restarts, delays = self.state.restarts, 0
        while True:
            begun = loop_time()
            variables = await self._variables()
            if self._ending.is_set():
                return
            code = await self._run_once(variables, restarts)
            if self._ending.is_set() or not is_restarted(self._policy, code):
                return
            delays = 0 if loop_time() - begun > BACKOFF_RESET_SECONDS else delays
            if seconds := backoff_seconds(delays):
                text = f"back-off {seconds:.0f}s restarting failed container={self.state.name}"
                self._show(self.state.waiting("CrashLoopBackOff", text))
                self._record("Warning", "BackOff", f"Back-off restarting failed container {self.state.name}")
                await asyncio.sleep(seconds)
            restarts, delays = restarts + 1, delays + 1

    async def end(self, grace_seconds: float) -> None:
        """Run the hook, then SIGTERM, and SIGKILL at the end of the grace period."""
        begun = loop_time()
        self._ending.set()
        self._record("Normal", "Killing", f"Stopping container {self.state.name}")
        hook = ((self.spec.get("lifecycle") or {}).get("preStop") or {}).get("sleep")
        if hook and self._process is not None:
            waiting = asyncio.ensure_future(self._process.wait())
            await asyncio.wait((waiting,), timeout=min(float(hook["seconds"]), grace_seconds))
        await self._end(max(grace_seconds - (loop_time() - begun), 0.0))

    async def _variables(self) -> Mapping[str, str]:
        recorded = ""
        while True:
            try:
                return await self._environment()
            except OperatorError as error:
                self._show(self.state.waiting("CreateContainerConfigError", str(error)))
                if str(error) != recorded:
                    recorded = str(error)
                    self._record("Warning", "Failed", f"Error: {error}")
                await asyncio.sleep(_RETRY_SECONDS)

    async def _run_once(self, variables: Mapping[str, str], restarts: int) -> int:
        started = now()
        self.state = self.state.running(started, restarts=restarts)
        self._process = process = await asyncio.create_subprocess_exec(
            *launched(self._program.command),
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=_LINE_BYTES,
        )
        self._changed()
        self._record("Normal", "Started", f"Started container {self.state.name}")
        checks = asyncio.create_task(self._check(variables))
        writes = asyncio.create_task(self._write_log(process))
        try:
            code = await process.wait()
        finally:
            checks.cancel()
            self._signal(signal.SIGKILL)
            await process.wait()
            await writes
        self._show(self.state.terminated(code, started=started, at=now()))
        return code

    async def _write_log(self, process: asyncio.subprocess.Process) -> None:
        """Write each line with its time, as a kubelet has it."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        file = self.log()
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb", buffering=0) as log:
            log.write(f"{_instant()} playground: {self._program.note}\n".encode())
            while line := await _line(process.stdout):
                if log.tell() > _MOST_LOG_BYTES:
                    log.seek(0)
                    log.truncate()
                log.write(_instant().encode() + b" " + line + b"\n"[line.endswith(b"\n") :])

    async def _check(self, variables: Mapping[str, str]) -> None:
        if (startup := self.spec.get("startupProbe")) and not await self._passes(startup, variables):
            await self._restart("startup")
            return
        self._show(replace(self.state, is_started=True))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_readiness(variables))
            if liveness := self.spec.get("livenessProbe"):
                group.create_task(self._watch_liveness(liveness, variables))

    async def _passes(self, probe: Object, variables: Mapping[str, str]) -> bool:
        async for passed in self._verdicts("Startup", probe, variables):
            if passed is not None:
                return passed
        return False

    async def _watch_readiness(self, variables: Mapping[str, str]) -> None:
        probe = self.spec.get("readinessProbe")
        if probe is None:
            self._show(replace(self.state, is_ready=True))
            return
        async for passed in self._verdicts("Readiness", probe, variables):
            if bool(passed) != self.state.is_ready:
                self._show(replace(self.state, is_ready=bool(passed)))

    async def _watch_liveness(self, probe: Object, variables: Mapping[str, str]) -> None:
        async for passed in self._verdicts("Liveness", probe, variables):
            if passed is False:
                break
        await self._restart("liveness")

    async def _restart(self, kind: str) -> None:
        text = f"Container {self.state.name} failed {kind} probe, will be restarted"
        self._record("Normal", "Killing", text)
        await self._end(self._grace_seconds)

    async def _verdicts(
        self, kind: str, probe: Object, variables: Mapping[str, str]
    ) -> AsyncIterator[bool | None]:
        verdict = probes.Verdict()
        await asyncio.sleep(float(probe.get("initialDelaySeconds") or 0))
        while True:
            cause = await probes.failure(
                probe, host=self._address, ports=self.spec.get("ports", ()), environment=variables
            )
            if cause and verdict.latest is not False:  # the first of several
                self._record("Warning", "Unhealthy", f"{kind} probe failed: {cause}")
            verdict = verdict.after(not cause, probe)
            yield verdict.passed
            await asyncio.sleep(probes.period_seconds(probe))

    async def _end(self, grace_seconds: float) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        self._signal(signal.SIGTERM)
        waiting = asyncio.ensure_future(process.wait())
        await asyncio.wait((waiting,), timeout=grace_seconds)
        self._signal(signal.SIGKILL)
        await waiting

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:  # else its pid may be another's
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _show(self, state: ContainerState) -> None:
        self.state = state
        self._changed()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line, or a part of one that is too long; b"" at the end."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await reader.readexactly(error.consumed)
