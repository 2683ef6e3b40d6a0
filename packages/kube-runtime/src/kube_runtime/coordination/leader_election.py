"""Leader election by a Lease: at most one process reconciles at a time.

Clocks of two machines never agree, so the times in the Lease are for people only. A candidate takes over
once it has seen no change of the Lease for its duration, on its own monotonic clock. The holder counts from
before it *sent* its last successful renewal, and gives up well before any candidate takes over. The resource
version decides a race.
"""

import asyncio
import random
import socket
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
from kube_runtime.times import microtime
from kube_runtime.types.coordination import Lease, LeaseSpec

_log = structlog.get_logger()


class LeadershipLost(OperatorError):
    """Another process may lead from now on: exit at once. The identity must not be used again."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Timing of the election, with the defaults of client-go.

    The holder stops `deadline_seconds` after its last successful renewal; a candidate takes over
    `lease_seconds` after the last change that it has seen. The difference is for slow last requests of the
    old holder.
    """

    lease_seconds: int = 15
    deadline_seconds: float = 10.0
    retry_seconds: float = 2.0
    release_seconds: float = 1.5

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.deadline_seconds > self.retry_seconds > 0:
            raise ValueError("must be: lease duration > renew deadline > retry period > 0")


def identity() -> str:
    """A unique name for this process; a restart has another one."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Election:
    """One candidate for one Lease. Create a new one for each run.

    `mark` is an annotation, as name and value, that all candidates of one installation write on the Lease.
    """

    def __init__(
        self,
        client: Client,
        key: Key,
        *,
        identity: str,
        terms: Terms | None = None,
        mark: tuple[str, str] | None = None,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._key = key
        self._identity = identity
        self._terms = terms or Terms()
        self._mark = mark
        self._wall_clock = wall_clock
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._leader: str | None = None  # the last leader that was logged
        self._renewed_at = 0.0
        self._may_hold = False
        self._has_ended = False
        self.rival = ""
        """The mark of another installation that holds the Lease, "" if none does."""
        self.elected = asyncio.Event()
        """Set once this candidate has been elected."""

    @property
    def leads(self) -> bool:
        """Whether this candidate leads, and no other one can have taken over."""
        is_in_time = loop_time() < self._renewed_at + self._terms.deadline_seconds
        return self.elected.is_set() and is_in_time and not self._has_ended

    def holds_lease(self) -> bool:
        """Whether writes are allowed: false once another candidate may have been elected after this one."""
        return self.leads or not self.elected.is_set()

    async def run(self) -> NoReturn:
        """Wait to be elected, then renew the Lease until cancelled.

        Raises:
            LeadershipLost: another candidate holds the Lease, or no renewal succeeded before the deadline.
        """
        await self._campaign()
        self.elected.set()
        _log.info("elected", lease=str(self._key), identity=self._identity)
        try:
            while True:
                left = self._renewed_at + self._terms.deadline_seconds - loop_time()
                await asyncio.sleep(min(self._terms.retry_seconds, left))
                await self._renew()
        finally:
            self._has_ended = True

    async def release(self) -> None:
        """Release the Lease, so that another replica takes over at once. Call it once all work has ended.

        Best effort: if it fails, the Lease expires.
        """
        if not self._may_hold:
            return
        self._may_hold = False
        try:
            async with asyncio.timeout(self._terms.release_seconds):
                lease = await self._client.get(Lease, self._key)
                if lease.spec.holder_identity == self._identity:
                    now = microtime(self._wall_clock())
                    released = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
                    await self._client.merge_patch(Lease, self._key, _guarded(lease, released))
        except (OperatorError, TimeoutError) as error:
            _log.warning("lease not released", lease=str(self._key), error=_text(error))

    async def _campaign(self) -> None:
        logged: set[str] = set()
        while True:
            try:
                async with asyncio.timeout(self._terms.deadline_seconds / 2):
                    if await self._try_to_take():
                        return
            except (OperatorError, TimeoutError) as error:
                if (text := _text(error)) not in logged:  # once per outage
                    _log.warning("lease attempt failed, retrying", lease=str(self._key), error=text)
                    logged.add(text)
            spread = 1 + 0.2 * random.random()  # noqa: S311  # spreads load, guards nothing
            await asyncio.sleep(self._terms.retry_seconds * spread)

    async def _try_to_take(self) -> bool:
        """Take the Lease if it is free or has expired. False: another candidate holds it, or was faster."""
        await self._read()
        if self._seen and self._seen.spec.holder_identity not in (None, "", self._identity):
            duration = self._seen.spec.lease_duration_seconds or self._terms.lease_seconds
            if loop_time() < self._seen_at + duration:
                self._stand_by(self._seen.spec.holder_identity)
                return False
        try:
            await self._write()
        except Conflict:
            return False
        return True

    def _stand_by(self, holder: str | None) -> None:
        if holder != self._leader:
            self._leader = holder
            _log.info("standby: another replica leads", lease=str(self._key), holderIdentity=holder)

    async def _renew(self) -> None:
        """Renew once. Errors are tolerated until the deadline, another holder is not."""
        deadline = self._renewed_at + self._terms.deadline_seconds
        try:
            async with asyncio.timeout_at(
                min(deadline, loop_time() + self._terms.deadline_seconds / 2)
            ):
                await self._write_or_reread()
        except LeadershipLost:
            raise
        except (OperatorError, TimeoutError) as error:
            _log.warning("lease not renewed", lease=str(self._key), error=_text(error))
        if loop_time() >= self._renewed_at + self._terms.deadline_seconds:
            seconds = self._terms.deadline_seconds
            raise LeadershipLost(f"lease {self._key}: not renewed for {seconds:g} s")

    async def _write_or_reread(self) -> None:
        try:
            await self._write()
        except (Conflict, NotFound):
            # A renewal of ours without a response, another change of the Lease, its deletion, or another
            # holder.
            await self._read()
            if self._seen and self._seen.spec.holder_identity != self._identity:
                holder = self._seen.spec.holder_identity or "nobody"
                raise LeadershipLost(f"lease {self._key}: now held by {holder}") from None
            await self._write()

    async def _read(self) -> None:
        try:
            self._observe(await self._client.get(Lease, self._key))
        except NotFound:
            self._observe(None)

    def _observe(self, lease: Lease | None) -> None:
        if lease is None or self._seen is None or lease.spec != self._seen.spec:
            self._seen_at = loop_time()
        self._seen = lease
        self._detect_rival(lease)

    def _detect_rival(self, lease: Lease | None) -> None:
        """Detect that another installation uses the same Lease; this one would look like its standby."""
        holder = lease.spec.holder_identity if lease else ""
        rival = ""
        if self._mark and lease and holder and holder != self._identity:
            name, own = self._mark
            theirs = lease.metadata.annotations.get(name, "")
            rival = theirs if theirs != own else ""
        if rival and rival != self.rival:
            _log.error(
                "another installation of the operator leads: this one does nothing until that is gone",
                lease=str(self._key),
                installation=rival,
                holderIdentity=holder,
            )
        self.rival = rival

    async def _write(self) -> None:
        """Take or renew the Lease, if it is still as last seen."""
        sent_at = loop_time()
        self._may_hold = True
        spec = self._desired_spec(self._seen.spec if self._seen else None)
        if self._seen:
            patch = _guarded(self._seen, spec, self._annotations())
            lease = await self._client.merge_patch(Lease, self._key, patch)
        else:
            metadata = {**self._key._asdict(), **self._annotations()}
            lease = await self._client.create(Lease, Lease.KIND.manifest(metadata, spec=spec))
        self._observe(lease)
        self._renewed_at = sent_at

    def _annotations(self) -> Object:
        """The metadata with the mark of this installation."""
        return {"annotations": dict([self._mark])} if self._mark else {}

    def _desired_spec(self, before: LeaseSpec | None) -> Object:
        now = microtime(self._wall_clock())
        spec: Object = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._terms.lease_seconds,
            "renewTime": now,
        }
        if before is None or before.holder_identity != self._identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = before.lease_transitions + 1 if before else 0
        return spec


def _guarded(seen: Lease, spec: Object, more: Object | None = None) -> Object:
    """A patch that conflicts if the Lease has changed since; `more` is more metadata."""
    version = {"resourceVersion": seen.metadata.resource_version}
    return {"metadata": {**version, **(more or {})}, "spec": spec}


def _text(error: Exception) -> str:
    return str(error) or "no answer in time"
