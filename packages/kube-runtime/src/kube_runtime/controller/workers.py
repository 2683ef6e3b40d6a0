"""A pool of worker processes for expensive pure functions, with limits of CPU time and memory.

Such work must not block the event loop, and must end: a thread cannot be killed, a process can. A process
starts with the first job and ends when idle, so that a cluster without large objects pays nothing.
Source: `docs/decisions/0026-bounded-work.md`.
"""

import asyncio
import pickle
import signal
import socket
import subprocess
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

from kube_runtime.controller import worker_process
from kube_runtime.errors import OperatorError


# A controller has a fixed number of workers. If reconciles that wait for the worker pool kept
# theirs, sixteen large objects of one tenant would block the small ones of all others.
class WorkerSlots:
    """The workers of one controller. `spawn` starts one more."""

    def __init__(self, spawn: Callable[[], object]) -> None:
        self._spawn = spawn
        self._surplus = 0

    @contextmanager
    def released(self) -> Iterator[None]:
        """Have one more worker within the block. Afterwards one of them ends."""
        if self._surplus:
            self._surplus -= 1
        else:
            self._spawn()
        try:
            yield
        finally:
            self._surplus += 1

    def is_surplus(self) -> bool:
        """Whether there is one worker too many; the caller then has to end."""
        if not self._surplus:
            return False
        self._surplus -= 1
        return True


WORKER_SLOTS: ContextVar[WorkerSlots | None] = ContextVar("worker_slots", default=None)


@contextmanager
def worker_slot_released() -> Iterator[None]:
    """Let another reconcile run during the block. Outside of reconciles this does nothing."""
    if (slots := WORKER_SLOTS.get()) is None:
        yield
        return
    with slots.released():
        yield


T = TypeVar("T")

WorkEndedCause: TypeAlias = Literal["time", "memory", "crash"]

SECONDS = 5.0
"""CPU time of one job."""
MEMORY_BYTES = 256 * 1024 * 1024
"""Memory of one job, beyond the 60 MiB of an idle process."""
WALL_FACTOR = 6
WALL_SECONDS = 10.0
"""Wall-clock limit of a job on a busy machine: this multiple of its CPU time, and seconds to start."""
JOBS_OF_A_PROCESS = 200
_CAUSES: Mapping[int, WorkEndedCause] = {-signal.SIGPROF: "time", -signal.SIGKILL: "memory"}
"""By exit code: the signals of the kernel at the limit of CPU time, and when memory runs out."""
_EXIT_POLLS, _EXIT_POLL_SECONDS = 200, 0.01


class WorkEnded(OperatorError):
    """The work exceeded its limit of time or memory and was killed. A retry would be killed, too."""

    def __init__(self, cause: WorkEndedCause, message: str) -> None:
        super().__init__(message)
        self.cause: WorkEndedCause = cause


class WorkBusy(OperatorError):
    """Too much work is queued; retry later."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the pool: processes, jobs that wait, jobs that wait of one tenant, idle time of a process.

    When `waiting` jobs wait, a job of the tenant with most of them yields to a new one.
    """

    processes: int = 1
    waiting: int = 16
    waiting_of_one: int = 4
    idle_seconds: float = 60.0


class WorkerProcess:
    """A worker process, and the socket to it."""

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._popen = popen
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls) -> "WorkerProcess":
        """Start a process. It accepts calls at once, and answers once it has started."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", worker_process.__name__, str(theirs.fileno())]
            popen = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program; this does not wait for it
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        return cls(popen, reader, writer)

    async def exchange(self, content: bytes) -> bytes:
        """Send a call and return the answer.

        Raises:
            OSError: the process has ended.
            asyncio.IncompleteReadError: the same.
        """
        self._writer.write(worker_process.frame(content))
        await self._writer.drain()
        length = await self._reader.readexactly(worker_process.LENGTH_BYTES)
        return await self._reader.readexactly(int.from_bytes(length, "big"))

    def kill(self) -> None:
        """Kill the process."""
        self._popen.kill()

    async def stop(self) -> None:
        """Kill the process and wait for its end."""
        self.kill()
        self._writer.close()
        await self.exit_code()

    async def exit_code(self) -> int | None:
        """Wait for the exit code, negative for a signal. None: the process has not ended in time."""
        for _ in range(_EXIT_POLLS):
            if (code := self._popen.poll()) is not None:
                return code
            await asyncio.sleep(_EXIT_POLL_SECONDS)
        return None


@dataclass(eq=False, slots=True)
class _Job:
    tenant: str
    content: bytes
    seconds: float
    memory_bytes: int
    future: "asyncio.Future[Any]"
    process: WorkerProcess | None = None

    def fail(self, cause: WorkEndedCause) -> None:
        """Raise `WorkEnded` in the caller."""
        if not self.future.done():
            self.future.set_exception(WorkEnded(cause, self._text(cause)))

    def _text(self, cause: WorkEndedCause) -> str:
        if cause == "time":
            return f"exceeded the limit of {self.seconds:g} s of CPU time"
        if cause == "memory":
            limit = self.memory_bytes // 1024 // 1024
            return f"exceeded the limit of {limit} MiB of memory"
        return "the worker process exited unexpectedly"


class WorkerPool:
    """Runs functions in worker processes; tenants take turns.

    `run` it as a server of the manager, or `close` it: a process outlives it otherwise.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._added = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = 0
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """Number of jobs that wait for a process."""
        return sum(map(len, self._waiting.values()))

    @property
    def processes(self) -> int:
        """Number of processes, including those that start or end."""
        return len(self._tasks)

    async def submit(
        self,
        function: Callable[..., T],
        args: tuple[object, ...],
        *,
        tenant: str,
        seconds: float = SECONDS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> T:
        """Run `function(*args)` in a worker process, and return its result or raise its exception.

        The function must be importable by its name; arguments, result and exception must be picklable.
        `seconds` is CPU time; `memory_bytes` comes on top of an idle process. Tenants, such as namespaces,
        take turns. Cancelling the call kills the process.

        Raises:
            WorkEnded: the job exceeded its time or memory.
            WorkBusy: too many jobs wait, in all or of this tenant.
        """
        content = pickle.dumps((function, args), pickle.HIGHEST_PROTOCOL)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = _Job(tenant, content, seconds, memory_bytes, future)
        self._add(job)
        try:
            return await future
        finally:
            self._forget(job)

    async def run(self) -> NoReturn:
        """Wait until cancelled, then end all processes. Processes start with the first job."""
        try:
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            await self.close()

    async def close(self) -> None:
        """Kill all processes. Waiting jobs raise `WorkBusy`."""
        self._is_closed = True
        for queue in self._waiting.values():
            for job in queue:
                _yield_to_others(job)
        self._waiting.clear()
        for task in (tasks := tuple(self._tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _add(self, job: _Job) -> None:
        own = self._waiting.get(job.tenant, ())
        if self._is_closed or len(own) >= self._bounds.waiting_of_one:
            raise WorkBusy("too much expensive work is queued; retrying soon")
        if self.waiting >= self._bounds.waiting:
            most = max(self._waiting.values(), key=len)
            if len(most) <= len(own) + 1:
                raise WorkBusy("too much expensive work is queued; retrying soon")
            _yield_to_others(most.pop())
        self._waiting.setdefault(job.tenant, deque()).append(job)
        self._added.set()
        self._start_process()

    def _start_process(self) -> None:
        if not self._idle and len(self._tasks) < self._bounds.processes:
            task = asyncio.create_task(self._serve(), name="bounded worker")
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()  # raises if there was a bug
        if self._waiting:  # jobs that came while the process was ending
            self._start_process()

    def _forget(self, job: _Job) -> None:
        queue = self._waiting.get(job.tenant)
        if queue and job in queue:
            queue.remove(job)
            if not queue:
                del self._waiting[job.tenant]
        if job.process is not None and job.future.cancelled():
            job.process.kill()

    def _next(self) -> _Job | None:
        """The first job of the tenant whose turn it is."""
        if not self._waiting:
            return None
        tenant, queue = self._waiting.popitem(last=False)
        job = queue.popleft()
        if queue:
            self._waiting[tenant] = queue  # behind the other tenants
        return job

    async def _take(self) -> _Job | None:
        """Wait for the next job. None: there was none within the idle time."""
        self._idle += 1
        try:
            async with asyncio.timeout(self._bounds.idle_seconds):
                while (job := self._next()) is None:
                    self._added.clear()
                    await self._added.wait()
                return job
        except TimeoutError:
            return None
        finally:
            self._idle -= 1

    async def _serve(self) -> None:
        """Run jobs in one process after the other, until there is none within the idle time."""
        process: WorkerProcess | None = None
        jobs = 0
        try:
            while (job := await self._take()) is not None:
                process = process or await WorkerProcess.start()
                jobs += 1
                if not await _run(job, process) or jobs % JOBS_OF_A_PROCESS == 0:
                    await process.stop()
                    process = None
        finally:
            if process is not None:
                await process.stop()


def _yield_to_others(job: _Job) -> None:
    if not job.future.done():
        job.future.set_exception(
            WorkBusy("the work yielded to that of other tenants; retrying soon")
        )


async def _run(job: _Job, process: WorkerProcess) -> bool:
    """Run a job. Returns whether the process can run another one."""
    if job.future.done():
        return True  # the caller was cancelled
    job.process = process
    limits = (job.seconds, job.memory_bytes, sys.getrecursionlimit(), job.content)
    try:
        async with asyncio.timeout(WALL_FACTOR * job.seconds + WALL_SECONDS):
            answer = await process.exchange(pickle.dumps(limits, pickle.HIGHEST_PROTOCOL))
    except TimeoutError:
        job.fail("time")
        return False
    except (OSError, asyncio.IncompleteReadError):
        job.fail(_CAUSES.get(await process.exit_code() or 0, "crash"))
        return False
    except asyncio.CancelledError:
        _yield_to_others(job)
        raise
    finally:
        job.process = None
    outcome, value = pickle.loads(answer)  # noqa: S301 - of our own child
    if outcome == "memory":
        job.fail("memory")
        return False  # not all of its memory may be free again
    if job.future.done():
        return True
    if outcome == "result":
        job.future.set_result(value)
    else:
        error, text = value
        error.add_note(f"in the worker process:\n{text}")
        job.future.set_exception(error)
    return True
