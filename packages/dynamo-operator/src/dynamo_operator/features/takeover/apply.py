"""Take over the workloads of an earlier operator without restarting their pods.

`features.takeover.plan` decides what stays. This module collects the evidence: whether a workload was
rendered from the current spec, or a user has edited the spec since the earlier operator last read it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from dynamo_operator import FIELD_MANAGER, labels
from dynamo_operator.component.api import DynamoComponentDeployment, is_worker
from dynamo_operator.features.takeover.plan import (
    WORKLOADS,
    Origin,
    has_kept_templates,
    has_same_pods,
    is_of_earlier_operator,
    spec_digest,
    starts_to_drain,
    with_kept_templates,
    without_new_drain,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import LiveObjects
from kube_runtime.types.meta import Object, Resource, content_of, key_of


def adopted_workloads(
    component: DynamoComponentDeployment, desired: Iterable[Object], live: LiveObjects
) -> Iterator[Object]:
    """Return the objects of a component; workloads keep an earlier operator's templates where possible."""
    origin = component_origin(component)
    return (_adopted(workload, live, origin) for workload in desired)


def adopted_components(desired: Sequence[Object], live: LiveObjects) -> tuple[Object, ...]:
    """Return the objects of a graph; a component taken over with an unchanged spec is annotated so."""
    return tuple(annotated(body, live.get((body["kind"], key_of(body)))) for body in desired)


def adopted_set(desired: Sequence[Object], live: LiveObjects, origin: Origin) -> tuple[Object, ...]:
    """The objects of a graph on Grove; its set keeps an earlier operator's templates where possible.

    `origin` is that of the set, as `read_set_origin` returns it.
    """
    return tuple(_adopted(body, live, origin) for body in desired)


def may_start_to_drain(component: DynamoComponentDeployment, live: LiveObjects) -> bool:
    """Whether running workers of a component have no `preStop` yet."""
    if not is_worker(component.spec):
        return False
    return any(
        b'"preStop"' not in _spec(workload) for (kind, _), workload in live.items() if kind in WORKLOADS
    )


def set_starts_to_drain(desired: Iterable[Object], live: LiveObjects) -> bool:
    """Whether applying a PodCliqueSet would add a `preStop` to running pods."""
    return any(
        starts_to_drain(body, _spec(running))
        for body in desired
        if (running := _running(body, live)) is not None
    )


def without_new_drains(
    desired: Iterable[Object], undrained: Iterable[Object], live: LiveObjects
) -> Iterator[Object]:
    """Return the objects to apply, without drain periods that would be the only reason to restart pods.

    `undrained` are the same objects in the same order, rendered without drain periods.
    """
    for ours, earlier in zip(desired, undrained, strict=True):
        running = _running(ours, live)
        if running is not None and starts_to_drain(ours, _spec(running)):
            yield without_new_drain(ours, earlier, content_of(running))
        else:
            yield ours


def component_origin(component: DynamoComponentDeployment) -> Origin:
    """Whether an earlier operator rendered the workloads of a component from its current spec.

    For a component of a graph the graph controller decides that, and records it in the write that takes the
    component over.
    """
    owner, annotations = component.metadata.controller, component.metadata.annotations
    is_of_graph = owner is not None and owner.kind == DynamoGraphDeployment.KIND.name
    if is_of_graph and not is_of_earlier_operator(annotations):
        return Origin.CURRENT if labels.ADOPTED_SPEC in annotations else Origin.OUTDATED
    if not _is_carried_out(component):
        # Decide now: our own status is about to replace the only evidence.
        return Origin.OUTDATED
    return Origin.UNDECIDED if is_of_graph else Origin.CURRENT


def annotated(desired: Object, live: Resource | None) -> Object:
    """Return the component to apply, annotated if it is taken over with an unchanged spec."""
    if not isinstance(live, DynamoComponentDeployment):
        return desired
    annotations = live.metadata.annotations
    is_earlier = is_of_earlier_operator(annotations)
    if not is_earlier and labels.ADOPTED_SPEC not in annotations:
        return desired
    spec = msgspec.convert(desired, DynamoComponentDeployment).spec
    digest = spec_digest(spec)
    is_taken_over = is_earlier and _is_carried_out(live) and has_same_pods(spec, live.spec)
    if not is_taken_over and annotations.get(labels.ADOPTED_SPEC) != digest:
        return desired
    metadata = desired["metadata"]
    note = {**metadata.get("annotations", {}), labels.ADOPTED_SPEC: digest}
    return {**desired, "metadata": {**metadata, "annotations": note}}


def _is_carried_out(component: DynamoComponentDeployment) -> bool:
    """Whether the status shows that an operator has observed the newest spec."""
    observed = component.status.observed_generation
    return not observed or observed >= component.metadata.generation


def _running(desired: Object, live: LiveObjects) -> Resource | None:
    """The live workload; None if it does not exist or the object is of another kind."""
    return live.get((desired["kind"], key_of(desired))) if desired["kind"] in WORKLOADS else None


def _spec(live: Resource) -> bytes:
    """The spec as JSON text; empty if the cache does not keep it as text."""
    spec = getattr(live, "spec", None)
    return bytes(spec) if isinstance(spec, msgspec.Raw) else b""


def _adopted(desired: Object, live: LiveObjects, origin: Origin) -> Object:
    running = _running(desired, live)
    if running is None:
        return desired
    is_kept = has_kept_templates(running.metadata.annotations)
    return with_kept_templates(desired, content_of(running), origin) if is_kept else desired


def set_origin(of_graph: Sequence[Object], of_set: Sequence[Object]) -> Origin:
    """Whether a PodCliqueSet was rendered from the current graph, by the managed fields of both.

    An earlier operator writes the status of a graph, or its set, after each edit that it observes. So it
    has not observed a spec that was written after both.
    """
    earlier_managers = {entry["manager"] for entry in of_set if _owns_mark(entry)}
    observed = [_time(entry) for entry in (*of_graph, *of_set) if entry.get("manager") in earlier_managers]
    edited = [
        _time(entry)
        for entry in of_graph
        if not entry.get("subresource")
        and "f:spec" in entry.get("fieldsV1", {})
        and entry.get("manager") not in {*earlier_managers, FIELD_MANAGER}
    ]
    return Origin.OUTDATED if max(edited, default="") > max(observed, default="") else Origin.CURRENT


def _owns_mark(entry: Object) -> bool:
    metadata: Any = entry.get("fieldsV1", {}).get("f:metadata", {})
    return f"f:{labels.LAST_APPLIED_GENERATION}" in metadata.get("f:annotations", {})


def _time(entry: Object) -> str:
    return str(entry.get("time") or "")
