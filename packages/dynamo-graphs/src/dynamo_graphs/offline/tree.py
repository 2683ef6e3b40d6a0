"""All that comes of a graph or component, without a cluster: what `dynamoctl render` prints.

The controllers apply a graph's objects, and later those of each component, as the API server
returned it. Here both steps happen at once, through the same functions. The graph is planned as one of which
nothing runs yet; the settled state of one that runs is the same, but for what `docs/cli.md` lists.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.graph import GraphInputs, plan_graph
from dynamo_graphs.render.component import component_objects, component_shared_objects
from dynamo_graphs.render.graph import (
    graph_model_objects,
    graph_objects,
    graph_shared_objects,
    pvc_objects,
)
from dynamo_graphs.render.services import component_of, owned_by
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object, key_of

Adapters = Mapping[str, DynamoGraphDeploymentScalingAdapter]
"""The scaling adapters of a graph that exist, by service."""


def own_objects(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings, adapters: Adapters
) -> tuple[Object, ...]:
    """The objects that a graph's own controller applies, its components included, in its order.

    `adapters` count as the graph's own.
    """
    present = {adapter.metadata.name: owned_by(graph, adapter) for adapter in adapters.values()}
    plan = plan_graph(graph, GraphInputs(facts, adapters=present), settings, datetime.now(UTC))
    created = (adapter for adapter in plan.adapters.desired if key_of(adapter).name not in present)
    planned = plan.step.graph
    return (
        *created,
        *pvc_objects(planned),
        *graph_shared_objects(planned, settings),
        *graph_model_objects(planned),
        *graph_objects(planned, facts, settings, plan.rollout.workers),
    )


def graph_tree(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """All objects of a graph down to its workloads; one that components share appears once."""
    objects = list(own_objects(graph, facts, settings, {}))
    for desired in tuple(objects):
        if desired["kind"] == DynamoComponentDeployment.KIND.name:
            objects += component_tree(component_of(graph, desired), facts, settings)
    return tuple({(desired["kind"], key_of(desired)): desired for desired in objects}.values())


def component_tree(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """All objects of a component."""
    return (
        *component_shared_objects(component),
        *component_objects(component, facts, settings),
    )
