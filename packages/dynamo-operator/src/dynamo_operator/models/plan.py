"""What a model needs now: its endpoints, and the load, unload and list requests to them."""

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from dynamo_operator import labels, names
from dynamo_operator.models.api import DynamoModel, DynamoModelSpec
from dynamo_operator.names import WORKER_SUFFIX
from dynamo_operator.shared.cluster import CLIQUE_NAME, REPLICA_INDEX, SET_NAME
from kube_runtime.types.kinds import EndpointSlice, Pod, SliceEndpoint

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


# A loaded LoRA is not loaded again, even after a restart of the operator. Each endpoint has its own
# backoff. A new URI of the weights is rolled out to a part of the endpoints at a time: until those
# serve the new weights, which may not exist, the others keep the old ones. The operator may be
# killed between a call and its record, so the possible effect of a call is recorded first
# (`pending`).
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


def plan(
    desired: Lora | None,
    endpoints: Iterable[Endpoint],
    *,
    now: datetime,
    busy: Container[EndpointId] = frozenset(),
    room: int = MAX_CONCURRENT_CALLS,
) -> tuple[tuple[Work, ...], float | None]:
    """Plan the calls that are due at each callable endpoint; without `desired`, unload everything.

    Returns also the seconds until the next is due, None if none becomes due by time alone.

    Endpoints with the fewest failures come first. Those in `busy` are being called and are skipped.
    `room` limits how many endpoints are without the LoRA while it is reloaded.
    """
    candidates = list(endpoints)
    budget = min(room, max(1, len(candidates) // 4)) - sum(endpoint.is_reloading for endpoint in candidates)
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
    return tuple(work), min(waits, default=None)


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
        lora is not None and lora.name == desired.name and lora != desired for lora in (loaded_before, tried)
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
    return _not_listed(endpoint, now) if reply.loaded is None else _after_list(endpoint, reply.loaded, now)


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


def _after_list(endpoint: Endpoint, loaded: Container[str], now: datetime) -> Endpoint:
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


READ_LABELS = (
    labels.BASE_MODEL_HASH,
    labels.COMPONENT_TYPE,
    labels.SUB_COMPONENT_TYPE,
    labels.ROLE,
    CLIQUE_NAME,
    REPLICA_INDEX,
)
"""Labels of pods that this module reads."""


# Each pod counts once, and only workers are called. Older operators put the model's label on the
# Services of components too, so slices of the model's own Service take precedence if there are any.
# Addresses are taken from a slice only if the pod's status confirms them: a user who may write
# EndpointSlices can put any address into one, while only the kubelet writes the addresses of a pod.
def is_follower(pod: Pod) -> bool:
    """Whether the pod is a worker of a group, whose leader alone has a LoRA API."""
    pod_labels = pod.metadata.labels
    if SET_NAME in pod_labels:
        return pod_labels.get(labels.ROLE) == "worker"
    return REPLICA_INDEX in pod_labels and pod_labels.get(CLIQUE_NAME, "").endswith(WORKER_SUFFIX)


def is_prefill(pod: Pod) -> bool:
    """Whether the pod only computes prompts for decode workers."""
    kinds = (labels.COMPONENT_TYPE, labels.SUB_COMPONENT_TYPE)
    return "prefill" in (pod.metadata.labels.get(label) for label in kinds)


def has_address(pod: Pod, host: str) -> bool:
    """Whether the pod has that IP address."""
    return any(pod_ip.ip == host for pod_ip in pod.status.pod_ips)


def restarts(pod: Pod) -> int:
    """The number of restarts of the pod's containers."""
    return sum(container.restart_count for container in pod.status.container_statuses)


SYSTEM_PORT = 9090
"""Port of a worker's system server."""

SERVICE_NAME = "kubernetes.io/service-name"

PodOf = Callable[[str], Pod | None]
"""Looks up a pod of the model's namespace by name."""


def services(slices: Iterable[EndpointSlice]) -> tuple[str, ...]:
    """Names of the Services that the slices belong to, sorted."""
    service_names = {slice_.metadata.labels.get(SERVICE_NAME, "") for slice_ in slices}
    return tuple(sorted(service_names - {""}))


def effective_slices(base_model: str, slices: Iterable[EndpointSlice]) -> tuple[EndpointSlice, ...]:
    """The slices whose endpoints count, sorted by name."""
    ordered = sorted(slices, key=lambda slice_: slice_.key)
    own = names.model_service_name(base_model)
    of_model = [slice_ for slice_ in ordered if slice_.metadata.labels.get(SERVICE_NAME) == own]
    return tuple(of_model or ordered)


def endpoints(
    base_model: str,
    slices: Iterable[EndpointSlice],
    recorded: Mapping[EndpointId, Endpoint],
    pod_of: PodOf,
) -> tuple[Endpoint, ...]:
    """Return an endpoint for each address of each pod, ready or not, sorted by the name of its slice.

    State is matched by the uid of the pod and its address; the status of an earlier operator has no uid,
    and is matched by address. Workers of a group are not endpoints.
    """
    listed = _listed(base_model, slices, recorded, pod_of)
    return tuple({endpoint.id: endpoint for endpoint in listed}.values())


def has_endpoints(base_model: str, slices: Iterable[EndpointSlice], pod_of: PodOf) -> bool:
    """Whether `endpoints` finds any in these slices."""
    return next(_listed(base_model, slices, {}, pod_of), None) is not None


def _listed(
    base_model: str,
    slices: Iterable[EndpointSlice],
    recorded: Mapping[EndpointId, Endpoint],
    pod_of: PodOf,
) -> Iterator[Endpoint]:
    hash_ = names.model_hash(base_model)
    for slice_ in effective_slices(base_model, slices):
        for slice_endpoint in slice_.endpoints or ():
            yield from _of_pod(hash_, slice_endpoint, recorded, pod_of)


def pod_names(slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """The names of the pods in these slices."""
    targets = (slice_endpoint.target_ref for slice_ in slices for slice_endpoint in slice_.endpoints or ())
    return frozenset(target.name for target in targets if target is not None and target.kind == "Pod")


def _of_pod(
    hash_: str,
    slice_endpoint: SliceEndpoint,
    recorded: Mapping[EndpointId, Endpoint],
    pod_of: PodOf,
) -> Iterator[Endpoint]:
    target, conditions = slice_endpoint.target_ref, slice_endpoint.conditions
    if target is None or target.kind != "Pod":
        return
    pod = pod_of(target.name)
    if pod is not None and target.uid not in ("", pod.metadata.uid):
        pod = None
    uid = pod.metadata.uid if pod is not None else target.uid
    if pod is not None and is_follower(pod):
        return
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


def with_pod(endpoint: Endpoint, pod: Pod | None, *, is_callable: bool) -> Endpoint:
    """Update the recorded state of an endpoint from its pod. A restarted process is checked again."""
    if pod is None:
        return replace(endpoint, is_callable=False, checked_at=None)
    count = restarts(pod) if is_callable else endpoint.restarts
    is_same = is_callable and endpoint.is_callable and count == endpoint.restarts
    is_new_process = endpoint.restarts not in (None, count)
    graph, prefill = pod.metadata.labels.get(labels.GRAPH, ""), is_prefill(pod)
    if is_same and (endpoint.graph, endpoint.is_prefill) == (graph, prefill):
        return endpoint  # the common case; copies are expensive for a thousand endpoints
    return replace(
        endpoint,
        is_callable=is_callable,
        checked_at=endpoint.checked_at if is_same else None,
        is_unconfirmed=endpoint.is_unconfirmed or (is_new_process and endpoint.loaded is not None),
        graph=graph,
        is_prefill=prefill,
        restarts=count,
    )


def former(
    base_model: str, recorded: Iterable[Endpoint], present: Iterable[Endpoint], pod_of: PodOf
) -> tuple[Endpoint, ...]:
    """Former endpoints whose pods still run and may have a LoRA of the model.

    Those that serve another base model now are callable. Of the others only the slices are missing, for
    example while a Service is recreated, so nothing is unloaded.
    """
    present_ids, hash_ = {endpoint.id for endpoint in present}, names.model_hash(base_model)
    running: list[Endpoint] = []
    for endpoint in recorded:
        pod = pod_of(endpoint.pod_name) if endpoint.names and endpoint.id not in present_ids else None
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


# `dynamo_operator.models` makes the calls, and `status.model` reports their results.
#
# A worker identifies LoRAs by name only, so two models with one name would overwrite and unload
# each other's. So one model holds the name. When the holder changes, the former one drops its
# record of the LoRA, and the new one unloads what may be there before it loads its own weights.
class ModelReason(StrEnum):
    """Reasons of a model's conditions."""

    VALID = "ValidationPassed"
    INVALID = "ValidationFailed"
    DECODE_FAILED = "DecodeFailed"
    TOO_LARGE = "TooLarge"
    REJECTED = "RejectedByApiServer"
    SERVICES_FOUND = "ServicesFound"
    NO_SERVICES = "NoServicesFound"
    ALL_READY = "AllEndpointsReady"
    NOT_READY = "NotReady"
    NONE_READY = "NoReadyEndpoints"
    DISCOVERED = "EndpointsDiscovered"
    NO_ENDPOINTS = "NoEndpoints"
    CONFLICT = "AdapterNameTaken"
    NOT_CALLED = "CallsDisabled"


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Everything beside the model itself that its plan depends on, read once.

    `slices` and `siblings` are the EndpointSlices and the other models of its base model, `pods` those
    that slices and recorded endpoints name. `lack` is the reason why the slices have no endpoints, or
    "". `recorded` is the recorded state of endpoints, `running` the possible state of those with a call
    in progress. `silence` is the reason why no worker may be called, or ""; `room` limits concurrent
    calls.
    """

    now: datetime
    slices: tuple[EndpointSlice, ...] = ()
    siblings: tuple[DynamoModel, ...] = ()
    pods: Mapping[str, Pod] = field(default_factory=dict[str, Pod])
    lack: str = ""
    recorded: Mapping[EndpointId, Endpoint] = field(default_factory=dict[EndpointId, Endpoint])
    running: Mapping[EndpointId, Endpoint] = field(default_factory=dict[EndpointId, Endpoint])
    silence: str = ""
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
    given_up = desired_lora_names(inputs.siblings)
    base = model.spec.base_model_name if model.spec else ""
    present = endpoints(base, inputs.slices, inputs.recorded, inputs.pods.get)
    every = {**inputs.recorded, **{endpoint.id: endpoint for endpoint in present}}
    kept = (without_loras(inputs.view(endpoint), given_up) for endpoint in every.values())
    return former("", [endpoint for endpoint in kept if endpoint.names], (), inputs.pods.get)


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


def holder(model: DynamoModel, others: Iterable[DynamoModel]) -> DynamoModel | None:
    """The other model that holds the name of this one's LoRA; None if this one holds it.

    A model that already has loaded it keeps it, else the oldest model gets it.
    """
    name = desired_lora_name(model)
    if not name:
        return None
    for sibling in sorted(others, key=_age):
        wants = desired_lora_name(sibling) == name
        if not wants and not sibling.metadata.deletion_timestamp and _holds(sibling, name):
            return sibling
        if wants and _claim(sibling, name) < _claim(model, name):
            return sibling
    return None


def desired_lora_names(others: Iterable[DynamoModel]) -> frozenset[str]:
    """The names of the LoRAs that these models want to load."""
    return frozenset(filter(None, map(desired_lora_name, others)))


def _claim(model: DynamoModel, name: str) -> tuple[bool, str, str]:
    """Sort key of the models that want a LoRA; the smallest gets it."""
    return not _holds(model, name), *_age(model)


def _age(model: DynamoModel) -> tuple[str, str]:
    return model.metadata.creation_timestamp or "", model.metadata.uid


def _holds(model: DynamoModel, name: str) -> bool:
    status = model.status
    return any(
        name in (endpoint.loaded_name, endpoint.tried_name, *endpoint.leftovers)
        for endpoint in (*status.endpoints, *status.former_endpoints)
    )


def concerns(changed: DynamoModel, sibling: DynamoModel) -> bool:
    """Whether a change of one model may affect which LoRA the other holds."""
    mine, theirs = desired_lora_name(changed), desired_lora_name(sibling)
    if theirs and (theirs == mine or _holds(changed, theirs)):
        return True
    return bool(mine) and _holds(sibling, mine)
