"""What a model needs now: its endpoints, and the load, unload and list requests to them."""

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from dynamo_operator import labels, names
from dynamo_operator.component.diagnosis import restarts
from dynamo_operator.component.pod import SYSTEM_PORT
from dynamo_operator.models.api import DynamoModel, DynamoModelSpec, ModelReason
from dynamo_operator.models.validate import model_problems
from dynamo_operator.names import WORKER_SUFFIX
from dynamo_operator.shared.cluster import CLIQUE_NAME, REPLICA_INDEX, SET_NAME
from kube_runtime.types.kinds import EndpointSlice, Pod, SliceEndpoint, TargetReference
from kube_runtime.types.meta import condition

MAX_CONCURRENT_CALLS = 20
"""Maximum of concurrent calls."""

_CHECK_SECONDS = 300.0
"""Period between checks that a loaded LoRA is still there."""

_FIRST_DELAY_SECONDS = 5.0
_LONGEST_DELAY_SECONDS = 300.0
_GUIDE_DELAY_SECONDS = 30.0
"""Retry period of endpoints that began to fail recently. Source: the guide to DynamoModels."""

_SHORT_FAILURES = 14
"""Failures in the five minutes that users should wait, according to that guide."""

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


EndpointId = tuple[str, str]
"""The uid of a pod and the base URL of one of its addresses."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One pod that serves the base model, with its recorded state."""

    address: str
    pod_uid: str
    is_callable: bool  # ready and not terminating
    pod_name: str = ""
    loaded: Lora | None = None
    tried: Lora | None = None  # the worker may have it: a load or unload of it was not confirmed
    leftovers: tuple[str, ...] = ()  # names still to be unloaded
    is_reloading: bool = False  # it was unloaded to be loaded from another URI
    is_unable: bool = False
    failures: int = 0
    attempted_at: datetime | None = None
    checked_at: datetime | None = None  # of the last list since the operator started or the pod came back
    message: str = ""
    graph: str = ""
    is_prefill: bool = False
    restarts: int | None = None  # of its containers; None if the pod is unknown
    is_unconfirmed: bool = False  # a container restarted, and the worker has not listed `loaded` since

    @property
    def id(self) -> EndpointId:
        """The uid of the pod and the base URL of one of its addresses."""
        return self.pod_uid, self.address

    @property
    def names(self) -> tuple[str, ...]:
        """Every LoRA of this model that the worker has or may have."""
        names = (*(lora.name for lora in (self.loaded, self.tried) if lora), *self.leftovers)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Work:
    """The calls to make at one endpoint now, in order, up to the first that fails."""

    endpoint: Endpoint
    calls: tuple[Call, ...]


# A loaded LoRA is not loaded again, even after a restart of the operator. Each endpoint has its own
# backoff. A new URI of the weights is rolled out to a part of the endpoints at a time: until those
# serve the new weights, which may not exist, the others keep the old ones.
def plan(
    desired: Lora | None,
    endpoints: Iterable[Endpoint],
    *,
    now: datetime,
    busy: Container[EndpointId] = frozenset(),
    room: int = MAX_CONCURRENT_CALLS,
) -> tuple[tuple[Work, ...], float | None]:
    """Plan the due calls, at endpoints with the fewest failures first; without `desired`, unload everything.

    Returns also the seconds until the next is due, None if none becomes due by time alone. Endpoints in
    `busy` are being called. `room` limits how many endpoints are without the LoRA while it is reloaded.
    """
    candidates = sorted(endpoints, key=lambda endpoint: endpoint.failures)
    budget = min(room, max(1, len(candidates) // 4)) - sum(endpoint.is_reloading for endpoint in candidates)
    work: list[Work] = []
    waits: list[float] = []
    for endpoint in candidates:
        if not endpoint.is_callable or endpoint.id in busy:
            continue  # its pod becoming ready, or the end of the call, triggers a reconcile
        calls = needed(desired, endpoint)
        if not calls and desired is None:
            continue
        if (wait := _wait(endpoint, calls, now)) > 0:
            waits.append(wait)
            continue
        if desired and _has_other_weights(endpoint.loaded, desired):  # requests for it fail during a reload
            if budget < 1:
                continue  # the end of another reload triggers a reconcile
            budget -= 1
        work.append(Work(endpoint, calls or (Call(LoraVerb.LIST),)))
    return tuple(work), min(waits, default=None)


def needed(desired: Lora | None, endpoint: Endpoint) -> tuple[Call, ...]:
    """The calls that bring an endpoint to the desired state; none if it has that."""
    if desired is None:
        return tuple(Call(LoraVerb.UNLOAD, name) for name in endpoint.names)
    old = tuple(Call(LoraVerb.UNLOAD, name) for name in endpoint.names if name != desired.name)
    if endpoint.loaded == desired:
        return old
    # A worker that has a LoRA of that name answers a load with success and keeps the old weights.
    is_stale = desired.name in endpoint.leftovers or any(
        _has_other_weights(lora, desired) for lora in (endpoint.loaded, endpoint.tried)
    )
    first = (Call(LoraVerb.UNLOAD, desired.name),) if is_stale else ()
    return (*first, Call(LoraVerb.LOAD, desired.name, desired.uri), *old)


def _has_other_weights(lora: Lora | None, desired: Lora) -> bool:
    return lora is not None and lora.name == desired.name and lora != desired


# The operator may be killed between a call and its record, so the possible effect of a call is
# recorded first.
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
    loaded, tried = (
        None if lora is None or lora.name in names else lora for lora in (endpoint.loaded, endpoint.tried)
    )
    leftovers = tuple(name for name in endpoint.leftovers if name not in names)
    return replace(endpoint, loaded=loaded, tried=tried, leftovers=leftovers)


def after(endpoint: Endpoint, call: Call, reply: Reply, *, now: datetime) -> Endpoint:
    """The state to record after a call has ended."""
    if call.verb is LoraVerb.LIST:
        return _after_list(replace(endpoint, checked_at=now), reply.loaded)
    if reply.ending is not Ending.DONE:
        failed = replace(
            endpoint,
            is_unable=reply.ending is Ending.UNABLE,
            failures=endpoint.failures + 1,
            attempted_at=now,
            message=reply.message,
        )
        return failed if failed.is_unable and call.verb is LoraVerb.UNLOAD else _uncertain(failed, call)
    succeeded = replace(endpoint, failures=0, attempted_at=now, is_unable=False, message="")
    if call.verb is LoraVerb.LOAD:
        return replace(
            succeeded,
            loaded=Lora(call.name, call.uri),
            tried=None,
            leftovers=tuple(name for name in endpoint.names if name != call.name),
            is_reloading=False,
            is_unconfirmed=False,
            checked_at=now,
        )
    had_loaded = endpoint.loaded is not None and endpoint.loaded.name == call.name
    succeeded = without_loras(succeeded, {call.name})
    return replace(succeeded, is_reloading=True, checked_at=None) if had_loaded else succeeded


def _after_list(endpoint: Endpoint, listed: Container[str] | None) -> Endpoint:
    loaded = endpoint.loaded
    if listed is not None:
        endpoint = replace(endpoint, is_unconfirmed=False)
        if loaded is None or loaded.name in listed:
            return endpoint
        return replace(endpoint, loaded=None, message="the worker has lost the LoRA")
    # Not every worker can list, so it may still have the LoRA; but a restarted process has lost it.
    if loaded is None or not endpoint.is_unconfirmed:
        return endpoint
    without = replace(endpoint, loaded=None, is_unconfirmed=False)
    return _uncertain(without, Call(LoraVerb.LOAD, loaded.name, loaded.uri))


def _uncertain(endpoint: Endpoint, call: Call) -> Endpoint:
    """The endpoint while it is unknown whether a load or an unload has taken place."""
    loaded, tried = endpoint.loaded, endpoint.tried
    if call.verb is LoraVerb.LOAD:
        uncertain = Lora(call.name, call.uri)
    elif loaded is not None and loaded.name == call.name:
        uncertain = loaded
        endpoint = replace(endpoint, loaded=None, is_reloading=True, checked_at=None)
    else:
        return endpoint
    names = [tried.name] if tried is not None and tried.name != uncertain.name else []
    if call.verb is LoraVerb.LOAD and tried is not None and tried.uri != uncertain.uri:
        names.append(tried.name)  # loaded from one of two URIs, and it is unknown from which
    leftovers = tuple(dict.fromkeys((*endpoint.leftovers, *names)))
    return replace(endpoint, tried=uncertain, leftovers=leftovers)


def _wait(endpoint: Endpoint, calls: tuple[Call, ...], now: datetime) -> float:
    """Seconds until the endpoint may be called; 0 or less for now."""
    if not calls:
        since, delay = endpoint.checked_at, _CHECK_SECONDS
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
    short = min(_FIRST_DELAY_SECONDS * 2.0 ** min(endpoint.failures - 1, 16), _GUIDE_DELAY_SECONDS)
    grown = short * 2.0 ** min(max(0, endpoint.failures - _SHORT_FAILURES), 16)
    delay = _LONGEST_DELAY_SECONDS if endpoint.is_unable else min(grown, _LONGEST_DELAY_SECONDS)
    digest = hashlib.sha256(f"{endpoint.pod_uid}/{endpoint.failures}".encode()).digest()
    return delay * (1 - _JITTER * digest[0] / 255)


def is_follower(pod: Pod) -> bool:
    """Whether the pod is a worker of a group, whose leader alone has a LoRA API."""
    pod_labels = pod.metadata.labels
    if SET_NAME in pod_labels:
        return pod_labels.get(labels.ROLE) == "worker"
    return REPLICA_INDEX in pod_labels and pod_labels.get(CLIQUE_NAME, "").endswith(WORKER_SUFFIX)


def has_address(pod: Pod, host: str) -> bool:
    """Whether the pod has that IP address."""
    return any(pod_ip.ip == host for pod_ip in pod.status.pod_ips)


SERVICE_NAME = "kubernetes.io/service-name"

PodOf = Callable[[str], Pod | None]
"""Looks up a pod of the model's namespace by name."""


def services(base_model: str, slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """Names of the Services whose endpoints count."""
    counted = _effective_slices(base_model, slices)
    return frozenset(slice_.metadata.labels.get(SERVICE_NAME, "") for slice_ in counted) - {""}


# Older operators put the model's label on the Services of components too, so slices of the model's
# own Service take precedence if there are any.
def _effective_slices(base_model: str, slices: Iterable[EndpointSlice]) -> list[EndpointSlice]:
    ordered = sorted(slices, key=lambda slice_: slice_.key)
    own = names.model_service_name(base_model)
    return [slice_ for slice_ in ordered if slice_.metadata.labels.get(SERVICE_NAME) == own] or ordered


# An address in a slice is called only if the pod's status confirms it: a user who may write
# EndpointSlices can put any address into one, while only the kubelet writes the addresses of a pod.
def endpoints(
    base_model: str, slices: Iterable[EndpointSlice], recorded: Mapping[EndpointId, Endpoint], pod_of: PodOf
) -> Iterator[Endpoint]:
    """Each address of each pod, ready or not, by the name of its slice; once for each slice that has it.

    State is matched by the uid of the pod and its address; the status of an earlier operator has no uid,
    and is matched by address. Workers of a group are not endpoints.
    """
    hash_ = names.model_hash(base_model)
    for slice_endpoint, target in _targets(_effective_slices(base_model, slices)):
        pod, conditions = pod_of(target.name), slice_endpoint.conditions
        if pod is not None and target.uid not in ("", pod.metadata.uid):
            pod = None
        if pod is not None and is_follower(pod):
            continue
        uid = pod.metadata.uid if pod is not None else target.uid
        is_served = conditions.ready is not False and not conditions.terminating
        is_worker = pod is not None and pod.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_
        for host in slice_endpoint.addresses:
            is_callable = is_served and is_worker and pod is not None and has_address(pod, host)
            address = base_url(host)
            endpoint = (
                recorded.get((uid, address))
                or recorded.get(("", address))
                or Endpoint(address, uid, is_callable=is_callable)
            )
            if (endpoint.pod_uid, endpoint.pod_name) != (uid, target.name):
                endpoint = replace(endpoint, pod_uid=uid, pod_name=target.name)
            yield with_pod(endpoint, pod, is_callable=is_callable)


def _targets(slices: Iterable[EndpointSlice]) -> Iterator[tuple[SliceEndpoint, TargetReference]]:
    for slice_ in slices:
        for slice_endpoint in slice_.endpoints or ():
            target = slice_endpoint.target_ref
            if target is not None and target.kind == "Pod":
                yield slice_endpoint, target


def pod_names(slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """The names of the pods in these slices."""
    return frozenset(target.name for _, target in _targets(slices))


def with_pod(endpoint: Endpoint, pod: Pod | None, *, is_callable: bool) -> Endpoint:
    """Update the recorded state of an endpoint from its pod. A restarted process is checked again."""
    if pod is None:
        return replace(endpoint, is_callable=False, checked_at=None)
    count = restarts(pod) if is_callable else endpoint.restarts
    is_same = is_callable and endpoint.is_callable and count == endpoint.restarts
    is_new_process = endpoint.restarts not in (None, count)
    of_pod = pod.metadata.labels
    graph, kinds = of_pod.get(labels.GRAPH, ""), (labels.COMPONENT_TYPE, labels.SUB_COMPONENT_TYPE)
    is_prefill = "prefill" in map(of_pod.get, kinds)
    if is_same and (endpoint.graph, endpoint.is_prefill) == (graph, is_prefill):
        return endpoint  # the common case; copies are expensive for a thousand endpoints
    return replace(
        endpoint,
        is_callable=is_callable,
        checked_at=endpoint.checked_at if is_same else None,
        is_unconfirmed=endpoint.is_unconfirmed or (is_new_process and endpoint.loaded is not None),
        graph=graph,
        is_prefill=is_prefill,
        restarts=count,
    )


def former(
    base_model: str, recorded: Iterable[Endpoint], present: Container[EndpointId], pod_of: PodOf
) -> tuple[Endpoint, ...]:
    """Former endpoints whose pods still run and may have a LoRA of the model.

    Those that serve another base model now are callable. Of the others only the slices are missing, for
    example while a Service is recreated, so nothing is unloaded.
    """
    hash_, running = names.model_hash(base_model), list[Endpoint]()
    for endpoint in recorded:
        pod = pod_of(endpoint.pod_name) if endpoint.names and endpoint.id not in present else None
        if pod is None or pod.metadata.uid != endpoint.pod_uid:
            continue
        if has_address(pod, host_of(endpoint.address)):
            is_others = pod.metadata.labels.get(labels.BASE_MODEL_HASH) != hash_
            running.append(with_pod(endpoint, pod, is_callable=is_others))
    return tuple(running)


def base_url(host: str) -> str:
    """The URL of the system server of a pod with that IP address."""
    return f"http://[{host}]:{SYSTEM_PORT}" if ":" in host else f"http://{host}:{SYSTEM_PORT}"


def host_of(address: str) -> str:
    """The IP address in such a URL."""
    return address.removeprefix("http://").removesuffix(f":{SYSTEM_PORT}").strip("[]")


@dataclass(frozen=True, slots=True)
class Unloading:
    """The final unloading of a deleted model's LoRAs.

    `failed` is at how many endpoints it failed; None if another operator of the namespace interrupted it.
    """

    is_done: bool
    failed: int | None = 0


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Everything beside the model itself that its plan depends on, read once."""

    slices: tuple[EndpointSlice, ...] = ()  # of its base model
    siblings: tuple[DynamoModel, ...] = ()  # the other models of its base model
    pods: Mapping[str, Pod] = field(default_factory=dict[str, Pod])  # that slices and `recorded` name
    lack: str = ""  # why the slices have no endpoints
    recorded: Mapping[EndpointId, Endpoint] = field(default_factory=dict[EndpointId, Endpoint])
    running: Mapping[EndpointId, Endpoint] = field(default_factory=dict[EndpointId, Endpoint])
    """The possible state of those with a call in progress."""
    running_after_failure: int = 0  # how many of them had failed before
    unloading: Unloading | None = None
    silence: str = ""  # why no worker may be called
    room: int = MAX_CONCURRENT_CALLS

    def view(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with the possible effect of a call in progress."""
        return self.running.get(endpoint.id, endpoint)

    def is_gone(self, endpoint: Endpoint) -> bool:
        """Whether its pod no longer exists."""
        pod = self.pods.get(endpoint.pod_name)
        return pod is None or pod.metadata.uid != endpoint.pod_uid


def plan_unloading(model: DynamoModel, inputs: ModelInputs) -> tuple[Endpoint, ...]:
    """Every running endpoint, ready or not, that may have a LoRA of a model that is being deleted."""
    given_up = held_names(inputs.siblings)
    base = model.spec.base_model_name if model.spec else ""
    present = endpoints(base, inputs.slices, inputs.recorded, inputs.pods.get)
    every = {**inputs.recorded, **{endpoint.id: endpoint for endpoint in present}}
    kept = [without_loras(inputs.view(endpoint), given_up) for endpoint in every.values()]
    return former("", kept, (), inputs.pods.get)


def lora_of(spec: DynamoModelSpec | None) -> Lora | None:
    """The LoRA to load into the endpoints; None for models of other types."""
    if spec is None or spec.model_type != "lora" or spec.source is None:
        return None
    return Lora(spec.model_name, spec.source.uri)


def desired_lora_name(model: DynamoModel) -> str:
    """The name of the LoRA to load; "" for other types, and while the model is being deleted."""
    lora = lora_of(model.spec)
    return lora.name if lora is not None and not model.metadata.deletion_timestamp else ""


def siblings(model: DynamoModel, models: Iterable[DynamoModel]) -> tuple[DynamoModel, ...]:
    """The other models on the same base model in the same namespace."""
    spec = model.spec
    return tuple(
        sibling
        for sibling in models
        if spec is not None
        and sibling.spec is not None
        and sibling.metadata.uid != model.metadata.uid
        and sibling.metadata.namespace == model.metadata.namespace
        and sibling.spec.base_model_name == spec.base_model_name
    )


# A worker identifies LoRAs by name only, so two models with one name would overwrite and unload
# each other's. So one model holds the name. When the holder changes, the former one drops its
# record of the LoRA, and the one that waited for the name unloads what may be there before it loads
# its own weights. If none waits that can do so now, the former one unloads the LoRA; so does one that is
# being deleted, which does not take long, and the others wait for that.
def holder(model: DynamoModel, others: Iterable[DynamoModel]) -> DynamoModel | None:
    """The other model that holds the name of this one's LoRA; None if this one holds it.

    A model that already has loaded it keeps it, else the oldest model gets it.
    """
    name = desired_lora_name(model)
    if not name:
        return None
    claim = (not _holds(model, name), *_age(model))  # the smallest claim gets it
    for sibling in sorted(others, key=_age):
        if desired_lora_name(sibling) == name:
            if (not _holds(sibling, name), *_age(sibling)) < claim:
                return sibling
        elif claim[0] and _holds(sibling, name):
            metadata = sibling.metadata
            if not metadata.deletion_timestamp or labels.FINALIZER in metadata.finalizers:
                return sibling  # else it has unloaded, or has tried: the status still lists what it had
    return None


def held_names(others: Iterable[DynamoModel]) -> frozenset[str]:
    """The names of the LoRAs that these models want and may have loaded."""
    desired = ((other, desired_lora_name(other)) for other in others)
    return frozenset(name for other, name in desired if name and _holds(other, name))


def awaited_names(others: Iterable[DynamoModel]) -> frozenset[str]:
    """The names of the LoRAs that these models wait for, to unload them before they load their own.

    A paused or invalid model does neither, and may be deleted before it does.
    """
    waiting = filter(is_waiting, others)
    able = (one for one in waiting if not one.metadata.is_true(labels.PAUSED) and not model_problems(one))
    return frozenset(filter(None, map(desired_lora_name, able)))


def is_waiting(model: DynamoModel) -> bool:
    """Whether the model's status says that another model holds the name of its LoRA."""
    ready = condition(model.status.conditions, "EndpointsReady")
    return ready is not None and ready.reason == ModelReason.CONFLICT


def _age(model: DynamoModel) -> tuple[str, str]:
    return model.metadata.creation_timestamp or "", model.metadata.uid


def _holds(model: DynamoModel, name: str) -> bool:
    infos = (*model.status.endpoints, *model.status.former_endpoints)
    return any(name in (info.loaded_name, info.tried_name, *info.leftovers) for info in infos)


def concerns(changed: DynamoModel, sibling: DynamoModel) -> bool:
    """Whether a change of one model may affect which LoRA the other holds."""
    mine, theirs = desired_lora_name(changed), desired_lora_name(sibling)
    if theirs and (theirs == mine or _holds(changed, theirs)):
        return True
    return bool(mine) and _holds(sibling, mine)
