"""Which load, unload and list requests a LoRA's endpoints need now, from their desired and recorded state.

A loaded LoRA is not loaded again, even after a restart of the operator. Each endpoint has its own
backoff. A new URI of the weights is rolled out to a part of the endpoints at a time: until those serve
the new weights, which may not exist, the others keep the old ones. The operator may be killed between a
call and its record, so the possible effect of a call is recorded first (`pending`).
"""

import hashlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

FIRST_DELAY_SECONDS = 5.0
LONGEST_DELAY_SECONDS = 300.0
CHECK_SECONDS = 300.0
"""Period between checks that a loaded LoRA is still there."""

GUIDE_DELAY_SECONDS = 30.0
"""Retry period of endpoints that began to fail recently. Source: the guide to DynamoModels."""

_SHORT_FAILURES = 14
"""Failures in the five minutes that users should wait, according to that guide."""

MAX_CONCURRENT_CALLS = 20
"""Maximum of concurrent calls."""

_JITTER = 0.2


class LoraVerb(StrEnum):
    """Requests of a worker's LoRA API."""

    LOAD = "load"
    UNLOAD = "unload"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a worker. Only a load has a `uri`; a list has no `name`."""

    verb: LoraVerb
    name: str = ""
    uri: str = ""


class Ending(StrEnum):
    """How a call ended. UNABLE: the worker has no LoRA API."""

    DONE = "done"
    UNABLE = "unable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a call. `loaded` are the LoRAs of a list; None if the worker did not list any."""

    ending: Ending
    message: str = ""
    loaded: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Lora:
    """A LoRA to load: its name, and the URI of its weights."""

    name: str
    uri: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One pod that serves the base model, with its recorded state.

    `is_callable` is true if the pod is ready and not terminating. `leftovers` are names still to be
    unloaded. `tried` is a LoRA that the worker may have, because a load or unload of it was not
    confirmed. `is_reloading` is true after the LoRA was unloaded to be loaded from another URI.
    `checked_at` is the time of the last list, None if there was none since the operator started or the
    pod came back. `graph` is that of the pod, "" without one. `is_prefill` is true if the pod only
    computes prompts. `restarts` counts those of its containers, None if the pod is unknown.
    `is_unconfirmed` is true if a container restarted since the LoRA was loaded and the worker has not
    listed it since.
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
    is_unconfirmed: bool = False

    @property
    def id(self) -> "EndpointId":
        """The uid of the pod and the base URL of one of its addresses."""
        return self.pod_uid, self.address

    @property
    def names(self) -> tuple[str, ...]:
        """Every LoRA of this model that the worker has or may have."""
        names = (*(lora.name for lora in (self.loaded, self.tried) if lora), *self.leftovers)
        return tuple(dict.fromkeys(names))


EndpointId = tuple[str, str]
"""The uid of a pod and the base URL of one of its addresses."""


@dataclass(frozen=True, slots=True)
class Work:
    """The calls to make at one endpoint now, in order, up to the first that fails."""

    endpoint: Endpoint
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The calls to make now. `requeue_after_seconds` is None if no call becomes due by time alone."""

    work: tuple[Work, ...]
    requeue_after_seconds: float | None


def plan(
    desired: Lora | None,
    endpoints: Iterable[Endpoint],
    *,
    now: datetime,
    busy: Container[EndpointId] = frozenset(),
    room: int = MAX_CONCURRENT_CALLS,
) -> CallPlan:
    """Plan the calls that are due at each callable endpoint; without `desired`, unload everything.

    Endpoints with the fewest failures come first. Those in `busy` are being called and are skipped.
    `room` limits how many endpoints are without the LoRA while it is reloaded.
    """
    candidates = list(endpoints)
    budget = min(room, max(1, len(candidates) // 4)) - sum(
        endpoint.is_reloading for endpoint in candidates
    )
    work: list[Work] = []
    waits: list[float] = []
    for endpoint in sorted(candidates, key=lambda endpoint: endpoint.failures):
        if not endpoint.is_callable or endpoint.id in busy:
            continue  # its pod becoming ready, or the end of the call, triggers a reconcile
        calls = needed(desired, endpoint)
        if not calls and desired is None:
            continue
        if (wait := _wait(endpoint, calls, now)) > 0:
            waits.append(wait)
            continue
        if _interrupts(desired, endpoint):
            if budget < 1:
                continue  # the end of another reload triggers a reconcile
            budget -= 1
        work.append(Work(endpoint, calls or (Call(LoraVerb.LIST),)))
    return CallPlan(tuple(work), min(waits, default=None))


def needed(desired: Lora | None, endpoint: Endpoint) -> tuple[Call, ...]:
    """The calls that bring an endpoint to the desired state; none if it has that."""
    if desired is None:
        return tuple(Call(LoraVerb.UNLOAD, name) for name in endpoint.names)
    loaded_before, tried = endpoint.loaded, endpoint.tried
    old = tuple(Call(LoraVerb.UNLOAD, name) for name in endpoint.names if name != desired.name)
    if loaded_before == desired:
        return old
    # A worker that has a LoRA of that name answers a load with success and keeps the old weights.
    is_stale = desired.name in endpoint.leftovers or any(
        lora is not None and lora.name == desired.name and lora != desired
        for lora in (loaded_before, tried)
    )
    first = (Call(LoraVerb.UNLOAD, desired.name),) if is_stale else ()
    return (*first, Call(LoraVerb.LOAD, desired.name, desired.uri), *old)


def pending(endpoint: Endpoint, calls: Sequence[Call]) -> Endpoint:
    """The state to record before these calls, which is true whether or not they take place."""
    for call in calls:
        if call.verb is not LoraVerb.LIST:
            endpoint = _uncertain(endpoint, call)
    return endpoint


def without_loras(endpoint: Endpoint, names: Container[str]) -> Endpoint:
    """Return the endpoint without LoRAs that now belong to other models."""
    if not any(name in names for name in endpoint.names):
        return endpoint
    loaded_before, tried = endpoint.loaded, endpoint.tried
    return replace(
        endpoint,
        loaded=None if loaded_before is None or loaded_before.name in names else loaded_before,
        tried=None if tried is None or tried.name in names else tried,
        leftovers=tuple(name for name in endpoint.leftovers if name not in names),
    )


def with_stale_lora(endpoint: Endpoint, desired: Lora) -> Endpoint:
    """Return the endpoint with a LoRA to unload that another model may have loaded under the same name."""
    if endpoint.loaded == desired or desired.name in endpoint.leftovers:
        return endpoint
    return replace(endpoint, leftovers=(*endpoint.leftovers, desired.name))


def after(endpoint: Endpoint, call: Call, reply: Reply, *, now: datetime) -> Endpoint:
    """The state to record after a call has ended."""
    if reply.ending is not Ending.DONE:
        return _failed(endpoint, call, reply, now)
    loaded_before, tried = endpoint.loaded, endpoint.tried
    succeeded = replace(endpoint, failures=0, attempted_at=now, is_unable=False, message="")
    if call.verb is LoraVerb.LOAD:
        left = tuple(name for name in endpoint.names if name != call.name)
        succeeded = replace(succeeded, is_reloading=False, is_unconfirmed=False)
        loaded = Lora(call.name, call.uri)
        return replace(succeeded, loaded=loaded, tried=None, leftovers=left, checked_at=now)
    if call.verb is LoraVerb.UNLOAD:
        left = tuple(name for name in endpoint.leftovers if name != call.name)
        tried = None if tried is not None and tried.name == call.name else tried
        succeeded = replace(succeeded, leftovers=left, tried=tried)
        if loaded_before is None or loaded_before.name != call.name:
            return succeeded
        return replace(succeeded, loaded=None, is_reloading=True, checked_at=None)
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
    return failed if is_unable and call.verb is LoraVerb.UNLOAD else _uncertain(failed, call)


def _listed(endpoint: Endpoint, loaded: Container[str], now: datetime) -> Endpoint:
    """The endpoint after the worker has listed its LoRAs."""
    loaded_before = endpoint.loaded
    endpoint = replace(endpoint, checked_at=now, is_unconfirmed=False)
    if loaded_before is None or loaded_before.name in loaded:
        return endpoint
    return replace(endpoint, loaded=None, message="the worker has lost the LoRA")


def _not_listed(endpoint: Endpoint, now: datetime) -> Endpoint:
    """The endpoint after the worker did not list its LoRAs; the next check repeats the call.

    Not every worker can list, so it may still have the LoRA; but a restarted process has lost it.
    """
    endpoint = replace(endpoint, checked_at=now)
    loaded_before = endpoint.loaded
    if loaded_before is None or not endpoint.is_unconfirmed:
        return endpoint
    without = replace(endpoint, loaded=None, is_unconfirmed=False)
    return _uncertain(without, Call(LoraVerb.LOAD, loaded_before.name, loaded_before.uri))


def _uncertain(endpoint: Endpoint, call: Call) -> Endpoint:
    """The endpoint while it is unknown whether a load or an unload has taken place."""
    loaded_before, tried = endpoint.loaded, endpoint.tried
    if call.verb is LoraVerb.LOAD:
        uncertain = Lora(call.name, call.uri)
    elif loaded_before is not None and loaded_before.name == call.name:
        uncertain = loaded_before
        endpoint = replace(endpoint, loaded=None, is_reloading=True, checked_at=None)
    else:
        return endpoint
    names = [tried.name] if tried is not None and tried.name != uncertain.name else []
    if call.verb is LoraVerb.LOAD and tried is not None and tried.uri != uncertain.uri:
        names.append(tried.name)  # loaded from one of two URIs, and it is unknown from which
    leftovers = tuple(dict.fromkeys((*endpoint.leftovers, *names)))
    return replace(endpoint, tried=uncertain, leftovers=leftovers)


def _interrupts(desired: Lora | None, endpoint: Endpoint) -> bool:
    """Whether requests for the LoRA fail for a while during the calls."""
    loaded_before = endpoint.loaded
    return (
        desired is not None
        and loaded_before is not None
        and loaded_before.name == desired.name
        and loaded_before != desired
    )


def _wait(endpoint: Endpoint, calls: tuple[Call, ...], now: datetime) -> float:
    """Seconds until the endpoint may be called; 0 or less for now."""
    if not calls:
        since, delay = endpoint.checked_at, CHECK_SECONDS
    elif endpoint.failures:
        since, delay = endpoint.attempted_at, retry_seconds(endpoint)
    else:
        return 0.0
    return (since + timedelta(seconds=delay) - now).total_seconds() if since else 0.0


def retry_seconds(endpoint: Endpoint) -> float:
    """The backoff of an endpoint that failed.

    Its jitter is derived from the pod and the count, so that it survives a restart of the operator.
    """
    if not endpoint.failures:
        return 0.0
    short = min(FIRST_DELAY_SECONDS * 2.0 ** min(endpoint.failures - 1, 16), GUIDE_DELAY_SECONDS)
    grown = short * 2.0 ** min(max(0, endpoint.failures - _SHORT_FAILURES), 16)
    delay = LONGEST_DELAY_SECONDS if endpoint.is_unable else min(grown, LONGEST_DELAY_SECONDS)
    digest = hashlib.sha256(f"{endpoint.pod_uid}/{endpoint.failures}".encode()).digest()
    return delay * (1 - _JITTER * digest[0] / 255)
