"""Compute the status of a graph from its inputs, the plan and the result of the apply."""

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import grove_names_of
from dynamo_graphs.api.revision import worker_component_name
from dynamo_graphs.plan.graph import GraphPlan
from dynamo_graphs.plan.replicas import graph_scale
from dynamo_graphs.plan.rollout_plan import Rollout
from dynamo_graphs.status.configuration import configuration_warning
from dynamo_graphs.status.diagnosis import diagnose
from dynamo_graphs.status.graph import GraphStatus, graph_status
from dynamo_graphs.status.rollout import rolling_update
from dynamo_graphs.status.scaling import graph_selector
from dynamo_graphs.status.service import ServiceView
from dynamo_graphs.status.services_on_components import component_views
from dynamo_graphs.status.services_on_grove import grove_views
from dynamo_graphs.types.grove import PodCliqueSet
from dynamo_operator.graph.read import GraphSnapshot
from dynamo_operator.reconcile.grove import with_wanted
from kube_runtime.apply.result import Applied
from kube_runtime.times import rfc3339


def compute_status(
    graph: DynamoGraphDeployment,
    plan: GraphPlan,
    snapshot: GraphSnapshot,
    applied: Applied,
    now: datetime,
) -> GraphStatus:
    """Compute the status of `graph`: the user's spec with the newest metadata."""
    step, suspended = plan.step, plan.step.suspension.condition
    views = _views(step.graph, plan.rollout, snapshot, applied, now)
    computed = graph_status(step.sized, views, applied.blocked, now=now, suspended=suspended)
    scale = graph_scale(graph, snapshot.inputs.services)
    rollout = rolling_update(graph, plan.rollout, rfc3339(now))
    status = replace(
        computed.status,
        conditions=(
            *computed.status.conditions,
            *configuration_warning(graph, istio_served=snapshot.inputs.facts.istio_served),
            *((suspended,) if suspended else ()),
        ),
        restart=step.restart.status,
        rolling_update=rollout or graph.status.rolling_update,
        replicas=scale.replicas,
        selector=graph_selector(graph, scale.covered),
    )
    return GraphStatus(status, computed.requeue_after_seconds)


def _views(
    graph: DynamoGraphDeployment,
    rollout: Rollout,
    snapshot: GraphSnapshot,
    applied: Applied,
    now: datetime,
) -> Mapping[str, ServiceView]:
    if is_on_grove(graph):
        diagnoses = {
            key: diagnose(snapshot.pods.get(key, ()), nodes=service.nodes, now=now)
            for key, service in graph.spec.services.items()
        }
        clique_set = applied.get(PodCliqueSet, grove_names_of(graph).set)
        return grove_views(graph, clique_set, with_wanted(graph, snapshot.members), diagnoses)
    names = {
        key: worker_component_name(graph, key, rollout.workers)
        for key in sorted(graph.spec.services)
    }
    components = {
        key: (name, applied.get(DynamoComponentDeployment, name)) for key, name in names.items()
    }
    return component_views(graph, components, rollout)
