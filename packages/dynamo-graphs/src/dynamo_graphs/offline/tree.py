"""All that comes of a graph or component, without a cluster: what `dynamoctl render` prints.

The controllers apply a graph's objects, and later those of each component, as the API server
returned it. Here both steps happen at once, through the same functions. The graph is planned as one of which
nothing runs yet; the settled state of one that runs is the same, but for what `docs/cli.md` lists.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.revision import WorkerGeneration
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.graph import GraphInputs, plan_graph
from dynamo_graphs.render.component import component_objects, component_shared_objects
from dynamo_graphs.render.graph import graph_model_objects, graph_objects, graph_shared_objects
from dynamo_graphs.render.pvcs import pvc_objects
from dynamo_graphs.render.services import component_of
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object, key_of
from kube_runtime.types.meta import OwnerReference

Adapters = Mapping[str, DynamoGraphDeploymentScalingAdapter]
"""The scaling adapters of a graph that exist, by service."""


@dataclass(frozen=True, slots=True)
class OfflinePlan:
    """The next step of a graph of which nothing runs: `graph` is what to make.

    `adapters` are the scaling adapters to create, `workers` is how to render the workers.
    """

    graph: DynamoGraphDeployment
    workers: WorkerGeneration
    adapters: tuple[Object, ...] = ()


def offline_plan(
    found: DynamoGraphDeployment,
    facts: Facts,
    settings: RenderSettings,
    adapters: Adapters | None = None,
) -> OfflinePlan:
    """The plan of a graph: provider, replicas, suspension, restart and worker revision.

    `adapters` count as the graph's own. None means: no adapter exists yet.
    """
    present = {
        adapter.metadata.name: _owned(adapter, found) for adapter in (adapters or {}).values()
    }
    inputs = GraphInputs(facts, adapters=present)
    plan = plan_graph(found, inputs, settings, datetime.now(UTC))
    created = (each for each in plan.adapters.desired if key_of(each).name not in present)
    return OfflinePlan(plan.step.graph, plan.rollout.workers, tuple(created))


def own_objects(plan: OfflinePlan, facts: Facts, settings: RenderSettings) -> tuple[Object, ...]:
    """The objects that a graph's own controller applies, its components included, in its order."""
    graph = plan.graph
    return (
        *plan.adapters,
        *pvc_objects(graph),
        *graph_shared_objects(graph, facts, settings),
        *graph_model_objects(graph),
        *graph_objects(graph, facts, settings, plan.workers),
    )


def graph_tree(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """All objects of a graph down to its workloads; one that components share appears once."""
    plan = offline_plan(graph, facts, settings)
    own = own_objects(plan, facts, settings)
    components = tuple(
        component_of(plan.graph, wanted)
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


def _owned(
    adapter: DynamoGraphDeploymentScalingAdapter, graph: DynamoGraphDeployment
) -> DynamoGraphDeploymentScalingAdapter:
    """The adapter under the name that the operator gives it, controlled by the graph."""
    owner = OwnerReference(
        graph.KIND.name, graph.metadata.name, uid=graph.metadata.uid, controller=True
    )
    metadata = msgspec.structs.replace(adapter.metadata, owner_references=(owner,))
    return msgspec.structs.replace(adapter, metadata=metadata)


def _each_once(objects: tuple[Object, ...]) -> tuple[Object, ...]:
    return tuple({(wanted["kind"], key_of(wanted)): wanted for wanted in objects}.values())
