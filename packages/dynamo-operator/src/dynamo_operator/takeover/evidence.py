"""Take over the workloads of an earlier operator without restarting their pods.

`takeover.plan` decides what stays. This module collects the evidence: whether a workload was
rendered from the current spec, or a user has edited the spec since the earlier operator last read it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from dynamo_operator import FIELD_MANAGER, labels
from dynamo_operator.component.api import DynamoComponentDeployment, is_worker
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import LiveObjects
from dynamo_operator.takeover import plan
from kube_runtime.types.meta import Object, Resource, content_of, from_plain, key_of


def adopted(desired: Iterable[Object], live: LiveObjects, origin: plan.Origin) -> Iterator[Object]:
    """The objects; workloads, of that origin, keep an earlier operator's templates where possible."""
    for body in desired:
        running = _running(body, live)
        if running is None or not plan.has_kept_templates(running.metadata.annotations):
            yield body
        else:
            yield plan.with_kept_templates(body, content_of(running), origin)


def adopted_components(desired: Sequence[Object], live: LiveObjects) -> tuple[Object, ...]:
    """Return the objects of a graph; a component taken over with an unchanged spec is annotated so."""
    return tuple(annotated(body, live.get((body["kind"], key_of(body)))) for body in desired)


def may_start_to_drain(component: DynamoComponentDeployment, live: LiveObjects) -> bool:
    """Whether running workers of a component have no `preStop` yet."""
    return is_worker(component.spec) and any(
        b'"preStop"' not in _spec(workload) for (kind, _), workload in live.items() if kind in plan.WORKLOADS
    )


def set_starts_to_drain(desired: Iterable[Object], live: LiveObjects) -> bool:
    """Whether applying a PodCliqueSet would add a `preStop` to running pods."""
    return any(
        plan.starts_to_drain(body, _spec(running))
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
        if running is not None and plan.starts_to_drain(ours, _spec(running)):
            yield plan.without_new_drain(ours, earlier, content_of(running))
        else:
            yield ours


def component_origin(component: DynamoComponentDeployment) -> plan.Origin:
    """Whether an earlier operator rendered the workloads of a component from its current spec.

    For a component of a graph the graph controller decides that, and records it in the write that takes the
    component over.
    """
    owner, annotations = component.metadata.controller, component.metadata.annotations
    is_of_graph = owner is not None and owner.kind == DynamoGraphDeployment.KIND.name
    if is_of_graph and not plan.is_of_earlier_operator(annotations):
        return plan.Origin.CURRENT if labels.ADOPTED_SPEC in annotations else plan.Origin.OUTDATED
    if not _is_carried_out(component):
        # Decide now: our own status is about to replace the only evidence.
        return plan.Origin.OUTDATED
    return plan.Origin.UNDECIDED if is_of_graph else plan.Origin.CURRENT


def annotated(desired: Object, live: Resource | None) -> Object:
    """Return the component to apply, annotated if it is taken over with an unchanged spec."""
    if not isinstance(live, DynamoComponentDeployment):
        return desired
    annotations = live.metadata.annotations
    is_earlier = plan.is_of_earlier_operator(annotations)
    if not is_earlier and labels.ADOPTED_SPEC not in annotations:
        return desired
    spec = from_plain(desired, DynamoComponentDeployment).spec
    digest = plan.spec_digest(spec)
    is_taken_over = is_earlier and _is_carried_out(live) and plan.has_same_pods(spec, live.spec)
    if not is_taken_over and annotations.get(labels.ADOPTED_SPEC) != digest:
        return desired
    metadata = desired["metadata"]
    note = {**metadata.get("annotations", {}), labels.ADOPTED_SPEC: digest}
    return {**desired, "metadata": {**metadata, "annotations": note}}


def _is_carried_out(component: DynamoComponentDeployment) -> bool:
    observed = component.status.observed_generation
    return not observed or observed >= component.metadata.generation


def _running(desired: Object, live: LiveObjects) -> Resource | None:
    return live.get((desired["kind"], key_of(desired))) if desired["kind"] in plan.WORKLOADS else None


def _spec(live: Resource) -> bytes:
    spec = getattr(live, "spec", None)
    return bytes(spec) if isinstance(spec, msgspec.Raw) else b""  # not kept as JSON text


def set_origin(of_graph: Sequence[Object], of_set: Sequence[Object]) -> plan.Origin:
    """Whether a PodCliqueSet was rendered from the current graph, by the managed fields of both.

    An earlier operator writes the status of a graph, or its set, after each edit that it observes. So it
    has not observed a spec that was written after both.
    """
    mark = f"f:{labels.LAST_APPLIED_GENERATION}"
    earlier_managers = set[str]()
    for entry in of_set:
        metadata: Any = entry.get("fieldsV1", {}).get("f:metadata", {})
        if mark in metadata.get("f:annotations", {}):
            earlier_managers.add(entry["manager"])
    observed = [_time(entry) for entry in (*of_graph, *of_set) if entry.get("manager") in earlier_managers]
    edited = [
        _time(entry)
        for entry in of_graph
        if not entry.get("subresource")
        and "f:spec" in entry.get("fieldsV1", {})
        and entry.get("manager") not in {*earlier_managers, FIELD_MANAGER}
    ]
    is_outdated = max(edited, default="") > max(observed, default="")
    return plan.Origin.OUTDATED if is_outdated else plan.Origin.CURRENT


def _time(entry: Object) -> str:
    return str(entry.get("time") or "")
