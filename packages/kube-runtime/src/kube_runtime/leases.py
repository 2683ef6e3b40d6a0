"""Leases: leader election, the marker Lease of our namespace, and the namespaces of other operators."""

import asyncio
import random
import socket
import uuid
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

import structlog

from kube_runtime.cache.store import Change, Store
from kube_runtime.client.client import Client
from kube_runtime.errors import Conflict, NotFound, OperatorError
from kube_runtime.times import loop_time, microtime, seconds_between, wall_clock
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Key, Metadata, Object

_log = structlog.get_logger(__name__)

CONFIRM_SECONDS = 2.0
"""Delay after an expired Lease could not be read."""

_MARKER_BYTES = 64 * 1024
"""Of a marker Lease as JSON, which any user may write."""


class NamespaceExcluded(OperatorError):
    """Another operator owns the namespace; nothing was written."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """The Lease of a namespace as last seen, and when it expires, on the event loop's clock."""

    lease: Lease
    until: float


# A Lease expires without an event. Clocks of two machines never agree, so its duration counts on
# our own monotonic clock from the moment when we see a renewal; the times in the Lease count only
# if it existed before the watch. As the watch may be late, an expired Lease is read once more. So
# there is one timer, for the next expiry, and no request while Leases are renewed.
@dataclass(slots=True, eq=False)
class Exclusions:
    """The namespaces with a valid marker Lease, of which `store` has all.

    `on_end` is called with each namespace that is no longer excluded.
    """

    client: Client
    store: Store[Lease]
    wall_clock: Callable[[], datetime] = wall_clock
    on_end: Callable[[str], None] = lambda _: None
    _marks: dict[str, _Mark] = field(default_factory=dict[str, _Mark], init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self.store.subscribe(self._on_change)

    @property
    def namespaces(self) -> Mapping[str, object]:
        """The excluded namespaces now: another operator owns them, so that this one must not act there."""
        return self._marks

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
        if change.new is not None:
            self._mark(change.new, self._seconds_left(change.old, change.new))
        elif change.old is not None:
            self._mark(change.old, 0.0)

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
        self._mark(present, left)

    async def _read(self, key: Key) -> Lease | None:
        """Read a Lease by a list of one, which needs no more permission than the watch."""
        name = f"metadata.name={key.name}"
        pages = self.client.pages(Lease, namespace=key.namespace, fields=name, most_bytes=_MARKER_BYTES)
        async with aclosing(pages):
            async for page in pages:
                leases = (Lease(Metadata(key.name, key.namespace), lease.spec) for lease in page.items)
                return next(leases, None)
        return None

    def _seconds_left(self, before: Lease | None, lease: Lease) -> float:
        """Seconds until a Lease expires that was `before` when it was last seen."""
        duration = lease.spec.lease_duration_seconds or 0
        if before is not None and _is_renewed(before, lease):
            return duration
        mark = self._marks.get(lease.metadata.namespace)
        if mark is not None and mark.lease.spec == lease.spec:
            return mark.until - loop_time()
        age = seconds_between(lease.spec.renew_time, self.wall_clock())
        return 0.0 if age is None else min(duration - age, duration)

    def _mark(self, lease: Lease, left: float) -> None:
        """Exclude the namespace of a Lease for the seconds that are left; include it if there are none."""
        namespace = lease.metadata.namespace
        before = self._marks.pop(namespace, None)
        self._changed.set()
        if left > 0:
            self._marks[namespace] = _Mark(lease, loop_time() + left)
            if before is None:
                _log.info(
                    "Excluding namespace from cluster-wide operator processing",
                    namespace=namespace,
                    holderIdentity=lease.spec.holder_identity,
                )
        elif before is not None:
            _log.info("Resuming namespace processing in cluster-wide operator", namespace=namespace)
            self.on_end(namespace)


def _is_renewed(before: Lease, lease: Lease) -> bool:
    earlier, later = before.spec.renew_time, lease.spec.renew_time
    return bool(earlier and later) and earlier != later  # the clock of its holder may be set back


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


# All replicas renew the same Lease, so a replica that stops must not delete it while others run:
# each has an annotation of its own on it, and the one that finds no other deletes the Lease. A
# replica that cannot renew the Lease stops writing before it expires, because then another operator
# begins to act. It continues once the Lease is renewed.
@dataclass(slots=True, eq=False)
class NamespaceLease:
    """The marker Lease of a namespace, as one replica holds it.

    `holder` is the same for all replicas of an installation; `replicas` is the prefix of their annotations.
    `on_regained` is called with the namespace when the Lease is renewed after it was about to expire.
    """

    client: Client
    key: Key
    holder: str
    replicas: str
    terms: MarkerTerms = field(default_factory=MarkerTerms)
    wall_clock: Callable[[], datetime] = wall_clock
    on_regained: Callable[[str], None] = lambda _: None
    _own: str = field(init=False)
    _renewed_at: float = field(default=float("-inf"), init=False)
    _stale: tuple[str, ...] = field(default=(), init=False)
    _seen: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float], init=False)
    """The newest renewals of other replicas, by annotation and value, and since when, on our clock."""
    _is_ours: bool = field(default=True, init=False)
    """Whether the last log line says that the namespace is ours."""

    def __post_init__(self) -> None:
        self._own = f"{self.replicas}/{uuid.uuid4().hex}"

    def holds_lease(self) -> bool:
        """Whether writes are allowed: false once the Lease is about to expire."""
        return loop_time() < self._renewed_at + self.terms.write_seconds

    async def claim(self) -> None:
        """Mark the namespace. Call it before anything is written there.

        Raises:
            OperatorError: the Lease could not be written.
        """
        await self._write()
        _log.info("namespace marked as ours", lease=str(self.key), holderIdentity=self.holder)

    async def run(self) -> NoReturn:
        """Renew the Lease until cancelled.

        If renewals fail for too long, `holds_lease` is false until one succeeds.
        """
        due_at = loop_time()
        while True:
            due_at = max(loop_time(), due_at + self.terms.renew_seconds)
            await self._wait_until(due_at)
            try:
                async with asyncio.timeout(self.terms.renew_seconds / 2):
                    await self._write()
            except (OperatorError, TimeoutError) as error:
                _log.warning("marker lease not renewed", lease=str(self.key), error=_text(error))
            else:
                if not self._is_ours:
                    self._is_ours = True
                    _log.info("namespace counts as ours again", lease=str(self.key))
                    self.on_regained(self.key.namespace)

    async def _wait_until(self, due_at: float) -> None:
        """Wait, and log when the Lease is about to expire."""
        lapses_at = self._renewed_at + self.terms.write_seconds
        if self._is_ours and lapses_at <= due_at:
            await asyncio.sleep(max(0.0, lapses_at - loop_time()))
            self._is_ours = False
            _log.error(
                "namespace does not count as ours any more: nothing is written until the marker lease is "
                "renewed",
                lease=str(self.key),
            )
        await asyncio.sleep(due_at - loop_time())

    async def release(self) -> None:
        """Delete the Lease, unless another replica runs. Call it after `run`.

        Best effort: if it fails, the Lease expires.
        """
        try:
            async with asyncio.timeout(self.terms.release_seconds):
                await self._leave()
        except NotFound:
            return
        except (OperatorError, TimeoutError) as error:
            _log.warning("marker lease not released", lease=str(self.key), error=_text(error))

    async def _leave(self) -> None:
        patch: Object = {"metadata": {"annotations": {self._own: None}}}
        lease = await self.client.merge_patch(Lease, self.key, patch)
        if lease.spec.holder_identity != self.holder or self._others(lease, are_fresh=True):
            _log.info("marker lease left to another replica", lease=str(self.key))
            return
        uid, version = lease.metadata.uid, lease.metadata.resource_version
        try:
            await self.client.delete(Lease, self.key, uid=uid, resource_version=version)
        except Conflict:
            return  # another replica has started

    async def _write(self) -> None:
        sent_at = loop_time()
        now = microtime(self.wall_clock())
        spec: Object = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": int(self.terms.lease_seconds) or 1,
            "renewTime": now,
        }
        annotations = {self._own: now, **dict.fromkeys(self._stale)}
        patch: Object = {"metadata": {"annotations": annotations}, "spec": spec}
        try:
            lease = await self.client.merge_patch(Lease, self.key, patch)
        except NotFound:
            metadata = {**self.key._asdict(), "annotations": {self._own: now}}
            body = Lease.KIND.manifest(metadata, spec={"acquireTime": now, **spec})
            lease = await self.client.create(Lease, body)
        self._renewed_at = sent_at
        self._stale = self._others(lease, are_fresh=False)

    def _others(self, lease: Lease, *, are_fresh: bool) -> tuple[str, ...]:
        now, before = loop_time(), self._seen
        self._seen = {
            (name, renewed): before.get((name, renewed), now)
            for name, renewed in lease.metadata.annotations.items()
            if name.startswith(f"{self.replicas}/") and name != self._own
        }
        fresh_since = now - self.terms.lease_seconds
        return tuple(name for (name, _), since in self._seen.items() if (since >= fresh_since) is are_fresh)


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


# Clocks of two machines never agree, so the times in the Lease are for people only. A candidate
# takes over once it has seen no change of the Lease for its duration, on its own monotonic clock.
# The holder counts from before it *sent* its last successful renewal, and gives up well before any
# candidate takes over. The resource version decides a race.
@dataclass(slots=True, eq=False)
class Election:
    """One candidate for one Lease. Create a new one for each run.

    `mark` is an annotation, as name and value, that all candidates of one installation write on the Lease.
    """

    client: Client
    key: Key
    identity: str
    terms: Terms = field(default_factory=Terms)
    mark: tuple[str, str] | None = None
    wall_clock: Callable[[], datetime] = wall_clock
    rival: str = field(default="", init=False)
    """The mark of another installation that holds the Lease, "" if none does."""
    elected: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set once this candidate has been elected."""
    _seen: Lease | None = field(default=None, init=False)
    _seen_at: float = field(default=0.0, init=False)
    _deleted: Lease | None = field(default=None, init=False)  # the last state of one that is gone
    _leader: str | None = field(default=None, init=False)  # the last leader that was logged
    _renewed_at: float = field(default=0.0, init=False)
    _may_hold: bool = field(default=False, init=False)
    _has_ended: bool = field(default=False, init=False)

    @property
    def leads(self) -> bool:
        """Whether this candidate leads, and no other one can have taken over."""
        is_in_time = loop_time() < self._renewed_at + self.terms.deadline_seconds
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
        _log.info("elected", lease=str(self.key), identity=self.identity)
        try:
            while True:
                left = self._renewed_at + self.terms.deadline_seconds - loop_time()
                await asyncio.sleep(min(self.terms.retry_seconds, left))
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
            async with asyncio.timeout(self.terms.release_seconds):
                lease = await self.client.get(Lease, self.key)
                if lease.spec.holder_identity == self.identity:
                    now = microtime(self.wall_clock())
                    released = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
                    await self.client.merge_patch(Lease, self.key, _guarded(lease, released))
        except (OperatorError, TimeoutError) as error:
            _log.warning("lease not released", lease=str(self.key), error=_text(error))

    async def _campaign(self) -> None:
        logged: set[str] = set()
        while True:
            try:
                async with asyncio.timeout(self.terms.deadline_seconds / 2):
                    if await self._try_to_take():
                        return
            except (OperatorError, TimeoutError) as error:
                if (text := _text(error)) not in logged:  # once per outage
                    _log.warning("lease attempt failed, retrying", lease=str(self.key), error=text)
                    logged.add(text)
            spread = 1 + 0.2 * random.random()  # noqa: S311  # spreads load, guards nothing
            await asyncio.sleep(self.terms.retry_seconds * spread)

    async def _try_to_take(self) -> bool:
        """Take the Lease if it is free or has expired. False: another candidate holds it, or was faster."""
        await self._read()
        last = self._seen or self._deleted
        if last and last.spec.holder_identity not in (None, "", self.identity):
            duration = last.spec.lease_duration_seconds or self.terms.lease_seconds
            if loop_time() < self._seen_at + duration:
                holder = last.spec.holder_identity
                if holder != self._leader:
                    self._leader = holder
                    _log.info("standby: another replica leads", lease=str(self.key), holderIdentity=holder)
                return False
        try:
            await self._write()
        except Conflict:
            return False
        return True

    async def _renew(self) -> None:
        """Renew once. Errors are tolerated until the deadline, another holder is not."""
        deadline = self._renewed_at + self.terms.deadline_seconds
        try:
            async with asyncio.timeout_at(min(deadline, loop_time() + self.terms.deadline_seconds / 2)):
                await self._write_or_reread()
        except LeadershipLost:
            raise
        except (OperatorError, TimeoutError) as error:
            _log.warning("lease not renewed", lease=str(self.key), error=_text(error))
        if loop_time() >= self._renewed_at + self.terms.deadline_seconds:
            seconds = self.terms.deadline_seconds
            raise LeadershipLost(f"lease {self.key}: not renewed for {seconds:g} s")

    async def _write_or_reread(self) -> None:
        try:
            await self._write()
        except (Conflict, NotFound):
            # A renewal of ours without a response, another change of the Lease, its deletion, or another
            # holder.
            await self._read()
            if self._seen and self._seen.spec.holder_identity != self.identity:
                holder = self._seen.spec.holder_identity or "nobody"
                raise LeadershipLost(f"lease {self.key}: now held by {holder}") from None
            await self._write()

    async def _read(self) -> None:
        try:
            self._observe(await self.client.get(Lease, self.key))
        except NotFound:
            self._observe(None)

    def _observe(self, lease: Lease | None) -> None:
        if (lease and lease.spec) != (self._seen and self._seen.spec):
            self._seen_at = loop_time()
            self._deleted = self._seen
        self._seen = lease
        self._detect_rival(lease)

    def _detect_rival(self, lease: Lease | None) -> None:
        """Detect that another installation uses the same Lease; this one would look like its standby."""
        holder = lease.spec.holder_identity if lease else ""
        rival = ""
        if self.mark and lease and holder and holder != self.identity:
            name, own = self.mark
            theirs = lease.metadata.annotations.get(name, "")
            rival = theirs if theirs != own else ""
        if rival and rival != self.rival:
            _log.error(
                "another installation of the operator leads: this one does nothing until that is gone",
                lease=str(self.key),
                installation=rival,
                holderIdentity=holder,
            )
        self.rival = rival

    async def _write(self) -> None:
        sent_at = loop_time()
        self._may_hold = True
        before, now = self._seen.spec if self._seen else None, microtime(self.wall_clock())
        spec: Object = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.terms.lease_seconds,
            "renewTime": now,
        }
        if before is None or before.holder_identity != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = before.lease_transitions + 1 if before else 0
        if self._seen:
            patch = _guarded(self._seen, spec, self._annotations())
            lease = await self.client.merge_patch(Lease, self.key, patch)
        else:
            metadata = {**self.key._asdict(), **self._annotations()}
            lease = await self.client.create(Lease, Lease.KIND.manifest(metadata, spec=spec))
        self._observe(lease)
        self._renewed_at = sent_at

    def _annotations(self) -> Object:
        return {"annotations": dict([self.mark])} if self.mark else {}


def _guarded(seen: Lease, spec: Object, more: Object | None = None) -> Object:
    """A patch that conflicts if the Lease has changed since; `more` is more metadata."""
    version = {"resourceVersion": seen.metadata.resource_version}
    return {"metadata": {**version, **(more or {})}, "spec": spec}


def _text(error: Exception) -> str:
    return str(error) or "no answer in time"
