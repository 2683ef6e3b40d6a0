"""Run pure work on objects: in the event loop if the object is small, else in a worker process with limits.

Source of the threshold: validating and rendering takes up to 0.25 ms for each KiB (measured with variables,
volumes, labels and arguments), so smaller objects block the event loop for less than 50 ms.
"""

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

import structlog

from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.bounds import weight_bytes
from kube_runtime.apply.drift import fingerprint_of
from kube_runtime.apply.suppression import Recent
from kube_runtime.clock import loop_time
from kube_runtime.controller.controller import Result
from kube_runtime.controller.worker_pool import SECONDS, WorkEnded, WorkerPool
from kube_runtime.controller.worker_slots import worker_slot_released
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Resource

R = TypeVar("R", bound=Resource)
T = TypeVar("T")

IN_PLACE_BYTES: Final = 32 * 1024
RETRY_SECONDS: Final = 1800.0
"""Seconds until work that exceeded a limit is retried, unless the object changes before."""
_PIECE_BYTES: Final = 64 * 1024
_REMEMBERED: Final = 4096
REMEMBERED = 16_384
"""Objects of one controller in a `ValidationCache`."""

_log = structlog.get_logger()


class Offload:
    """Runs work that may be expensive. Without `workers`, as in tests, everything runs in the event loop."""

    def __init__(
        self,
        workers: WorkerPool | None = None,
        metrics: RuntimeMetrics | None = None,
        *,
        seconds: float = SECONDS,
    ) -> None:
        self._seconds = seconds
        self._workers = workers
        self._metrics = metrics
        self._ended: Recent[tuple[bytes, float]] = Recent(_REMEMBERED)

    async def do(
        self,
        owner: Resource,
        function: Callable[..., Iterable[T]],
        *args: object,
        more_bytes: int = 0,
    ) -> tuple[T, ...]:
        """Return the items of `function(*args)`; `more_bytes` is the size of its inputs beside `owner`.

        Raises:
            WorkEnded: it exceeded a limit of time or memory.
            WorkBusy: too much work is queued.
        """
        if self._workers is None or weight_bytes(owner) + more_bytes <= IN_PLACE_BYTES:
            return tuple(function(*args))
        with worker_slot_released():
            pieces = await self._workers.submit(
                in_pieces,
                (function, args),
                tenant=owner.metadata.namespace,
                seconds=self._seconds,
            )
        results: list[T] = []
        for piece in pieces:
            results += [pickle.loads(pickled) for pickled in piece]  # noqa: S301 - of our own worker
            await asyncio.sleep(0)
        return tuple(results)

    async def one(
        self, owner: Resource, function: Callable[..., T], *args: object, more_bytes: int = 0
    ) -> T:
        """Return the result of `function(*args)`; otherwise as `do`."""
        results: tuple[T, ...] = await self.do(owner, alone, function, args, more_bytes=more_bytes)
        return results[0]

    async def reconciled(
        self,
        resource: R,
        reconcile: Callable[[R], Awaitable[Result]],
        report: Callable[[R, str], Awaitable[None]],
    ) -> Result:
        """Reconcile an object, or skip it if its work exceeded a limit, now or before for the same content.

        Its nesting may exceed one as well. `report` writes that to the status; running pods are not touched.
        """
        uid, now = resource.metadata.uid, loop_time()
        if ended := self._ended.get(uid):
            fingerprint, until = ended
            if now < until and fingerprint == fingerprint_of(resource):
                return Result(until - now)
            self._ended.forget(uid)
        try:
            return await reconcile(resource)
        except WorkEnded as error:
            _log.warning("work ended", cause=error.cause, error=str(error))
            if self._metrics is not None:
                self._metrics.work_ended(resource.KIND.name, error.cause)
            self._ended.put(uid, (fingerprint_of(resource), now + RETRY_SECONDS))
            await report(resource, f"Not processed: {error}. Running pods keep running.")
            return Result(RETRY_SECONDS)
        except RecursionError:
            await report(resource, "Not processed: nested too deeply. Running pods keep running.")
            return Result(RETRY_SECONDS)


class ValidationCache:
    """Remembers which objects have no problems: most reconciles follow a child's status, not a new spec.

    Validation costs a fifth of such a reconcile (`make bench ARGS="--only micro"`). `find` may depend on
    labels, annotations, owner references and spec, on fields that never change, such as the name, and on
    settings.
    """

    def __init__(self) -> None:
        self._valid: Recent[bytes] = Recent(REMEMBERED)

    async def problems_by(
        self, offload: Offload, resource: R, find: Callable[[R], tuple[Problem, ...]]
    ) -> tuple[Problem, ...]:
        """Return the problems that `find` reports; it is not called if the same content had none.

        Raises:
            WorkEnded: it exceeded a limit of time or memory.
            WorkBusy: too much work is queued.
        """
        uid, fingerprint = resource.metadata.uid, fingerprint_of(resource)
        if self._valid.get(uid) == fingerprint:
            return ()
        problems = await offload.do(resource, find, resource)
        if not problems:
            self._valid.put(uid, fingerprint)
        return problems

    def forget(self, uid: str) -> None:
        """Forget a deleted object."""
        self._valid.forget(uid)


def alone(function: Callable[..., T], args: tuple[object, ...]) -> tuple[T]:
    """Return the result of the function as a tuple of one."""
    return (function(*args),)


def in_pieces(
    function: Callable[..., Iterable[object]], args: tuple[object, ...]
) -> list[list[bytes]]:
    """Pickle the items of the function, in pieces that unpickle without blocking the event loop."""
    pieces: list[list[bytes]] = []
    bytes_left = 0
    for item in function(*args):
        text = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        if bytes_left <= 0:
            pieces.append([])
            bytes_left = _PIECE_BYTES
        pieces[-1].append(text)
        bytes_left -= len(text)
    return pieces
