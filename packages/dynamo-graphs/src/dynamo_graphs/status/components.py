"""The services of a graph that runs as components, one for each, or several while workers are replaced.

Right after an edit the conditions of a component still describe the old spec, so they count only when they
were computed for the generation that the graph has just applied.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.api.component import (
    ComponentSpec,
    DynamoComponentDeployment,
    ServiceReplicaStatus,
)
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import group_name
from dynamo_graphs.plan.rollout_plan import Rollout
from dynamo_graphs.status.reasons import ComponentReason, GraphReason
from dynamo_graphs.status.rollout import replacing, with_old_generations
from dynamo_graphs.status.service import ServiceView
from kube_runtime.types.meta import condition


def component_views(
    graph: DynamoGraphDeployment,
    components: Mapping[str, tuple[str, DynamoComponentDeployment | None]],
    rollout: Rollout | None = None,
) -> dict[str, ServiceView]:
    """The services of a graph whose replicas are those that are in force.

    `components` maps each service to the name of its DynamoComponentDeployment and to the object that the
    API server holds, or None when it does not exist. `rollout` has the components of older generations.
    """
    old = rollout.revisions.old if rollout else ()
    replaced = replacing(rollout) if rollout else {}
    reported = {
        key: _replicas(name, component, graph.spec.services.get(key))
        for key, (name, component) in components.items()
    }
    counts = with_old_generations(reported, old)
    return {
        key: _view(
            name,
            component,
            counts[key],
            graph.spec.services.get(key),
            [f"{member.name}: {replaced[member.name]}" for member in old if member.service == key],
            newest=reported[key],
        )
        for key, (name, component) in components.items()
    }


def _view(
    name: str,
    component: DynamoComponentDeployment | None,
    counts: ServiceReplicaStatus,
    service: ComponentSpec | None,
    older: Sequence[str],
    newest: ServiceReplicaStatus,
) -> ServiceView:
    own = _obstacle(component)
    refusal = _refusal(component) if own else None
    overrides_pods = refusal is not None or own == _PAUSED  # the state of pods is then irrelevant
    if component is not None and _is_behind(component):
        newest = replace(newest, updated_replicas=0)  # they are of an older spec
    if overrides_pods:
        counts = replace(counts, reason=refusal, message=f"{name}: {own}")
    return ServiceView(
        name=name,
        newest=newest,
        counts=counts,
        desired=service.desired_replicas if service else 0,
        obstacles=(*([own] if own else []), *older),
        exists=bool(older) or (component is not None and bool(component.status.conditions)),
        is_rolling=component is None or _is_behind(component) or bool(older),
        has_older=bool(older),
    )


def is_ready(component: DynamoComponentDeployment) -> bool:
    """Whether a component says that its newest spec runs, and nothing older."""
    return _obstacle(component) is None


def is_current(component: DynamoComponentDeployment) -> bool:
    """Whether the counts of a component are about its newest spec, as far as any will be.

    One that wants no replicas has no other reason to be not ready than that its workload's controller has
    not seen that. Of a paused one nothing newer will come.
    """
    if is_paused(component):
        return True
    available = condition(component.status.conditions, "Available")
    if available is None or _is_behind(component):
        return False
    return component.spec.desired_replicas > 0 or available.reason not in _UNREADY


_UNREADY = (ComponentReason.DEPLOYMENT_NOT_READY, ComponentReason.GROUPS_NOT_READY)


def _obstacle(component: DynamoComponentDeployment | None) -> str | None:
    """Why a component is not ready. None means: it is."""
    if component is None:
        return "it is being created"
    available = condition(component.status.conditions, "Available")
    is_held = is_paused(component)
    if available is None:
        return _PAUSED if is_held else "it has no status yet"
    if _is_behind(component):
        return _PAUSED if is_held else "the operator has not observed its newest spec yet"
    return None if available.status == "True" else available.message


_PAUSED = f"it is paused (annotation {labels.PAUSED})"


_REFUSALS = {
    ComponentReason.NAME_CONFLICT: GraphReason.NAME_CONFLICT,
    ComponentReason.REJECTED: GraphReason.REJECTED,
}
"""What keeps a component from being made at all; its pods, if it has any, know nothing of it."""


def _refusal(component: DynamoComponentDeployment | None) -> GraphReason | None:
    available = condition(component.status.conditions, "Available") if component else None
    if available is None or component is None or _is_behind(component):
        return None
    return next((mine for theirs, mine in _REFUSALS.items() if theirs == available.reason), None)


def _is_behind(component: DynamoComponentDeployment) -> bool:
    available = condition(component.status.conditions, "Available")
    observed = available.observed_generation if available else None
    return (observed or component.status.observed_generation) < component.metadata.generation


def _replicas(
    name: str, component: DynamoComponentDeployment | None, service: ComponentSpec | None
) -> ServiceReplicaStatus:
    """What the component reports; before it does, its kind and name with zero counts.

    The schema requires both.
    """
    if component is not None and component.status.service is not None:
        return component.status.service
    if service is None or service.nodes == 1:
        return ServiceReplicaStatus("Deployment", name, replicas=0, updated_replicas=0)
    first = group_name(name, 0)
    return ServiceReplicaStatus("LeaderWorkerSet", first, replicas=0, updated_replicas=0)
