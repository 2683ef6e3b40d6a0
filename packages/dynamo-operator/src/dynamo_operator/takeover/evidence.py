"""Take over the workloads of an earlier operator without restarting their pods.

`takeover.plan` decides what stays. This module collects the evidence: whether a workload was
rendered from the current spec, or a user has edited the spec since the earlier operator last read it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from dynamo_operator import FIELD_MANAGER, labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import LiveObjects
from dynamo_operator.takeover import plan
from kube_runtime.types.meta import Object, Resource, content_of, from_plain, key_of


def as_running(
    desired: Iterable[Object],
    undrained: Callable[[], Iterable[Object]],
    live: LiveObjects,
    origin: plan.Origin,
) -> Iterator[Object]:
    """Return the objects to apply: workloads keep what would be the only reason to restart their pods.

    Those are the templates of an earlier operator, which rendered the live workloads from a spec of that
    `origin`, and containers without the `preStop` hooks of a drain period. `undrained` returns the same
    objects in the same order, rendered without drain periods; it is called if some pods have no hooks yet.
    """
    earlier, passed = None, 0
    for index, body in enumerate(desired):
        running = live.get((body["kind"], key_of(body))) if body["kind"] in plan.WORKLOADS else None
        if running is None:
            yield body
            continue
        ours = body
        if plan.has_kept_templates(running.metadata.annotations):
            ours = plan.with_kept_templates(body, content_of(running), origin)
        spec = getattr(running, "spec", None)
        text = bytes(spec) if isinstance(spec, msgspec.Raw) else b""  # else its content was not kept
        if plan.starts_to_drain(ours, text):
            earlier = iter(undrained()) if earlier is None else earlier
            [same] = islice(earlier, index - passed, index - passed + 1)
            passed = index + 1
            ours = plan.without_new_drain(ours, same, content_of(running))
        yield ours


def adopted_components(desired: Sequence[Object], live: LiveObjects) -> tuple[Object, ...]:
    """Return the objects of a graph; a component taken over with an unchanged spec is annotated so."""
    return tuple(annotated(body, live.get((body["kind"], key_of(body)))) for body in desired)


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
