"""Decide what one reconcile of an adapter writes: the replicas of its service, and its status.

The adapter takes precedence over the graph's number. An autoscaler computes from the numbers in its status,
so `replicas` is the observed number, never the requested one, and absent until it is known.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import has_adapter
from dynamo_operator.component.service import IN_SERVICE, base_replicas, most_replicas, selector
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapterSpec as AdapterSpec
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapterStatus as AdapterStatus
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import REJECTED_RETRY_SECONDS, ScalingReason
from dynamo_operator.shared.problems import MOST_REPLICAS, Problem, name_problems, shown
from kube_runtime.apply.result import Obstructed, controls
from kube_runtime.errors import NotFound
from kube_runtime.times import rfc3339
from kube_runtime.types.meta import new_condition


@dataclass(frozen=True, slots=True)
class ScalingInputs:
    """The graph that an adapter names; None if it does not exist.

    It `is_unusable` while it is being deleted, and if it cannot be read: its last readable spec is outdated.
    """

    graph: DynamoGraphDeployment | None = None
    is_unusable: bool = False


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """What to write for an adapter: the `replicas` of its `service`, then its status, each unless it is None.

    `event` is the text of the Event about it, a warning with `is_refused`. A status of progress `may_wait`.
    """

    status: AdapterStatus | None = None
    service: str = ""
    replicas: int | None = None
    event: str = ""
    is_refused: bool = False
    may_wait: bool = False
    requeue_after_seconds: float | None = None


def adapter_problems(adapter: Adapter) -> Iterator[Problem]:
    """Report names that no graph and no service can have, and too many replicas."""
    if adapter.spec is None:
        return
    if adapter.spec.replicas > MOST_REPLICAS:
        yield Problem("spec.replicas", f"must be at most {MOST_REPLICAS}, got {adapter.spec.replicas}")
    graph, service = adapter.spec.dgd_ref.name, adapter.spec.dgd_ref.service_name
    yield from name_problems(graph, "spec.dgdRef.name", "a DynamoGraphDeployment")
    if len(service) > names.SUBDOMAIN_LIMIT or not IN_SERVICE.search(service):
        expected = f"expected at most {names.SUBDOMAIN_LIMIT} characters, one of them a letter or digit"
        yield Problem("spec.dgdRef.serviceName", f"invalid service name {shown(service)} ({expected})")


def decide(adapter: Adapter, inputs: ScalingInputs, now: datetime) -> ScalingDecision:
    """Decide what to write for an adapter."""
    spec, graph = adapter.spec, inputs.graph
    held: tuple[ScalingReason, str] | None  # until a change of the adapter or of the graph
    if spec is None or inputs.is_unusable:
        return ScalingDecision()
    if adapter.metadata.is_true(labels.PAUSED):
        held = ScalingReason.PAUSED, f"{labels.PAUSED} is true: the operator ignores this adapter"
    elif graph is None:
        text = f"DynamoGraphDeployment {spec.dgd_ref.name} not found"
        held = ScalingReason.GRAPH_NOT_FOUND, next(map(str, adapter_problems(adapter)), text)
    elif (held := _hold(adapter, spec, graph)) is None:
        return _scale(adapter, spec, graph, rfc3339(now))
    return ScalingDecision(_held_status(adapter, spec, graph, *held))


def after_failure(adapter: Adapter, inputs: ScalingInputs, failure: Obstructed | NotFound) -> ScalingDecision:
    """Decide what to report if the replicas cannot be written: an admission webhook may refuse the number."""
    if adapter.spec is None or isinstance(failure, NotFound):
        return ScalingDecision()  # the watch delivers the deletion, which wakes the adapter
    text = f"Failed to update DGD {failure.blocked.message.removeprefix(f'{failure.blocked.kind} ')}"
    status = _held_status(adapter, adapter.spec, inputs.graph, ScalingReason.REJECTED, text)
    return ScalingDecision(status, event=text, is_refused=True, requeue_after_seconds=REJECTED_RETRY_SECONDS)


def _scale(adapter: Adapter, spec: AdapterSpec, graph: DynamoGraphDeployment, now: str) -> ScalingDecision:
    service, reported = spec.dgd_ref.service_name, adapter.status.desired_replicas
    before = base_replicas(graph, service)
    if before != spec.replicas:
        status = _acting_status(adapter, spec, graph, now, is_written=True)
        return ScalingDecision(status, service, spec.replicas, _scaled_text(adapter, spec, before))
    # A number in the graph that our status lacks was written just before the process was stopped.
    is_scaled = reported is not None and reported != spec.replicas
    status = _acting_status(adapter, spec, graph, now if is_scaled else None)
    return ScalingDecision(status, may_wait=not is_scaled)


def _hold(
    adapter: Adapter, spec: AdapterSpec, graph: DynamoGraphDeployment
) -> tuple[ScalingReason, str] | None:
    """Why the adapter does not act; None if it does."""
    name, key = spec.dgd_ref.name, spec.dgd_ref.service_name
    own_name = names.component_name(name, key)
    if key not in graph.spec.services:
        services = ", ".join(sorted(graph.spec.services))
        text = f"Graph {name} has no service {key} (services: {services})"
        return ScalingReason.SERVICE_NOT_FOUND, next(map(str, adapter_problems(adapter)), text)
    if not has_adapter(graph.spec.services[key]):
        text = f"Graph {name} has no scaling adapter enabled for service {key}"
        return ScalingReason.DISABLED, text
    if not controls(graph, adapter) or adapter.metadata.name != own_name:
        # Of several adapters for one service, the one that the operator created for the graph acts.
        text = f"The adapter {own_name}, which the operator created, scales service {key} of graph {name}"
        return ScalingReason.SUPERSEDED, f"{text}; delete this one, which has no effect"
    if spec.replicas > (most := most_replicas(graph.spec.services[key])):
        return ScalingReason.REJECTED, f"spec.replicas is {spec.replicas} (limit {most})"
    if graph.metadata.is_true(labels.PAUSED):
        return ScalingReason.PAUSED, f"{labels.PAUSED} is true on graph {name}"
    if graph.metadata.is_true(labels.SUSPEND):
        return ScalingReason.SUSPENDED, f"Graph {name} is suspended; the adapter keeps its number"
    return None


def _scaled_text(adapter: Adapter, spec: AdapterSpec, before: int) -> str:
    text = f"Scaled service {spec.dgd_ref.service_name} from {before} to {spec.replicas} replicas"
    if adapter.status.desired_replicas == spec.replicas:
        return f"{text}: {adapter.KIND.name} {adapter.metadata.name} owns its number; scale that instead"
    author = adapter.metadata.replicas_set_by
    return f"{text}, requested by {author}" if author else text


def _held_status(
    adapter: Adapter,
    spec: AdapterSpec,
    graph: DynamoGraphDeployment | None,
    reason: ScalingReason,
    message: str,
) -> AdapterStatus:
    """The status of an adapter that does not act; it keeps the last scaling."""
    state = "Unknown" if reason is ScalingReason.PAUSED else "False"
    ready = new_condition(adapter, "Ready", state, reason, message)
    if adapter.metadata.is_true(labels.PAUSED):
        return adapter.status.with_conditions([ready])
    status = _observed(adapter, spec, graph).with_conditions([ready])
    if reason is ScalingReason.REJECTED:  # the newest spec was not applied
        return replace(status, observed_generation=adapter.status.observed_generation)
    return status


def _acting_status(
    adapter: Adapter,
    spec: AdapterSpec,
    graph: DynamoGraphDeployment,
    scaled_at: str | None = None,
    *,
    is_written: bool = False,
) -> AdapterStatus:
    """With `is_written` the replicas get into the graph's spec now; `scaled_at` is when, None if before."""
    status = _observed(adapter, spec, graph)
    key, desired, present = spec.dgd_ref.service_name, spec.replicas, status.replicas
    service = f"Service {key} of graph {graph.metadata.name}"
    number = "1 replica" if desired == 1 else f"{desired} replicas"
    # A status from before the change may name the same number by chance.
    is_current = not is_written and graph.status.observed_generation >= graph.metadata.generation
    if is_current and present == desired:
        state, reason, text = "True", ScalingReason.SCALED, f"{service} has {number}"
    else:
        # No present count here: it is in `replicas`, and each new text would be one more write.
        state, reason, text = "False", ScalingReason.SCALING, f"{service} is scaling to {number}"
    ready = new_condition(adapter, "Ready", state, reason, text)
    status = replace(status, conditions=(ready,), desired_replicas=desired)
    return replace(status, last_scale_time=scaled_at) if scaled_at else status


def _observed(adapter: Adapter, spec: AdapterSpec, graph: DynamoGraphDeployment | None) -> AdapterStatus:
    key = spec.dgd_ref.service_name
    service = graph.status.services.get(key) if graph else None
    present = service.replicas if service else None
    status = replace(adapter.status, observed_generation=adapter.metadata.generation, replicas=present)
    if graph and key in graph.spec.services:
        return replace(status, selector=selector(graph, key, max(spec.replicas, present or 0)))
    return status
