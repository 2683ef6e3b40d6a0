"""All that comes of a graph or component, without a cluster: what `dynamoctl render` prints.

The controllers apply a graph's objects, and later those of each component, as the API server
returned it. Here both steps happen at once, through the same functions.
"""

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.facts import Facts
from dynamo_graphs.render.component import component_objects, component_shared_objects
from dynamo_graphs.render.graph import graph_model_objects, graph_objects, graph_shared_objects
from dynamo_graphs.render.provider import on_record
from dynamo_graphs.render.pvcs import pvc_objects
from dynamo_graphs.render.services import component_of
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object, key_of


def graph_tree(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """All objects of a graph down to its workloads; one that components share appears once."""
    graph = on_record(graph, facts)
    own = (
        *pvc_objects(graph),
        *graph_shared_objects(graph, facts, settings),
        *graph_model_objects(graph),
        *graph_objects(graph, facts, settings),
    )
    components = tuple(
        component_of(graph, wanted)
        for wanted in own
        if wanted["kind"] == DynamoComponentDeployment.KIND.name
    )
    below = (
        wanted for component in components for wanted in component_tree(component, facts, settings)
    )
    return _each_once((*own, *below))


def component_tree(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """All objects of a component."""
    return (
        *component_shared_objects(component),
        *component_objects(component, facts, settings),
    )


def _each_once(objects: tuple[Object, ...]) -> tuple[Object, ...]:
    return tuple({(wanted["kind"], key_of(wanted)): wanted for wanted in objects}.values())
