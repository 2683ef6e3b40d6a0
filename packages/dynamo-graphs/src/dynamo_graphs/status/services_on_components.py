"""The services of a graph on components: one component each, or several during a managed rollout.

Right after an edit the conditions of a component still describe the old spec. So they count only if they
describe the generation that the graph has just applied.
"""

from collections import defaultdict
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
from dynamo_graphs.status.rollout import why_it_remains, with_old_revisions
from dynamo_graphs.status.service import ServiceView
from kube_runtime.types.meta import condition


def component_views(
    graph: DynamoGraphDeployment,
    components: Mapping[str, tuple[str, DynamoComponentDeployment | None]],
    rollout: Rollout | None = None,
) -> dict[str, ServiceView]:
    """The services of a graph with the desired replicas in its spec.

    `components` maps each service to the name of its DynamoComponentDeployment and to the live object, or
    None if it does not exist. `rollout` has the components of older revisions.
    """
    old = rollout.revisions.old if rollout else ()
    remaining: dict[str, list[str]] = defaultdict(list)
    if rollout:
        for member in old:
            remaining[member.service].append(f"{member.name}: {why_it_remains(member, rollout)}")
    reported = {
        key: _replicas(name, component, graph.spec.services.get(key))
        for key, (name, component) in components.items()
    }
    counts = with_old_revisions(reported, old)
    return {
        key: _view(
            name,
            component,
            counts[key],
            graph.spec.services.get(key),
            remaining[key],
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
    obstacle = _obstacle(component)
    refusal = _refusal(component) if obstacle else None
    hides_pods = refusal is not None or obstacle == _PAUSED
    if component is not None and _is_behind(component):
        newest = replace(newest, updated_replicas=0)  # counts of an older spec
    if hides_pods:
        counts = replace(counts, reason=refusal, message=f"{name}: {obstacle}")
    return ServiceView(
        name=name,
        newest=newest,
        counts=counts,
        desired=service.desired_replicas if service else 0,
        obstacles=(*([obstacle] if obstacle else []), *older),
        exists=bool(older) or (component is not None and bool(component.status.conditions)),
        is_rolling=component is None or _is_behind(component) or bool(older),
        has_older=bool(older),
    )


def is_ready(component: DynamoComponentDeployment) -> bool:
    """Whether the component reports its newest spec as ready."""
    return _obstacle(component) is None


def is_current(component: DynamoComponentDeployment) -> bool:
    """Whether the counts of a component describe its newest spec.

    Those of a paused one do, because no newer ones will come. If a component without desired replicas is not
    ready, the controller of its workload has not observed that yet.
    """
    if is_paused(component):
        return True
    available = condition(component.status.conditions, "Available")
    if available is None or _is_behind(component):
        return False
    return component.spec.desired_replicas > 0 or available.reason not in _UNREADY


_UNREADY = (ComponentReason.DEPLOYMENT_NOT_READY, ComponentReason.GROUPS_NOT_READY)


def _obstacle(component: DynamoComponentDeployment | None) -> str | None:
    """Why a component is not ready; None if it is."""
    if component is None:
        return "it is being created"
    available = condition(component.status.conditions, "Available")
    paused = is_paused(component)
    if available is None:
        return _PAUSED if paused else "it has no status yet"
    if _is_behind(component):
        return _PAUSED if paused else "the operator has not observed its newest spec yet"
    return None if available.status == "True" else available.message


_PAUSED = f"it is paused (annotation {labels.PAUSED})"


_REFUSALS: dict[str, GraphReason] = {
    ComponentReason.NAME_CONFLICT: GraphReason.NAME_CONFLICT,
    ComponentReason.REJECTED: GraphReason.REJECTED,
}
"""Why a component's objects cannot be written; its pods, if any, do not show that."""


def _refusal(component: DynamoComponentDeployment | None) -> GraphReason | None:
    available = condition(component.status.conditions, "Available") if component else None
    if available is None or component is None or _is_behind(component):
        return None
    return _REFUSALS.get(available.reason)


def _is_behind(component: DynamoComponentDeployment) -> bool:
    available = condition(component.status.conditions, "Available")
    observed = available.observed_generation if available else None
    return (observed or component.status.observed_generation) < component.metadata.generation


def _replicas(
    name: str, component: DynamoComponentDeployment | None, service: ComponentSpec | None
) -> ServiceReplicaStatus:
    """The counts that the component reports; before that, zeros with the required kind and name."""
    if component is not None and component.status.service is not None:
        return component.status.service
    if service is None or service.nodes == 1:
        return ServiceReplicaStatus("Deployment", name, replicas=0, updated_replicas=0)
    first = group_name(name, 0)
    return ServiceReplicaStatus("LeaderWorkerSet", first, replicas=0, updated_replicas=0)
