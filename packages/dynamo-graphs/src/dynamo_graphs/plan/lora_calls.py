"""Which calls the endpoints of a LoRA need now, from the desired and the recorded state of each.

A loaded LoRA is not loaded again, not even after a restart of the operator. A failed call waits for its own
backoff, whatever happens to other endpoints. A new address of the weights takes a LoRA from a part of the
endpoints only: while those do not serve the new weights, perhaps because there are none, the others keep
serving the old ones. The operator may be killed between a call and the record that it was made; so the
record of what a call may do comes first (`pending`).
"""

import hashlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

FIRST_DELAY_SECONDS = 5.0
LONGEST_DELAY_SECONDS = 300.0
CHECK_SECONDS = 300.0
"""How often a loaded adapter is looked for."""

GUIDE_DELAY_SECONDS = 30.0
"""How often an endpoint is retried that has not failed for long. Source: the guide to DynamoModels."""

_SHORT_FAILURES = 14
"""So many failures take more than five minutes, in which the guide says to wait."""

AT_ONCE = 20
"""Calls at the same time."""

_JITTER = 0.2


class LoraVerb(StrEnum):
    """What a worker can be asked."""

    LOAD = "load"
    UNLOAD = "unload"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a worker. `uri` is for a load only, `name` for all but a list."""

    verb: LoraVerb
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
class Lora:
    """What shall be loaded."""

    name: str
    uri: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One pod that serves the base model, and what is remembered of it.

    `is_callable` is whether the pod is ready and stays. `leftovers` are names that are still to be unloaded.
    `tried` is what the worker may have, because a load or an unload of it was not seen to succeed.
    `is_reloading` says that the adapter was taken away to be loaded from elsewhere. `checked_at` is when the
    worker last listed its LoRAs; None means: not since the operator started, or the pod came back.
    `graph` is that of the pod, "" without one. `is_prefill` is whether the pod only reads prompts. `restarts`
    counts those of its containers; None means: the pod is not known. `is_doubted` says that there was one
    since the adapter was loaded, and that the worker has not reported yet whether it has it.
    """

    address: str
    pod_uid: str
    is_callable: bool
    pod_name: str = ""
    loaded: Lora | None = None
    tried: Lora | None = None
    leftovers: tuple[str, ...] = ()
    is_reloading: bool = False
    is_unable: bool = False
    failures: int = 0
    attempted_at: datetime | None = None
    checked_at: datetime | None = None
    message: str = ""
    graph: str = ""
    is_prefill: bool = False
    restarts: int | None = None
    is_doubted: bool = False

    @property
    def place(self) -> "Place":
        """What identifies the endpoint."""
        return self.pod_uid, self.address

    @property
    def names(self) -> tuple[str, ...]:
        """Every adapter that the worker has, or may have, of this model."""
        names = (*(lora.name for lora in (self.loaded, self.tried) if lora), *self.leftovers)
        return tuple(dict.fromkeys(names))


Place = tuple[str, str]
"""A pod's uid, and the base URL of one of its addresses."""


@dataclass(frozen=True, slots=True)
class Work:
    """Calls to make at one endpoint now, one after the other, up to the first that fails."""

    endpoint: Endpoint
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What to do now, and when to look again. None means: nothing will come due by time alone."""

    work: tuple[Work, ...]
    requeue_after_seconds: float | None


def plan(
    desired: Lora | None,
    endpoints: Iterable[Endpoint],
    *,
    now: datetime,
    busy: Container[Place] = frozenset(),
    room: int = AT_ONCE,
) -> CallPlan:
    """The calls that are due at each endpoint that can be called. `desired` None means: nothing is.

    Those that never failed come first. Endpoints in `busy` are being called, and are left alone. `room`
    bounds how many lose the adapter for a while: no more than will be called at once.
    """
    candidates = list(endpoints)
    budget = min(room, max(1, len(candidates) // 4)) - sum(
        endpoint.is_reloading for endpoint in candidates
    )
    work: list[Work] = []
    waits: list[float] = []
    for endpoint in sorted(candidates, key=lambda endpoint: endpoint.failures):
        if not endpoint.is_callable or endpoint.place in busy:
            continue  # its pod becoming ready wakes us, and so does the end of a call
        calls = needed(desired, endpoint)
        if not calls and desired is None:
            continue
        if (wait := _wait(endpoint, calls, now)) > 0:
            waits.append(wait)
            continue
        if _interrupts(desired, endpoint):
            if budget < 1:
                continue  # the end of a reload elsewhere wakes us
            budget -= 1
        work.append(Work(endpoint, calls or (Call(LoraVerb.LIST),)))
    return CallPlan(tuple(work), min(waits, default=None))


def needed(desired: Lora | None, endpoint: Endpoint) -> tuple[Call, ...]:
    """The calls that bring an endpoint from what it has to what is wanted; none if it has that."""
    if desired is None:
        return tuple(Call(LoraVerb.UNLOAD, name) for name in endpoint.names)
    had, tried = endpoint.loaded, endpoint.tried
    old = tuple(Call(LoraVerb.UNLOAD, name) for name in endpoint.names if name != desired.name)
    if had == desired:
        return old
    # A worker that has an adapter of that name answers a load with success, and keeps the old weights.
    is_stale = desired.name in endpoint.leftovers or any(
        lora is not None and lora.name == desired.name and lora != desired for lora in (had, tried)
    )
    first = (Call(LoraVerb.UNLOAD, desired.name),) if is_stale else ()
    return (*first, Call(LoraVerb.LOAD, desired.name, desired.uri), *old)


def pending(endpoint: Endpoint, calls: Sequence[Call]) -> Endpoint:
    """What is to be remembered of the endpoint before these calls: the least that holds whatever comes."""
    for call in calls:
        if call.verb is not LoraVerb.LIST:
            endpoint = _unsure(endpoint, call)
    return endpoint


def forgetting(endpoint: Endpoint, names: Container[str]) -> Endpoint:
    """The endpoint without LoRAs that are another model's now, which manages them itself."""
    if not any(name in names for name in endpoint.names):
        return endpoint
    had, tried = endpoint.loaded, endpoint.tried
    return replace(
        endpoint,
        loaded=None if had is None or had.name in names else had,
        tried=None if tried is None or tried.name in names else tried,
        leftovers=tuple(name for name in endpoint.leftovers if name not in names),
    )


def doubting(endpoint: Endpoint, desired: Lora) -> Endpoint:
    """The endpoint of a model whose adapter was another model's: it may have other weights of that name."""
    if endpoint.loaded == desired or desired.name in endpoint.leftovers:
        return endpoint
    return replace(endpoint, leftovers=(*endpoint.leftovers, desired.name))


def after(endpoint: Endpoint, call: Call, reply: Reply, *, now: datetime) -> Endpoint:
    """What is to be remembered of the endpoint once that call has ended."""
    if reply.ending is not Ending.DONE:
        return _failed(endpoint, call, reply, now)
    had, tried = endpoint.loaded, endpoint.tried
    well = replace(endpoint, failures=0, attempted_at=now, is_unable=False, message="")
    if call.verb is LoraVerb.LOAD:
        left = tuple(name for name in endpoint.names if name != call.name)
        well = replace(well, is_reloading=False, is_doubted=False)
        loaded = Lora(call.name, call.uri)
        return replace(well, loaded=loaded, tried=None, leftovers=left, checked_at=now)
    if call.verb is LoraVerb.UNLOAD:
        left = tuple(name for name in endpoint.leftovers if name != call.name)
        tried = None if tried is not None and tried.name == call.name else tried
        well = replace(well, leftovers=left, tried=tried)
        if had is None or had.name != call.name:
            return well
        return replace(well, loaded=None, is_reloading=True, checked_at=None)
    return (
        _not_listed(endpoint, now) if reply.loaded is None else _listed(endpoint, reply.loaded, now)
    )


def _failed(endpoint: Endpoint, call: Call, reply: Reply, now: datetime) -> Endpoint:
    if call.verb is LoraVerb.LIST:
        return _not_listed(endpoint, now)
    is_unable = reply.ending is Ending.UNABLE
    failed = replace(
        endpoint,
        is_unable=is_unable,
        failures=endpoint.failures + 1,
        attempted_at=now,
        message=reply.message,
    )
    return failed if is_unable and call.verb is LoraVerb.UNLOAD else _unsure(failed, call)


def _listed(endpoint: Endpoint, loaded: Container[str], now: datetime) -> Endpoint:
    """The endpoint when the worker has listed its LoRAs."""
    had = endpoint.loaded
    endpoint = replace(endpoint, checked_at=now, is_doubted=False)
    if had is None or had.name in loaded:
        return endpoint
    return replace(endpoint, loaded=None, message="the worker has lost the LoRA")


def _not_listed(endpoint: Endpoint, now: datetime) -> Endpoint:
    """The endpoint when the worker did not list its LoRAs; the next check asks again.

    It may have the adapter, as not every worker can list; but a new process has none that was not loaded.
    """
    endpoint = replace(endpoint, checked_at=now)
    had = endpoint.loaded
    if had is None or not endpoint.is_doubted:
        return endpoint
    without = replace(endpoint, loaded=None, is_doubted=False)
    return _unsure(without, Call(LoraVerb.LOAD, had.name, had.uri))


def _unsure(endpoint: Endpoint, call: Call) -> Endpoint:
    """The endpoint when it is not known whether a load or an unload has taken place."""
    had, tried = endpoint.loaded, endpoint.tried
    if call.verb is LoraVerb.LOAD:
        unsure = Lora(call.name, call.uri)
    elif had is not None and had.name == call.name:
        unsure = had
        endpoint = replace(endpoint, loaded=None, is_reloading=True, checked_at=None)
    else:
        return endpoint
    names = [tried.name] if tried is not None and tried.name != unsure.name else []
    if call.verb is LoraVerb.LOAD and tried is not None and tried.uri != unsure.uri:
        names.append(tried.name)  # of one name and two addresses it is not known which came first
    leftovers = tuple(dict.fromkeys((*endpoint.leftovers, *names)))
    return replace(endpoint, tried=unsure, leftovers=leftovers)


def _interrupts(desired: Lora | None, endpoint: Endpoint) -> bool:
    """Whether the calls take the adapter away from requests for a while."""
    had = endpoint.loaded
    return desired is not None and had is not None and had.name == desired.name and had != desired


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
    short = min(FIRST_DELAY_SECONDS * 2.0 ** min(endpoint.failures - 1, 16), GUIDE_DELAY_SECONDS)
    grown = short * 2.0 ** min(max(0, endpoint.failures - _SHORT_FAILURES), 16)
    delay = LONGEST_DELAY_SECONDS if endpoint.is_unable else min(grown, LONGEST_DELAY_SECONDS)
    digest = hashlib.sha256(f"{endpoint.pod_uid}/{endpoint.failures}".encode()).digest()
    return delay * (1 - _JITTER * digest[0] / 255)
