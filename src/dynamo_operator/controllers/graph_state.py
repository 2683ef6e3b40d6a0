"""The status of a graph, put together from what was applied and what is observed of it now."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.gang_names import gang_names_of
from dynamo_operator.api.generation import worker_component_name
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.provider import is_on_grove
from dynamo_operator.controllers.gang import members
from dynamo_operator.controllers.observe import observe
from dynamo_operator.controllers.pods import PodIndex
from dynamo_operator.controllers.rollout import rolling_update_status
from dynamo_operator.kube.applied import Applied
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.types.grove import PodCliqueSet
from dynamo_operator.lifecycle.replicas import graph_scale
from dynamo_operator.lifecycle.step import Step
from dynamo_operator.lifecycle.workers import Rollout
from dynamo_operator.status.components import component_views
from dynamo_operator.status.configuration import configuration_warning
from dynamo_operator.status.diagnosis import diagnose
from dynamo_operator.status.gang import gang_views
from dynamo_operator.status.graph import GraphStatus, graph_status
from dynamo_operator.status.scaling import graph_selector
from dynamo_operator.status.service import ServiceView


def graph_state(
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
    scale = graph_scale(graph, observe(graph, cache))
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
    return GraphStatus(status, found.again_seconds)


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
        return gang_views(graph, clique_set, members(graph, cache), diagnoses)
    names = {
        key: worker_component_name(graph, key, rollout.workers)
        for key in sorted(graph.spec.services)
    }
    components = {
        key: (name, applied.get(DynamoComponentDeployment, name)) for key, name in names.items()
    }
    return component_views(graph, components, rollout)
