"""Everything that the controllers would apply for one document, without a cluster.

The same functions as in the controllers, in the same order. One thing differs: between a graph and
its components lies the API server, which fills defaults and keeps the owner. Both are done here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.defaults import defaulted
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.facts import Facts
from dynamo_graphs.render.component import component_objects, component_shared_objects
from dynamo_graphs.render.graph import graph_model_objects, graph_objects, graph_shared_objects
from dynamo_graphs.render.provider import on_record
from dynamo_graphs.render.pvcs import pvc_objects
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.status.groups import NO_ORCHESTRATOR
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.component import component_problems
from dynamo_graphs.validation.exposure import component_exposure_problems, graph_exposure_problems
from dynamo_graphs.validation.graph import graph_problems
from dynamo_graphs.validation.multinode import lacks_orchestrator
from dynamo_graphs.validation.schema import schema_problems
from kube_runtime.kind import Object
from kube_runtime.types.meta import OwnerReference, R

RENDERED = (DynamoGraphDeployment.KIND.name, DynamoComponentDeployment.KIND.name)
"""The kinds that become objects of others."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a document becomes: objects, or the reasons why there are none."""

    objects: tuple[Object, ...] = ()
    problems: tuple[Problem, ...] = ()


def expanded(document: Object, facts: Facts, settings: RenderSettings) -> Expansion:
    """The objects of a graph or a component, each component followed by its own.

    Another kind of ours becomes none; only its schema is checked.
    """
    problems = schema_problems(document)
    if problems or document["kind"] not in RENDERED:
        return Expansion(problems=problems)
    if document["kind"] == DynamoGraphDeployment.KIND.name:
        return _graph(_decoded(DynamoGraphDeployment, document), facts, settings)
    component = _decoded(DynamoComponentDeployment, document)
    problems = _component_problems(component, facts, settings)
    return Expansion(() if problems else _component(component, facts, settings), problems)


def _graph(graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings) -> Expansion:
    graph = on_record(graph, facts)
    exposed = graph_exposure_problems(graph, settings)
    if problems := (*graph_problems(graph, settings), *exposed):
        return Expansion(problems=problems)
    objects: list[Object] = [
        *pvc_objects(graph),
        *graph_shared_objects(graph, facts, settings),
        *graph_model_objects(graph),
    ]
    found: list[Problem] = []
    for each in graph_objects(graph, facts, settings):
        objects.append(each)
        if each["kind"] != DynamoComponentDeployment.KIND.name:
            continue
        component = _owned(_decoded(DynamoComponentDeployment, each), graph)
        if problems := _component_problems(component, facts, settings):
            found += _of_service(component, problems)
        else:
            objects += _component(component, facts, settings)
    return Expansion(() if found else tuple(objects), tuple(found))


def _component_problems(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Problem, ...]:
    """The mistakes of a component, and that what was chosen on the command line cannot run it."""
    exposed = component_exposure_problems(component, settings)
    found = (*component_problems(component, settings), *exposed)
    if not lacks_orchestrator(component.spec, facts):
        return found
    message = f"{NO_ORCHESTRATOR}; choose one with --orchestrator"
    lack = Problem("spec.multinode.nodeCount", message, ProblemKind.NOT_SUPPORTED)
    return (*found, lack)


def _component(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    shared = component_shared_objects(component)
    return (*shared, *component_objects(component, facts, settings))


def _decoded(type_: type[R], document: Object) -> R:
    """The object as the controller reads it back from the API server."""
    return msgspec.convert(defaulted(document), type_)


def _owned(
    component: DynamoComponentDeployment, graph: DynamoGraphDeployment
) -> DynamoComponentDeployment:
    """The component with its graph as owner; the uid is empty, since the graph is not in a cluster."""
    owner = OwnerReference(graph.KIND.name, graph.metadata.name, uid="", controller=True)
    metadata = msgspec.structs.replace(component.metadata, owner_references=(owner,))
    return msgspec.structs.replace(component, metadata=metadata)


def _of_service(
    component: DynamoComponentDeployment, problems: tuple[Problem, ...]
) -> Iterator[Problem]:
    """Problems of a component, as those of the graph's service that it was made from."""
    service = f"spec.services.{component.spec.service_name}"
    for problem in problems:
        rest = problem.path.removeprefix("spec").removeprefix(".")
        yield Problem(f"{service}.{rest}".rstrip("."), problem.message, problem.kind)


def identity(item: Object) -> tuple[str, str, str, str]:
    """What makes an object the same as another."""
    metadata = item["metadata"]
    return item["apiVersion"], item["kind"], metadata.get("namespace", ""), metadata["name"]
