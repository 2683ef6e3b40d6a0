"""Track the namespaces that other operators own, by the marker Leases in them.

A Lease expires without an event. Clocks of two machines never agree, so its duration counts on our own
monotonic clock from the moment when we see a renewal; the times in the Lease count only if it existed before
the watch. As the watch may be late, an expired Lease is read once more. So there is one timer, for the next
expiry, and no request while Leases are renewed.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NoReturn

import structlog

from kube_runtime.cache.store import Change, Store
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.errors import OperatorError
from kube_runtime.kind import Key
from kube_runtime.times import seconds_between
from kube_runtime.types.coordination import Lease

_log = structlog.get_logger()

CONFIRM_SECONDS = 2.0
"""Delay after an expired Lease could not be read."""


class NamespaceExcluded(OperatorError):
    """Another operator owns the namespace; nothing was written."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """The Lease of a namespace as last seen, and when it expires, on the event loop's clock."""

    lease: Lease
    until: float


class Exclusions:
    """The namespaces with a valid marker Lease."""

    def __init__(
        self,
        client: Client,
        store: Store[Lease],
        *,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._wall_clock = wall_clock
        self._marks: dict[str, _Mark] = {}
        self._changed = asyncio.Event()
        self._ended: list[Callable[[str], None]] = []
        store.subscribe(self._on_change)

    def __iter__(self) -> Iterator[str]:
        """The names of the excluded namespaces."""
        return iter(tuple(self._marks))

    def __len__(self) -> int:
        return len(self._marks)

    def is_excluded(self, namespace: str) -> bool:
        """Whether another operator owns a namespace, so that this one must not act in it."""
        return namespace in self._marks

    def on_end(self, handler: Callable[[str], None]) -> None:
        """Call `handler` with each namespace that is no longer excluded."""
        self._ended.append(handler)

    async def run(self) -> NoReturn:
        """Include namespaces again when their Leases expire, until cancelled."""
        while True:
            self._changed.clear()
            runs_out_at = min((mark.until for mark in self._marks.values()), default=None)
            try:
                async with asyncio.timeout_at(runs_out_at):
                    await self._changed.wait()
            except TimeoutError:
                for namespace, mark in tuple(self._marks.items()):
                    # Timers may be a little early.
                    if mark.until <= max(loop_time(), runs_out_at or 0):
                        await self._confirm(namespace, mark)

    def _on_change(self, change: Change[Lease]) -> None:
        seen = change.new or change.old
        namespace = seen.metadata.namespace if seen else ""
        left = 0.0 if change.new is None else self._seconds_left(change.old, change.new)
        if change.new is not None and left > 0:
            self._mark(namespace, _Mark(change.new, loop_time() + left))
        else:
            self._unmark(namespace)

    async def _confirm(self, namespace: str, mark: _Mark) -> None:
        """Read an expired Lease: the watch may have missed a renewal."""
        left, present = 0.0, mark.lease
        try:
            lease = await self._read(mark.lease.key)
        except OperatorError as error:
            _log.warning("marker lease not read", lease=str(mark.lease.key), error=str(error))
            left = CONFIRM_SECONDS
        else:
            if lease is not None and _is_renewed(mark.lease, lease):
                left, present = self._seconds_left(mark.lease, lease), lease
        if self._marks.get(namespace) is not mark:
            return  # the watch delivered a change meanwhile
        if left > 0:
            self._mark(namespace, replace(mark, lease=present, until=loop_time() + left))
        else:
            self._unmark(namespace)

    async def _read(self, key: Key) -> Lease | None:
        """Read a Lease by a list of one, which needs no more permission than the watch."""
        pages = self._client.pages(
            Lease, namespace=key.namespace, fields=f"metadata.name={key.name}"
        )
        async with aclosing(pages):
            async for page in pages:
                return next(iter(page.items), None)
        return None

    def _seconds_left(self, before: Lease | None, lease: Lease) -> float:
        """Seconds until a Lease expires that was `before` when it was last seen."""
        duration = lease.spec.lease_duration_seconds or 0
        if before is not None and _is_renewed(before, lease):
            return duration
        mark = self._marks.get(lease.metadata.namespace)
        if mark is not None and mark.lease.spec == lease.spec:
            return mark.until - loop_time()
        age = seconds_between(lease.spec.renew_time, self._wall_clock())
        return 0.0 if age is None else min(duration - age, duration)

    def _mark(self, namespace: str, mark: _Mark) -> None:
        if namespace not in self._marks:
            _log.info(
                "Excluding namespace from cluster-wide operator processing",
                namespace=namespace,
                holderIdentity=mark.lease.spec.holder_identity,
            )
        self._marks[namespace] = mark
        self._changed.set()

    def _unmark(self, namespace: str) -> None:
        if self._marks.pop(namespace, None) is None:
            return
        _log.info("Resuming namespace processing in cluster-wide operator", namespace=namespace)
        self._changed.set()
        for handler in self._ended:
            handler(namespace)


def _is_renewed(before: Lease, lease: Lease) -> bool:
    """Whether `lease` has a later renew time."""
    earlier, later = before.spec.renew_time, lease.spec.renew_time
    return bool(earlier and later) and (later or "") > (earlier or "")
