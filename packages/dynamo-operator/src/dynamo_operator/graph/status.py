"""The status of a graph, put together from what was applied and what is observed of it now."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.grove_names import gang_names_of
from dynamo_graphs.api.provider import is_on_grove
from dynamo_graphs.api.revision import worker_component_name
from dynamo_graphs.plan.replicas import graph_scale
from dynamo_graphs.plan.rollout_plan import Rollout
from dynamo_graphs.plan.step import Step
from dynamo_graphs.status.components import component_views
from dynamo_graphs.status.configuration import configuration_warning
from dynamo_graphs.status.diagnosis import diagnose
from dynamo_graphs.status.graph import GraphStatus, graph_status
from dynamo_graphs.status.grove import grove_views
from dynamo_graphs.status.scaling import graph_selector
from dynamo_graphs.status.service import ServiceView
from dynamo_graphs.types.grove import PodCliqueSet
from dynamo_operator.graph.snapshot import service_snapshot
from dynamo_operator.reconcile.grove import members
from dynamo_operator.reconcile.pods import PodIndex
from dynamo_operator.rollout.revisions import rolling_update_status
from kube_runtime.apply.result import Applied
from kube_runtime.cache.cache import Cache


def compute_status(
    graph: DynamoGraphDeployment,
    step: Step,
    rollout: Rollout,
    applied: Applied,
    *,
    cache: Cache,
    pods: PodIndex,
) -> GraphStatus:
    """The whole status of `graph`, which is as the user wrote it; `step` has what is made of it now."""
    now, suspended = datetime.now(UTC), step.suspension.condition
    views = _views(step.graph, rollout, applied, cache=cache, pods=pods, now=now)
    found = graph_status(step.sized, views, applied.blocked, now=now, suspended=suspended)
    scale = graph_scale(graph, service_snapshot(graph, cache))
    status = {
        **found.status,
        **rolling_update_status(graph, rollout),
        "conditions": [
            *found.status["conditions"],
            *configuration_warning(graph),
            *([suspended] if suspended else []),
        ],
        "restart": msgspec.to_builtins(step.restart.status) if step.restart.status else None,
        "replicas": scale.replicas,
        "selector": graph_selector(graph, scale.covered),
    }
    return GraphStatus(status, found.requeue_after_seconds)


def _views(
    graph: DynamoGraphDeployment,
    rollout: Rollout,
    applied: Applied,
    *,
    cache: Cache,
    pods: PodIndex,
    now: datetime,
) -> Mapping[str, ServiceView]:
    if is_on_grove(graph):
        namespace, name = graph.key
        diagnoses = {
            key: diagnose(pods.of_service(namespace, name, key), nodes=service.nodes, now=now)
            for key, service in graph.spec.services.items()
        }
        clique_set = applied.get(PodCliqueSet, gang_names_of(graph).set)
        return grove_views(graph, clique_set, members(graph, cache), diagnoses)
    names = {
        key: worker_component_name(graph, key, rollout.workers)
        for key in sorted(graph.spec.services)
    }
    components = {
        key: (name, applied.get(DynamoComponentDeployment, name)) for key, name in names.items()
    }
    return component_views(graph, components, rollout)
