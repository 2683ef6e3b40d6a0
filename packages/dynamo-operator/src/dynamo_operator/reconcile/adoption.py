"""Find out what an earlier operator left behind, so that its pods need not restart.

What is kept is decided in `dynamo_graphs.plan.adoption`. Here is the evidence for it: whether a workload was
made from the spec as it is now, or the user has edited the spec since that operator saw it the last time.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment, is_worker
from dynamo_graphs.api.crd import defaulted
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.plan.adoption import (
    Origin,
    has_kept_templates,
    has_same_pods,
    is_of_earlier_operator,
    may_have_more_requests,
    spec_digest,
    starts_to_drain,
    with_kept_templates,
    with_live_requests,
    without_new_drain,
)
from dynamo_graphs.product import FIELD_MANAGER
from dynamo_graphs.types.grove import PodCliqueSet
from dynamo_graphs.types.optional_apis import LeaderWorkerSet
from dynamo_operator.reconcile.read import LiveObjects
from kube_runtime.apply.drift import content_of
from kube_runtime.client.requests import Client
from kube_runtime.errors import NotFound
from kube_runtime.kind import Object, key_of
from kube_runtime.types.apps import Deployment
from kube_runtime.types.meta import Resource

_WORKLOADS = frozenset(type_.KIND.name for type_ in (Deployment, LeaderWorkerSet, PodCliqueSet))


def adopted_workloads(
    component: DynamoComponentDeployment, desired: Iterable[Object], live: LiveObjects
) -> Iterator[Object]:
    """The objects of a component, with the pod templates that an earlier operator wrote and that stay."""
    origin = component_origin(component)
    return (_adopted(workload, live, origin) for workload in desired)


def adopted_components(desired: Sequence[Object], live: LiveObjects) -> tuple[Object, ...]:
    """The objects of a graph, with a note on components that were taken over with the spec that they have."""
    return tuple(_noted(component, live) for component in desired)


async def adopted_set(
    graph: DynamoGraphDeployment, desired: Sequence[Object], live: LiveObjects, client: Client
) -> tuple[Object, ...]:
    """The objects of a graph on Grove, with the pod templates that an earlier operator wrote and that stay.

    Reads the graph and its set from the API server once, before the set is taken over.

    Raises: OperatorError if the API server could not be asked.
    """
    origin = Origin.OUTDATED
    for body in desired:
        running = _running(body, live)
        if isinstance(running, PodCliqueSet) and is_of_earlier_operator(
            running.metadata.annotations
        ):
            origin = await _set_origin(graph, running, client)
    return tuple(_adopted(body, live, origin) for body in desired)


def may_start_to_drain(component: DynamoComponentDeployment, live: LiveObjects) -> bool:
    """Whether workers of a component run that have no `preStop`."""
    if not is_worker(component.spec):
        return False
    return any(
        b'"preStop"' not in _spec(workload)
        for (kind, _), workload in live.items()
        if kind in _WORKLOADS
    )


def set_starts_to_drain(desired: Iterable[Object], live: LiveObjects) -> bool:
    """Whether a set of Grove runs pods without a `preStop` that are to get one."""
    return any(
        starts_to_drain(body, _spec(running))
        for body in desired
        if (running := _running(body, live)) is not None
    )


def without_new_drains(
    desired: Iterable[Object], undrained: Iterable[Object], live: LiveObjects
) -> Iterator[Object]:
    """The objects to apply, without drain periods that would be the only reason to restart pods.

    `undrained` are the same objects in the same order, rendered without drain periods.
    """
    for ours, earlier in zip(desired, undrained, strict=True):
        running = _running(ours, live)
        if running is not None and starts_to_drain(ours, _spec(running)):
            yield without_new_drain(ours, earlier, content_of(running))
        else:
            yield ours


def component_origin(component: DynamoComponentDeployment) -> Origin:
    """Whether the workloads that an earlier operator made for a component are made from its present spec.

    The graph's controller knows it for the components of a graph, and notes it in the same write that takes
    a component over.
    """
    owner, annotations = component.metadata.controller, component.metadata.annotations
    is_of_graph = owner is not None and owner.kind == DynamoGraphDeployment.KIND.name
    if is_of_graph and not is_of_earlier_operator(annotations):
        return Origin.CURRENT if labels.ADOPTED_SPEC in annotations else Origin.OUTDATED
    if not _is_carried_out(component):
        # Decided now, since our own status will replace the one that shows it.
        return Origin.OUTDATED
    return Origin.UNDECIDED if is_of_graph else Origin.CURRENT


def noted(desired: Object, live: DynamoComponentDeployment) -> Object:
    """A component to apply, with a note if it is taken over with the spec that it has."""
    annotations = live.metadata.annotations
    is_earlier = is_of_earlier_operator(annotations)
    if not is_earlier and labels.ADOPTED_SPEC not in annotations:
        return desired
    spec = msgspec.convert(defaulted(desired), DynamoComponentDeployment).spec
    digest = spec_digest(spec)
    is_taken_over = is_earlier and _is_carried_out(live) and has_same_pods(spec, live.spec)
    if not is_taken_over and annotations.get(labels.ADOPTED_SPEC) != digest:
        return desired
    metadata = desired["metadata"]
    note = {**metadata.get("annotations", {}), labels.ADOPTED_SPEC: digest}
    return {**desired, "metadata": {**metadata, "annotations": note}}


def _noted(desired: Object, live: LiveObjects) -> Object:
    component = live.get((desired["kind"], key_of(desired)))
    if not isinstance(component, DynamoComponentDeployment):
        return desired
    return noted(desired, component)


def _is_carried_out(component: DynamoComponentDeployment) -> bool:
    """Whether an operator has created the workloads of the newest spec, as far as the status shows."""
    observed = component.status.observed_generation
    return not observed or observed >= component.metadata.generation


def _running(desired: Object, live: LiveObjects) -> Resource | None:
    """The workload as it runs. None means: it does not exist, or is of another kind."""
    return live.get((desired["kind"], key_of(desired))) if desired["kind"] in _WORKLOADS else None


def _spec(live: Resource) -> bytes:
    """The spec in JSON; "" where the cache does not keep it as text."""
    spec = getattr(live, "spec", None)
    return bytes(spec) if isinstance(spec, msgspec.Raw) else b""


def _adopted(desired: Object, live: LiveObjects, origin: Origin) -> Object:
    running = _running(desired, live)
    if running is None:
        return desired
    if has_kept_templates(running.metadata.annotations):
        return with_kept_templates(desired, content_of(running), origin)
    # One of ours keeps what an earlier version of ours wrote, if it means the same.
    if may_have_more_requests(desired, _spec(running)):
        return with_live_requests(desired, content_of(running))
    return desired


async def _set_origin(graph: DynamoGraphDeployment, live: PodCliqueSet, client: Client) -> Origin:
    try:
        bodies = [
            await client.get_json(resource.KIND.path(*resource.key)) for resource in (graph, live)
        ]
    except NotFound:
        return Origin.OUTDATED  # the apply that follows finds that out
    entries = [body["metadata"].get("managedFields", ()) for body in bodies]
    return set_origin(*entries)


def set_origin(of_graph: Sequence[Object], of_set: Sequence[Object]) -> Origin:
    """Whether a set was made from the graph as it is now, by the managed fields of both.

    An earlier operator writes the status of a graph, or its set, after each edit that it sees. So a spec that
    was written after both was edited without it.
    """
    theirs = {entry["manager"] for entry in of_set if _owns_mark(entry)}
    seen = [_time(entry) for entry in (*of_graph, *of_set) if entry.get("manager") in theirs]
    edited = [
        _time(entry)
        for entry in of_graph
        if not entry.get("subresource")
        and "f:spec" in entry.get("fieldsV1", {})
        and entry.get("manager") not in {*theirs, FIELD_MANAGER}
    ]
    return Origin.OUTDATED if max(edited, default="") > max(seen, default="") else Origin.CURRENT


def _owns_mark(entry: Object) -> bool:
    metadata: Any = entry.get("fieldsV1", {}).get("f:metadata", {})
    return f"f:{labels.LAST_APPLIED_GENERATION}" in metadata.get("f:annotations", {})


def _time(entry: Object) -> str:
    return str(entry.get("time") or "")
