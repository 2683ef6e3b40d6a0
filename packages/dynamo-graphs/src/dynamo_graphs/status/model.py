"""What is true of a model: its endpoints, how many serve it, and why the others do not.

`ready` has a meaning for a LoRA only. The endpoints of a base model get no calls, so none is ever ready,
and the model is healthy all the same. The status is also the memory of a restarted operator: what is not in
it was never done.
"""

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from dynamo_graphs.api.model import DynamoModel, DynamoModelSpec, DynamoModelStatus, EndpointInfo
from dynamo_graphs.plan.lora_calls import Endpoint, EndpointId, Lora
from dynamo_graphs.plan.model import ModelInputs, ModelPlan, ModelReason, lora_of
from dynamo_graphs.status.pause import pause_over
from dynamo_graphs.status.pods import is_ready as is_pod_ready
from dynamo_graphs.status.pods import pod_report
from dynamo_graphs.validation import Problem
from kube_runtime.text import cut
from kube_runtime.times import rfc3339
from kube_runtime.types.meta import Condition

WAITING = "waiting for pod"
RESTARTED = "a container restarted; querying the LoRAs of the worker"

_MESSAGE_LIMIT = 1024

_ENDPOINT_BYTES = 1 << 20
_MESSAGE_BYTES = 1 << 18
"""How much of a status may be endpoints, and of those messages: an object of 1.5 MiB is refused by etcd.
Both together and the rest of the object stay well below that."""


@dataclass(frozen=True, slots=True)
class ObservedModel:
    """What is seen of a valid model now.

    `services` are those that the endpoints were found through. `former` are pods that still have to
    unload. `holder` is the model that has the adapter's name; "" means: it is this one's. `lack` says why
    there are no endpoints. `trouble` returns why a pod is not ready, by name, "" if unknown.
    `ready_pods` counts the pods that are. `silence` says why no worker is called, "" if they are.
    """

    services: Sequence[str]
    endpoints: Sequence[Endpoint]
    former: Sequence[Endpoint] = ()
    holder: str = ""
    lack: str = ""
    trouble: Callable[[str], str] = lambda _: ""
    ready_pods: int = 0
    silence: str = ""


def observed(plan: ModelPlan, inputs: ModelInputs) -> ObservedModel:
    """What is seen of a model, with what the calls that are due or running may do."""
    pods = (inputs.pods.get(name) for name in {endpoint.pod_name for endpoint in plan.present})
    return ObservedModel(
        services=plan.services,
        endpoints=plan.seen,
        former=plan.seen_former,
        holder=plan.holder,
        lack="" if plan.present else inputs.lack,
        trouble=lambda name: _trouble(inputs, name),
        ready_pods=sum(pod is not None and is_pod_ready(pod) for pod in pods),
        silence=inputs.silence,
    )


def _trouble(inputs: ModelInputs, name: str) -> str:
    """Why a pod is not ready; "" if unknown."""
    pod = inputs.pods.get(name)
    blockage = pod_report(pod, inputs.now).blockage if pod is not None else None
    if blockage is None:
        return ""
    subject = " ".join(filter(None, (blockage.container, blockage.word)))
    return f"{subject}: {blockage.message}" if blockage.message else subject


def is_ready(adapter: Lora | None, endpoint: Endpoint) -> bool:
    """Whether requests for the adapter can go to the endpoint."""
    if adapter is None or endpoint.is_unconfirmed:
        return False
    return endpoint.is_callable and endpoint.loaded == adapter


def remembered(model: DynamoModel) -> dict[EndpointId, Endpoint]:
    """What the model's status says of its endpoints, as far as it records what was done there."""
    infos = (*model.status.endpoints, *model.status.former_endpoints)
    endpoints = (_remembered(info, lora_of(model.spec)) for info in infos)
    return {endpoint.id: endpoint for endpoint in endpoints}


def _remembered(info: EndpointInfo, adapter: Lora | None) -> Endpoint:
    tried = Lora(info.tried_name, info.tried_uri) if info.tried_name else None
    loaded = Lora(info.loaded_name, info.loaded_uri) if info.loaded_name else None
    if info.ready and loaded is None:
        tried = adapter  # noted by an earlier operator, which did not say what it had loaded
    at = info.last_attempt_time
    return Endpoint(
        info.address,
        info.pod_uid,
        is_callable=False,
        pod_name=info.pod_name,
        loaded=loaded,
        tried=tried,
        leftovers=info.leftovers,
        is_reloading=info.reloading,
        is_unable=info.unable,
        failures=info.failures,
        attempted_at=datetime.fromisoformat(at) if at else None,
        message="" if info.message.startswith((WAITING, RESTARTED)) else info.message,
    )


def invalid_status(model: DynamoModel, problems: Sequence[Problem]) -> DynamoModelStatus:
    """The status of a model whose spec cannot be followed; what was last seen of its endpoints stays."""
    text = f"Validation failed: {'; '.join(str(problem) for problem in problems)}"
    invalid = _condition(model, "Valid", "False", ModelReason.INVALID, text)
    over = pause_over(model.metadata.generation, model.status.conditions)
    return model.status.with_conditions([invalid, *over])


def model_status(
    model: DynamoModel, spec: DynamoModelSpec, seen: ObservedModel
) -> DynamoModelStatus:
    """The status of a valid model."""
    adapter = None if seen.holder else lora_of(spec)
    able = {endpoint.graph for endpoint in seen.endpoints if is_ready(adapter, endpoint)} - {""}
    infos = tuple(_info(adapter, endpoint, seen, able) for endpoint in seen.endpoints)
    former = tuple(_info(None, endpoint, seen, able) for endpoint in seen.former)
    listed = _fitting(infos, beside=former)
    valid = ModelReason.VALID, "DynamoModel spec is valid"
    return DynamoModelStatus(
        endpoints=_shortened(listed),
        former_endpoints=_shortened(former),
        ready_endpoints=sum(info.ready for info in infos),
        total_endpoints=len(infos),
        ready_pods=seen.ready_pods,
        conditions=(
            _condition(model, "Valid", "True", *valid),
            _services_found(model, spec, seen),
            _endpoints_ready(model, spec, adapter, infos, seen, len(infos) - len(listed)),
            *pause_over(model.metadata.generation, model.status.conditions),
        ),
    )


def _fitting(
    infos: Sequence[EndpointInfo], *, beside: Sequence[EndpointInfo]
) -> tuple[EndpointInfo, ...]:
    """As many endpoints as there is room for in a status; those of which something is remembered first."""
    room = _ENDPOINT_BYTES - sum(map(_size, beside))
    kept: set[int] = set()
    for number in sorted(range(len(infos)), key=lambda number: not _held_by(infos[number])):
        room -= _size(infos[number])
        if room < 0:
            break
        kept.add(number)
    return tuple(info for number, info in enumerate(infos) if number in kept)


def _size(info: EndpointInfo) -> int:
    """Bytes of it in a status, without its message."""
    return len(msgspec.json.encode(info)) - len(msgspec.json.encode(info.message))


def _held_by(info: EndpointInfo) -> bool:
    return bool(info.loaded_name or info.tried_name or info.leftovers)


def _shortened(infos: Sequence[EndpointInfo]) -> tuple[EndpointInfo, ...]:
    """The endpoints with as much of their messages as there is room for."""
    if not infos:
        return ()
    limit = _MESSAGE_BYTES // len(infos)
    return tuple(
        info
        if len(info.message.encode()) <= limit
        else msgspec.structs.replace(
            info, message=info.message.encode()[:limit].decode(errors="ignore")
        )
        for info in infos
    )


def _info(
    adapter: Lora | None, endpoint: Endpoint, seen: ObservedModel, able: Container[str]
) -> EndpointInfo:
    message, is_adapters = endpoint.message, adapter is not None
    if not endpoint.is_callable and is_adapters:
        trouble = seen.trouble(endpoint.pod_name)
        message = f"{WAITING}: {trouble}" if trouble else WAITING
    elif endpoint.is_unconfirmed and is_adapters:
        message = RESTARTED
    # Others of its graph make up for a prefill worker that has no adapter API.
    is_covered = endpoint.is_unable and endpoint.is_prefill and endpoint.graph in able
    return EndpointInfo(
        address=endpoint.address,
        pod_name=endpoint.pod_name,
        pod_uid=endpoint.pod_uid,
        ready=is_ready(adapter, endpoint),
        message=message,
        loaded_name=endpoint.loaded.name if endpoint.loaded else "",
        loaded_uri=endpoint.loaded.uri if endpoint.loaded else "",
        tried_name=endpoint.tried.name if endpoint.tried else "",
        tried_uri=endpoint.tried.uri if endpoint.tried else "",
        leftovers=endpoint.leftovers,
        reloading=endpoint.is_reloading and is_adapters,
        unable=endpoint.is_unable,
        fallback_covered=is_covered and is_adapters,
        failures=endpoint.failures,
        last_attempt_time=rfc3339(endpoint.attempted_at) if endpoint.attempted_at else None,
    )


def _services_found(model: DynamoModel, spec: DynamoModelSpec, seen: ObservedModel) -> Condition:
    if seen.services and seen.endpoints:
        text = f"Found {len(seen.services)} service(s)"
        return _condition(model, "ServicesFound", "True", ModelReason.SERVICES_FOUND, text)
    no_services = "No services associated with endpoint slices"
    text = no_services if seen.endpoints else _no_slices(spec)
    return _condition(model, "ServicesFound", "False", ModelReason.NO_SERVICES, text)


def _endpoints_ready(
    model: DynamoModel,
    spec: DynamoModelSpec,
    adapter: Lora | None,
    infos: Sequence[EndpointInfo],
    seen: ObservedModel,
    left_out: int,
) -> Condition:
    total, ready = len(infos), sum(info.ready for info in infos)
    covered = sum(info.fallback_covered for info in infos)
    if seen.holder:
        text = (
            f"LoRA {spec.model_name} of {spec.base_model_name} belongs to DynamoModel {seen.holder}"
        )
        outcome = "False", ModelReason.CONFLICT, text
    elif not total:
        text = f"{_no_slices(spec)}; {seen.lack}" if seen.lack else _no_slices(spec)
        outcome = "False", ModelReason.NO_ENDPOINTS, text
    elif adapter is None:
        text = f"Found {total} endpoint(s) for base model"
        outcome = "True", ModelReason.DISCOVERED, text
    elif ready + covered == total and not left_out:
        also = f"; {covered} prefill worker(s) cannot manage LoRAs" if covered else ""
        outcome = "True", ModelReason.ALL_READY, f"All {ready} endpoint(s) are ready{also}"
    elif seen.silence:
        text = f"Found {ready} ready endpoint(s) out of {total} total; {seen.silence}"
        outcome = "False", ModelReason.NOT_CALLED, text
    else:
        reason = ModelReason.NOT_READY if ready else ModelReason.NONE_READY
        text = f"Found {ready} ready endpoint(s) out of {total} total"
        if left_out:
            text += f"; skipped {left_out} endpoint(s): the status has no room for them"
        outcome = "False", reason, f"{text}{_cause(infos)}"
    return _condition(model, "EndpointsReady", *outcome)


def _cause(infos: Sequence[EndpointInfo]) -> str:
    """What keeps most of the others; nothing while their first calls run."""
    missing = (info for info in infos if not info.ready and not info.fallback_covered)
    causes = Counter(info.message for info in missing if info.message)
    if not causes:
        return ""
    # Of equally frequent ones the same is reported each time, so that the status does not change for nothing.
    message, count = min(causes.items(), key=lambda cause: (-cause[1], cause[0]))
    return f"; {count} of them: {message}"


def _no_slices(spec: DynamoModelSpec) -> str:
    return f"No endpoint slices found for base model {spec.base_model_name}"


def _condition(
    model: DynamoModel, type_: str, status: str, reason: ModelReason, text: str
) -> Condition:
    text, generation = cut(text, _MESSAGE_LIMIT), model.metadata.generation
    return Condition(type_, status, reason, text, observed_generation=generation)


def noted(model: DynamoModel, endpoint: Endpoint) -> bool:
    """Whether the stored status says already what that endpoint has and may have."""
    infos = (*model.status.endpoints, *model.status.former_endpoints)
    same = (info for info in infos if (info.pod_uid, info.address) == endpoint.id)
    return any(_held(_remembered(info, None)) == _held(endpoint) for info in same)


def places(status: DynamoModelStatus) -> frozenset[EndpointId]:
    """The endpoints in a status, which need not be all: it has no room for more."""
    infos = (*status.endpoints, *status.former_endpoints)
    return frozenset((info.pod_uid, info.address) for info in infos)


def tells_only_failures(model: DynamoModel, status: DynamoModelStatus) -> bool:
    """Whether nothing is new of the endpoints but that some failed once more."""
    stored = map(_untallied, (*model.status.endpoints, *model.status.former_endpoints))
    updated = map(_untallied, (*status.endpoints, *status.former_endpoints))
    return list(stored) == list(updated)


def _untallied(info: EndpointInfo) -> EndpointInfo:
    """The status of the endpoint, except how often it failed after the first time."""
    return msgspec.structs.replace(info, failures=min(info.failures, 1), last_attempt_time=None)


def _held(endpoint: Endpoint) -> tuple[object, ...]:
    return endpoint.loaded, endpoint.tried, endpoint.leftovers
