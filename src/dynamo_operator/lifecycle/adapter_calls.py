"""Which calls the endpoints of a LoRA need now, from what is wanted and what is remembered of each.

The hard part is to call neither too often nor too little: a loaded adapter is not loaded again, also not after
a restart of the operator; a failed call waits for its own time, whatever happens to other endpoints; and a new
address of the weights takes an adapter from a part of the endpoints only, until they serve the new ones.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

FIRST_DELAY_SECONDS = 5.0
LONGEST_DELAY_SECONDS = 300.0
CHECK_SECONDS = 300.0
"""How often a loaded adapter is looked for. Source, of all of these: specification `beyond` F9."""

_JITTER = 0.2


class Verb(StrEnum):
    """What a worker can be asked."""

    LOAD = "load"
    UNLOAD = "unload"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a worker. `uri` is for a load only, `name` for all but a list."""

    verb: Verb
    name: str = ""
    uri: str = ""


class Ending(StrEnum):
    """How a call ended. UNABLE: the worker has no adapter API."""

    DONE = "done"
    UNABLE = "unable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call. `loaded` is for a list; None means: the worker did not say."""

    ending: Ending
    message: str = ""
    loaded: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Adapter:
    """What shall be loaded."""

    name: str
    uri: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One pod that serves the base model, and what is remembered of it.

    `is_callable` is whether the pod is ready and stays. `leftovers` are names that are still to be unloaded,
    `is_reloading` says that the adapter was taken away to be loaded from elsewhere. `checked_at` is when the
    worker last told that it has the adapter; None means: not since the operator started, or the pod was ready.
    """

    address: str
    pod_uid: str
    is_callable: bool
    loaded: Adapter | None = None
    leftovers: tuple[str, ...] = ()
    is_reloading: bool = False
    is_unable: bool = False
    failures: int = 0
    attempted_at: datetime | None = None
    checked_at: datetime | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """Calls to make at one endpoint now, one after the other, up to the first that fails."""

    endpoint: Endpoint
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, and when to look again. None means: nothing will come due by time alone."""

    work: tuple[Work, ...]
    again_seconds: float | None


def plan(wanted: Adapter, endpoints: Iterable[Endpoint], *, now: datetime) -> Plan:
    """The calls that are due at each endpoint that can be called."""
    found = list(endpoints)
    budget = max(1, len(found) // 4) - sum(each.is_reloading for each in found)
    work: list[Work] = []
    waits: list[float] = []
    for each in found:
        if not each.is_callable:
            continue  # its pod becoming ready wakes us
        calls = needed(wanted, each)
        if (wait := _wait(each, calls, now)) > 0:
            waits.append(wait)
            continue
        if calls and calls[0].verb is Verb.UNLOAD and each.loaded is not None:
            if not _is_current(wanted, each):
                if budget < 1:
                    continue  # the end of a reload elsewhere wakes us
                budget -= 1
        work.append(Work(each, calls or (Call(Verb.LIST),)))
    return Plan(tuple(work), min(waits, default=None))


def needed(wanted: Adapter, endpoint: Endpoint) -> tuple[Call, ...]:
    """The calls that bring an endpoint from what it has to what is wanted; none if it has that."""
    leftovers = tuple(Call(Verb.UNLOAD, name) for name in endpoint.leftovers if name != wanted.name)
    load, had = Call(Verb.LOAD, wanted.name, wanted.uri), endpoint.loaded
    if had == wanted:
        return leftovers
    if had is not None and had.name != wanted.name:
        # Weights of an earlier life of that name would be taken for the wanted ones.
        first = (Call(Verb.UNLOAD, wanted.name),) if wanted.name in endpoint.leftovers else ()
        return (*first, load, Call(Verb.UNLOAD, had.name), *leftovers)
    if had is not None or wanted.name in endpoint.leftovers:
        return (Call(Verb.UNLOAD, wanted.name), load, *leftovers)
    return (load, *leftovers)


def after(endpoint: Endpoint, call: Call, reply: Reply, *, now: datetime) -> Endpoint:
    """What is to be remembered of the endpoint once that call has ended."""
    if reply.ending is not Ending.DONE:
        return _failed(endpoint, call, reply, now)
    well = replace(endpoint, failures=0, attempted_at=now, is_unable=False, message="")
    had = endpoint.loaded
    if call.verb is Verb.LOAD:
        old = (had.name,) if had is not None and had.name != call.name else ()
        others = tuple(name for name in endpoint.leftovers if name != call.name)
        loaded = Adapter(call.name, call.uri)
        left = tuple(dict.fromkeys((*others, *old)))
        return replace(well, loaded=loaded, leftovers=left, is_reloading=False, checked_at=now)
    if call.verb is Verb.UNLOAD:
        left = tuple(name for name in endpoint.leftovers if name != call.name)
        if had is None or had.name != call.name:
            return replace(well, leftovers=left)
        return replace(well, loaded=None, leftovers=left, is_reloading=True, checked_at=None)
    if had is not None and reply.loaded is not None and had.name not in reply.loaded:
        return replace(well, loaded=None, checked_at=now, message="the worker has lost the adapter")
    return replace(well, attempted_at=endpoint.attempted_at, checked_at=now)


def _failed(endpoint: Endpoint, call: Call, reply: Reply, now: datetime) -> Endpoint:
    is_unable = reply.ending is Ending.UNABLE
    if call.verb is Verb.LIST:
        # What a worker cannot list it may still have; what does not answer is asked again at the next check.
        return replace(endpoint, checked_at=now)
    return replace(
        endpoint,
        failures=endpoint.failures + 1,
        attempted_at=now,
        is_unable=is_unable,
        message=reply.message,
    )


def _is_current(wanted: Adapter, endpoint: Endpoint) -> bool:
    """Whether the adapter is served from the wanted address, so that a call interrupts nothing."""
    return endpoint.loaded is not None and (
        endpoint.loaded == wanted or endpoint.loaded.name != wanted.name
    )


def _wait(endpoint: Endpoint, calls: tuple[Call, ...], now: datetime) -> float:
    """Seconds until the endpoint may be called; 0 or less means: now."""
    if not calls:
        since, delay = endpoint.checked_at, CHECK_SECONDS
    elif endpoint.failures:
        since, delay = endpoint.attempted_at, retry_seconds(endpoint)
    else:
        return 0.0
    return (since + timedelta(seconds=delay) - now).total_seconds() if since else 0.0


def retry_seconds(endpoint: Endpoint) -> float:
    """How long an endpoint that failed is left alone.

    The jitter follows from the pod and the count, so that a restart of the operator finds the same delay.
    """
    if not endpoint.failures:
        return 0.0
    doubled = FIRST_DELAY_SECONDS * 2.0 ** min(endpoint.failures - 1, 16)
    delay = LONGEST_DELAY_SECONDS if endpoint.is_unable else min(doubled, LONGEST_DELAY_SECONDS)
    digest = hashlib.sha256(f"{endpoint.pod_uid}/{endpoint.failures}".encode()).digest()
    return delay * (1 - _JITTER * digest[0] / 255)
