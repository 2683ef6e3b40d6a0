"""Hold the marker Lease of our namespace while one of our replicas runs.

All replicas renew the same Lease, so a replica that stops must not delete it while others run: each has an
annotation of its own on it, and the one that finds no other deletes the Lease. A replica that cannot renew
the Lease stops writing before it expires, because then another operator begins to act. It continues once the
Lease is renewed.
"""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

import structlog

from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.errors import Conflict, NotFound, OperatorError
from kube_runtime.kind import Key, Object
from kube_runtime.times import microtime, seconds_between
from kube_runtime.types.coordination import Lease

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MarkerTerms:
    """Timing of the marker Lease.

    Raises:
        ValueError: the Lease would expire before it is renewed.
    """

    lease_seconds: float = 30.0
    renew_seconds: float = 10.0
    release_seconds: float = 1.5

    def __post_init__(self) -> None:
        lease, renew = f"{self.lease_seconds:g}s", f"{self.renew_seconds:g}s"
        if self.lease_seconds <= 0:
            raise ValueError(f"lease duration must be greater than zero, got {lease}")
        if self.renew_seconds <= 0:
            raise ValueError(f"renew interval must be greater than zero, got {renew}")
        if self.renew_seconds >= self.lease_seconds:
            raise ValueError(f"renew interval ({renew}) must be less than lease duration ({lease})")

    @property
    def write_seconds(self) -> float:
        """How long writes are allowed after a renewal was sent.

        The rest of the Lease is for requests that are still running: half a renew interval, or half of what
        is left of the Lease after one.
        """
        spare = self.lease_seconds - self.renew_seconds
        return self.lease_seconds - min(self.renew_seconds, spare) / 2


class NamespaceLease:
    """The marker Lease of a namespace, as one replica holds it.

    `holder` is the same for all replicas of an installation; `replicas` is the prefix of their annotations.
    """

    def __init__(
        self,
        client: Client,
        key: Key,
        *,
        holder: str,
        replicas: str,
        terms: MarkerTerms | None = None,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._key = key
        self._holder = holder
        self._prefix = f"{replicas}/"
        self._own = self._prefix + uuid.uuid4().hex
        self._terms = terms or MarkerTerms()
        self._wall_clock = wall_clock
        self._renewed_at = float("-inf")
        self._stale: tuple[str, ...] = ()
        self._is_ours = True
        """Whether the last log line says that the namespace is ours."""
        self._regained: list[Callable[[str], None]] = []

    def holds_lease(self) -> bool:
        """Whether writes are allowed: false once the Lease is about to expire."""
        return loop_time() < self._renewed_at + self._terms.write_seconds

    def on_regained(self, handler: Callable[[str], None]) -> None:
        """Call `handler` with the namespace when the Lease is renewed after it was about to expire."""
        self._regained.append(handler)

    async def claim(self) -> None:
        """Mark the namespace. Call it before anything is written there.

        Raises:
            OperatorError: the Lease could not be written.
        """
        await self._write()
        _log.info("namespace marked as ours", lease=str(self._key), holderIdentity=self._holder)

    async def run(self) -> NoReturn:
        """Renew the Lease until cancelled.

        If renewals fail for too long, `holds_lease` is false until one succeeds.
        """
        due_at = loop_time()
        while True:
            due_at = max(loop_time(), due_at + self._terms.renew_seconds)
            await self._wait_until(due_at)
            try:
                async with asyncio.timeout(self._terms.renew_seconds / 2):
                    await self._write()
            except (OperatorError, TimeoutError) as error:
                text = str(error) or "no answer in time"
                _log.warning("marker lease not renewed", lease=str(self._key), error=text)
            else:
                if not self._is_ours:
                    self._is_ours = True
                    _log.info("namespace counts as ours again", lease=str(self._key))
                    for handler in self._regained:
                        handler(self._key.namespace)

    async def _wait_until(self, due_at: float) -> None:
        """Wait, and log when the Lease is about to expire."""
        lapses_at = self._renewed_at + self._terms.write_seconds
        if self._is_ours and lapses_at <= due_at:
            await asyncio.sleep(max(0.0, lapses_at - loop_time()))
            self._is_ours = False
            _log.error(
                "namespace does not count as ours any more: nothing is written until the marker lease is "
                "renewed",
                lease=str(self._key),
            )
        await asyncio.sleep(due_at - loop_time())

    async def release(self) -> None:
        """Delete the Lease, unless another replica runs. Call it after `run`.

        Best effort: if it fails, the Lease expires.
        """
        try:
            async with asyncio.timeout(self._terms.release_seconds):
                await self._leave()
        except NotFound:
            return
        except (OperatorError, TimeoutError) as error:
            text = str(error) or "no answer in time"
            _log.warning("marker lease not released", lease=str(self._key), error=text)

    async def _leave(self) -> None:
        patch: Object = {"metadata": {"annotations": {self._own: None}}}
        lease = await self._client.merge_patch(Lease, self._key, patch)
        if lease.spec.holder_identity != self._holder or self._others(lease, are_fresh=True):
            _log.info("marker lease left to another replica", lease=str(self._key))
            return
        uid, version = lease.metadata.uid, lease.metadata.resource_version
        try:
            await self._client.delete(Lease, self._key, uid=uid, resource_version=version)
        except Conflict:
            return  # another replica has started

    async def _write(self) -> None:
        """Renew or create the Lease; it counts from the moment of the request."""
        sent_at = loop_time()
        now = microtime(self._wall_clock())
        spec: Object = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": int(self._terms.lease_seconds) or 1,
            "renewTime": now,
        }
        annotations = {self._own: now, **dict.fromkeys(self._stale)}
        patch: Object = {"metadata": {"annotations": annotations}, "spec": spec}
        try:
            lease = await self._client.merge_patch(Lease, self._key, patch)
        except NotFound:
            lease = await self._create(now, spec)
        self._renewed_at = sent_at
        self._stale = self._others(lease, are_fresh=False)

    async def _create(self, now: str, spec: Object) -> Lease:
        metadata = {**self._key._asdict(), "annotations": {self._own: now}}
        body = Lease.KIND.manifest(metadata, spec={"acquireTime": now, **spec})
        return await self._client.create(Lease, body)

    def _others(self, lease: Lease, *, are_fresh: bool) -> tuple[str, ...]:
        """The annotations of other replicas: of running ones, or of killed ones."""
        now = self._wall_clock()
        annotations: list[str] = []
        for name, renewed in lease.metadata.annotations.items():
            if name.startswith(self._prefix) and name != self._own:
                age = seconds_between(renewed, now)
                is_fresh = age is not None and abs(age) <= self._terms.lease_seconds
                if is_fresh is are_fresh:
                    annotations.append(name)
        return tuple(annotations)
