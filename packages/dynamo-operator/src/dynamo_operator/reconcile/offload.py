"""Pure work on objects: at once on small ones, in a process that can be ended on large ones.

Source of the threshold: validating and rendering takes up to 0.25 ms for each KiB (measured with variables,
volumes, labels and arguments), so that below it the event loop is not held for 50 ms.
"""

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

import structlog

from dynamo_graphs.validation.size import weight_bytes
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
AGAIN_SECONDS: Final = 1800.0
"""How long work that was ended is left alone, unless the object changes."""
_PIECE_BYTES: Final = 64 * 1024
_REMEMBERED: Final = 4096

_log = structlog.get_logger()


class Offload:
    """Does what may be expensive. Without `workers`, as in tests and offline, everything is done at once."""

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
        """What `function(*args)` gives, for that object; `more_bytes` is what else it reads.

        Raises:
            WorkEnded: it took too much time or memory.
            WorkBusy: there is too much such work now.
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
        """What `function(*args)` returns; else as `do`."""
        results: tuple[T, ...] = await self.do(owner, alone, function, args, more_bytes=more_bytes)
        return results[0]

    async def reconciled(
        self,
        resource: R,
        reconcile: Callable[[R], Awaitable[Result]],
        report: Callable[[R, str], Awaitable[None]],
    ) -> Result:
        """The outcome of a reconcile, unless its work was ended, now or when the object was the same before.

        `report` writes that to the object; everything that runs for it stays as it is.
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
            self._ended.put(uid, (fingerprint_of(resource), now + AGAIN_SECONDS))
            await report(resource, f"Not processed: {error}. Running pods keep running.")
            return Result(AGAIN_SECONDS)


def alone(function: Callable[..., T], args: tuple[object, ...]) -> tuple[T]:
    """What the function returns, as the one thing that is given."""
    return (function(*args),)


def in_pieces(
    function: Callable[..., Iterable[object]], args: tuple[object, ...]
) -> list[list[bytes]]:
    """What the function gives, pickled one by one, in pieces that are read without a long pause."""
    pieces: list[list[bytes]] = []
    left = 0
    for item in function(*args):
        text = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        if left <= 0:
            pieces.append([])
            left = _PIECE_BYTES
        pieces[-1].append(text)
        left -= len(text)
    return pieces
