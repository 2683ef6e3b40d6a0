"""All that comes of a graph or component, without a cluster: what `dynamoctl render` prints.

The controllers apply a graph's objects, and later those of each component, as the API server
returned it. Here both steps happen at once, through the same functions.
"""

import msgspec

from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.facts import Facts
from dynamo_operator.kube.kind import Object, key_of
from dynamo_operator.kube.types.meta import OwnerReference
from dynamo_operator.render.component import component_objects, component_shared_objects
from dynamo_operator.render.graph import graph_objects, graph_shared_objects
from dynamo_operator.settings import RenderSettings


def graph_tree(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """All objects of a graph down to its workloads; one that components share appears once."""
    own = (*graph_shared_objects(graph, facts, settings), *graph_objects(graph, facts, settings))
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
        *component_shared_objects(component, facts, settings),
        *component_objects(component, facts, settings),
    )


def component_of(graph: DynamoGraphDeployment, wanted: Object) -> DynamoComponentDeployment:
    """A component as its controller will read it: with the graph as its owner."""
    component = msgspec.convert(wanted, DynamoComponentDeployment)
    owner = OwnerReference(
        kind=DynamoGraphDeployment.KIND.name,
        name=graph.metadata.name,
        uid=graph.metadata.uid,
        api_version=DynamoGraphDeployment.KIND.api_version,
        controller=True,
    )
    metadata = msgspec.structs.replace(component.metadata, owner_references=(owner,))
    return msgspec.structs.replace(component, metadata=metadata)


def _each_once(objects: tuple[Object, ...]) -> tuple[Object, ...]:
    return tuple({(wanted["kind"], key_of(wanted)): wanted for wanted in objects}.values())
