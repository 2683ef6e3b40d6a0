"""The status of a DynamoModel: its endpoints, how many serve it, and why the others do not.

Only endpoints of a LoRA become ready. The operator does not call those of a base model, so none is ever
ready, and the model is healthy all the same. A restarted operator knows nothing but this status: what is not
in it was never done.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from datetime import datetime

import msgspec

from dynamo_operator.component import diagnosis
from dynamo_operator.models.api import (
    DynamoModel,
    DynamoModelSpec,
    DynamoModelStatus,
    EndpointInfo,
    ModelReason,
)
from dynamo_operator.models.plan import Endpoint, EndpointId, Lora, ModelInputs, lora_of, services
from dynamo_operator.shared.conditions import StatusEvent, pause_over
from dynamo_operator.shared.problems import Problem
from kube_runtime.times import instant, rfc3339
from kube_runtime.types.meta import Condition, condition, new_condition

WAITING = "waiting for pod"
RESTARTED = "a container restarted; querying the LoRAs of the worker"

_ENDPOINT_BYTES = 1 << 20
_MESSAGE_BYTES = 1 << 18
"""Bytes of a status for endpoints and for their messages. With the rest of the object they stay well below
1.5 MiB, which etcd refuses."""


def is_ready(lora: Lora | None, endpoint: Endpoint) -> bool:
    """Whether the endpoint serves the LoRA."""
    if lora is None or endpoint.is_unconfirmed:
        return False
    return endpoint.is_callable and endpoint.loaded == lora


def listed(status: DynamoModelStatus) -> tuple[EndpointInfo, ...]:
    """The present endpoints in a status, then the former ones."""
    return (*status.endpoints, *status.former_endpoints)


def remembered(model: DynamoModel) -> dict[EndpointId, Endpoint]:
    """The endpoints in the model's status, with what was done there."""
    endpoints = (_endpoint(info, lora_of(model.spec)) for info in listed(model.status))
    return {endpoint.id: endpoint for endpoint in endpoints}


def _endpoint(info: EndpointInfo, lora: Lora | None) -> Endpoint:
    tried = Lora(info.tried_name, info.tried_uri) if info.tried_name else None
    loaded = Lora(info.loaded_name, info.loaded_uri) if info.loaded_name else None
    if info.ready and loaded is None:
        tried = lora  # an earlier operator, which did not record what it had loaded
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
        attempted_at=instant(info.last_attempt_time),
        message="" if info.message.startswith((WAITING, RESTARTED)) else info.message,
    )


def invalid_status(model: DynamoModel, problems: Sequence[Problem]) -> DynamoModelStatus:
    """The status of a model with an invalid spec; its endpoints stay as last observed."""
    text = f"Validation failed: {'; '.join(str(problem) for problem in problems)}"
    invalid = new_condition(model, "Valid", "False", ModelReason.INVALID, text)
    over = pause_over(model.metadata.generation, model.status.conditions)
    return model.status.with_conditions([invalid, *over])


def model_status(
    model: DynamoModel,
    spec: DynamoModelSpec,
    inputs: ModelInputs,
    now: datetime,
    *,
    endpoints: Sequence[Endpoint],
    former: Sequence[Endpoint] = (),
    holder: str = "",
) -> DynamoModelStatus:
    """The status of a valid model with these endpoints, after what calls that are due or running may change.

    `holder` is the other model that holds the name of the LoRA, "" without one.
    """
    lora = None if holder else lora_of(spec)
    serving_graphs = {endpoint.graph for endpoint in endpoints if endpoint.graph and is_ready(lora, endpoint)}
    infos = tuple(_info(lora, endpoint, inputs, now, serving_graphs) for endpoint in endpoints)
    unlisted = tuple(_info(None, endpoint, inputs, now, serving_graphs) for endpoint in former)
    fitting = _fitting(infos, beside=unlisted)
    serving = (inputs.pods.get(name) for name in {endpoint.pod_name for endpoint in endpoints})
    readiness = _endpoints_ready(spec, inputs, infos, left_out=len(infos) - len(fitting), holder=holder)
    return DynamoModelStatus(
        endpoints=_shortened(fitting),
        former_endpoints=_shortened(unlisted),
        ready_endpoints=sum(info.ready for info in infos),
        total_endpoints=len(infos),
        lora_fallback_covered_endpoints=sum(info.fallback_covered for info in infos),
        ready_pods=sum(pod is not None and diagnosis.is_ready(pod) for pod in serving),
        conditions=(
            new_condition(model, "Valid", "True", ModelReason.VALID, "DynamoModel spec is valid"),
            new_condition(model, "ServicesFound", *_services_found(spec, inputs, infos)),
            new_condition(model, "EndpointsReady", *readiness),
            *pause_over(model.metadata.generation, model.status.conditions),
        ),
    )


def _fitting(infos: Sequence[EndpointInfo], *, beside: Sequence[EndpointInfo]) -> tuple[EndpointInfo, ...]:
    room = _ENDPOINT_BYTES - sum(map(_size, beside))
    kept: set[EndpointId] = set()
    for info in sorted(infos, key=lambda info: not (info.loaded_name or info.tried_name or info.leftovers)):
        room -= _size(info)
        if room < 0:
            break
        kept.add(_id(info))
    return tuple(info for info in infos if _id(info) in kept)


def _size(info: EndpointInfo) -> int:
    return len(msgspec.json.encode(info)) - len(msgspec.json.encode(info.message))


def _id(info: EndpointInfo) -> EndpointId:
    return info.pod_uid, info.address


def _shortened(infos: Sequence[EndpointInfo]) -> tuple[EndpointInfo, ...]:
    limit = _MESSAGE_BYTES // max(1, len(infos))
    return tuple(
        info
        if len(info.message.encode()) <= limit
        else msgspec.structs.replace(info, message=info.message.encode()[:limit].decode(errors="ignore"))
        for info in infos
    )


def _info(
    lora: Lora | None, endpoint: Endpoint, inputs: ModelInputs, now: datetime, serving_graphs: Container[str]
) -> EndpointInfo:
    message, has_lora = endpoint.message, lora is not None
    if not endpoint.is_callable and has_lora:
        pod = inputs.pods.get(endpoint.pod_name)
        blockage = diagnosis.pod_report(pod, now).blockage if pod is not None else None
        causes = (
            (" ".join(filter(None, (blockage.container, blockage.word))), blockage.message)
            if blockage
            else ()
        )
        message = ": ".join(filter(None, (WAITING, *causes)))
    elif endpoint.is_unconfirmed and has_lora:
        message = RESTARTED
    # Other workers of its graph serve the LoRA, so a prefill worker without a LoRA API does not matter.
    is_covered = endpoint.is_unable and endpoint.is_prefill and endpoint.graph in serving_graphs
    return EndpointInfo(
        address=endpoint.address,
        pod_name=endpoint.pod_name,
        pod_uid=endpoint.pod_uid,
        ready=is_ready(lora, endpoint),
        message=message,
        loaded_name=endpoint.loaded.name if endpoint.loaded else "",
        loaded_uri=endpoint.loaded.uri if endpoint.loaded else "",
        tried_name=endpoint.tried.name if endpoint.tried else "",
        tried_uri=endpoint.tried.uri if endpoint.tried else "",
        leftovers=endpoint.leftovers,
        reloading=endpoint.is_reloading and has_lora,
        unable=endpoint.is_unable,
        fallback_covered=is_covered and has_lora,
        lora_fallback_covered=is_covered and has_lora,
        failures=endpoint.failures,
        last_attempt_time=rfc3339(endpoint.attempted_at) if endpoint.attempted_at else None,
    )


def _services_found(
    spec: DynamoModelSpec, inputs: ModelInputs, infos: Sequence[EndpointInfo]
) -> tuple[str, ModelReason, str]:
    found = services(spec.base_model_name, inputs.slices)
    if found and infos:
        return "True", ModelReason.SERVICES_FOUND, f"Found {len(found)} service(s)"
    text = "No services associated with endpoint slices" if infos else _no_slices(spec)
    return "False", ModelReason.NO_SERVICES, text


def _endpoints_ready(
    spec: DynamoModelSpec, inputs: ModelInputs, infos: Sequence[EndpointInfo], *, left_out: int, holder: str
) -> tuple[str, ModelReason, str]:
    total, ready = len(infos), sum(info.ready for info in infos)
    covered = sum(info.fallback_covered for info in infos)
    if holder:
        text = f"LoRA {spec.model_name} of {spec.base_model_name} belongs to DynamoModel {holder}"
        return "False", ModelReason.CONFLICT, text
    if not total:
        text = f"{_no_slices(spec)}; {inputs.lack}" if inputs.lack else _no_slices(spec)
        return "False", ModelReason.NO_ENDPOINTS, text
    if lora_of(spec) is None:
        return "True", ModelReason.DISCOVERED, f"Found {total} endpoint(s) for base model"
    if ready + covered == total and not left_out:
        also = f"; {covered} prefill worker(s) cannot manage LoRAs" if covered else ""
        return "True", ModelReason.ALL_READY, f"All {ready} endpoint(s) are ready{also}"
    text = f"Found {ready} ready endpoint(s) out of {total} total"
    if inputs.silence:
        return "False", ModelReason.NOT_CALLED, f"{text}; {inputs.silence}"
    if left_out:
        text += f"; skipped {left_out} endpoint(s): the status has no room for them"
    return "False", ModelReason.NOT_READY if ready else ModelReason.NONE_READY, f"{text}{_cause(infos)}"


def _cause(infos: Sequence[EndpointInfo]) -> str:
    """The most frequent cause of endpoints that are not ready; "" while their first calls run."""
    missing = (info for info in infos if not info.ready and not info.fallback_covered)
    causes = Counter(info.message for info in missing if info.message)
    if not causes:
        return ""
    # The same one of equally frequent causes each time, so that the status does not change.
    message, count = min(causes.items(), key=lambda cause: (-cause[1], cause[0]))
    return f"; {count} of them: {message}"


def _no_slices(spec: DynamoModelSpec) -> str:
    return f"No endpoint slices found for base model {spec.base_model_name}"


def is_recorded(model: DynamoModel, endpoint: Endpoint) -> bool:
    """Whether the stored status records what the endpoint has loaded and may have loaded."""
    same = (_endpoint(info, None) for info in listed(model.status) if _id(info) == endpoint.id)
    records = ((one.loaded, one.tried, one.leftovers) for one in same)
    return (endpoint.loaded, endpoint.tried, endpoint.leftovers) in records


def recorded_places(status: DynamoModelStatus) -> frozenset[EndpointId]:
    """The places of the endpoints in a status; others did not fit."""
    return frozenset(map(_id, listed(status)))


def changes_only_failures(model: DynamoModel, status: DynamoModelStatus) -> bool:
    """Whether the status differs from the stored one only in the number of failures of endpoints."""
    stored, updated = (
        [
            msgspec.structs.replace(info, failures=min(info.failures, 1), last_attempt_time=None)
            for info in listed(reported)
        ]
        for reported in (model.status, status)
    )
    return stored == updated


def model_status_events(before: DynamoModel, after: DynamoModel) -> Iterator[StatusEvent]:
    """The Events between two statuses of a model."""
    old, new = (_condition(model, "Valid") for model in (before, after))
    if new.status == "False" and old.message != new.message:
        yield StatusEvent(new.reason, new.message.removeprefix("Validation failed: "), is_warning=True)
    old, new = (_condition(model, "EndpointsReady") for model in (before, after))
    base = after.spec.base_model_name if after.spec else ""
    total, ready = after.status.total_endpoints or 0, after.status.ready_endpoints or 0
    failed_before, failed = (
        sum(one.failures > 0 and not one.fallback_covered for one in model.status.endpoints)
        for model in (before, after)
    )
    if failed and not failed_before:
        cause = new.message.partition("; ")[2]
        text = f"Some endpoints failed to load LoRA: {failed} task(s) failed"
        text = f"{text}; {cause}" if cause else text
        yield StatusEvent("PartialEndpointFailure", text, is_warning=True)
    has_lost = old.reason == ModelReason.ALL_READY and ready < (before.status.ready_endpoints or 0)
    if new.reason in (ModelReason.NOT_READY, ModelReason.NONE_READY):
        if has_lost or (failed and not failed_before):  # one more pod is not a loss
            text = f"Only {ready} of {total} endpoints ready for base model {base}"
            yield StatusEvent("NotReady", text, is_warning=True)
    elif new.reason != old.reason:
        match new.reason:
            case ModelReason.ALL_READY:
                yield StatusEvent("EndpointsReady", f"All {total} endpoints ready for base model {base}")
            case ModelReason.DISCOVERED:
                yield StatusEvent(
                    "EndpointsDiscovered", f"Discovered {total} endpoints for base model {base}"
                )
            case ModelReason.NO_ENDPOINTS:
                yield StatusEvent("NoEndpointsFound", new.message, is_warning=True)
            case ModelReason.CONFLICT | ModelReason.NOT_CALLED:
                yield StatusEvent(new.reason, new.message, is_warning=True)
            case _:
                pass


def _condition(model: DynamoModel, type_: str) -> Condition:
    return condition(model.status.conditions, type_) or Condition(type_, "")
