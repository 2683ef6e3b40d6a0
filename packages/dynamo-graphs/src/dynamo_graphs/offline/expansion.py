"""Everything that the controllers would apply for one document, without a cluster.

The same functions as in the controllers, in the same order. One thing differs: between a graph and
its components lies the API server, which fills defaults and keeps the owner. Both are done here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.defaults import defaulted
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.facts import Facts
from dynamo_graphs.offline.request import ConfigMaps, profiled_objects, request_objects
from dynamo_graphs.offline.tree import Adapters, component_tree, offline_plan, own_objects
from dynamo_graphs.plan.request_output import BadOutput
from dynamo_graphs.render.profiling import missing_settings
from dynamo_graphs.render.profiling_config import profiler_config_bytes
from dynamo_graphs.render.provider import on_record
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.status.groups import NO_ORCHESTRATOR
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.component import component_problems
from dynamo_graphs.validation.exposure import component_exposure_problems, graph_exposure_problems
from dynamo_graphs.validation.graph import graph_problems
from dynamo_graphs.validation.multinode import lacks_orchestrator
from dynamo_graphs.validation.request import request_problems
from dynamo_graphs.validation.schema import schema_problems
from kube_runtime.kind import Object
from kube_runtime.types.meta import OwnerReference, R

RENDERED = tuple(
    each.KIND.name
    for each in (DynamoGraphDeployment, DynamoComponentDeployment, DynamoGraphDeploymentRequest)
)
"""The kinds that become objects of others."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a document becomes: objects, or the reasons why there are none."""

    objects: tuple[Object, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Beside:
    """What exists in the namespace of a document: scaling adapters, by graph, and ConfigMaps."""

    adapters: dict[str, Adapters] = field(default_factory=dict[str, Adapters])
    config_maps: ConfigMaps = field(default_factory=dict)


NOTHING = Beside()


def expanded(
    document: Object, facts: Facts, settings: RenderSettings, beside: Beside = NOTHING
) -> Expansion:
    """The objects of a graph, a component or a request, each component followed by its own.

    Another kind of ours becomes none; only its schema is checked.
    """
    problems = schema_problems(document)
    if problems or document["kind"] not in RENDERED:
        return Expansion(problems=problems)
    if document["kind"] == DynamoGraphDeployment.KIND.name:
        graph = _decoded(DynamoGraphDeployment, document)
        return _graph(graph, facts, settings, beside.adapters.get(graph.metadata.name, {}))
    if document["kind"] == DynamoGraphDeploymentRequest.KIND.name:
        request = _decoded(DynamoGraphDeploymentRequest, document)
        return _request(request, facts, settings, beside)
    component = _decoded(DynamoComponentDeployment, document)
    problems = _component_problems(component, facts, settings)
    return Expansion(() if problems else component_tree(component, facts, settings), problems)


def _graph(
    found: DynamoGraphDeployment, facts: Facts, settings: RenderSettings, adapters: Adapters
) -> Expansion:
    graph = on_record(found, facts)
    exposed = graph_exposure_problems(graph, settings)
    if problems := (*graph_problems(graph, settings), *exposed):
        return Expansion(problems=problems)
    plan = offline_plan(found, facts, settings, adapters)
    objects: list[Object] = []
    wrong: list[Problem] = []
    for each in own_objects(plan, facts, settings):
        objects.append(each)
        if each["kind"] != DynamoComponentDeployment.KIND.name:
            continue
        component = _owned(_decoded(DynamoComponentDeployment, each), graph)
        if problems := _component_problems(component, facts, settings):
            wrong += _of_service(component, problems)
        else:
            objects += component_tree(component, facts, settings)
    return Expansion(() if wrong else tuple(objects), tuple(wrong))


def _request(
    request: DynamoGraphDeploymentRequest, facts: Facts, settings: RenderSettings, beside: Beside
) -> Expansion:
    """The objects for profiling, and those of its results where these are beside the request."""
    spec = request.spec
    if spec is None:
        return Expansion()
    size = profiler_config_bytes(spec, request.metadata.namespace)
    if problems := tuple(request_problems(request, settings, size)):
        return Expansion(problems=problems)
    if lacks := missing_settings(spec, settings):
        return Expansion(problems=(Problem("spec", lacks, ProblemKind.REQUIRED),))
    try:
        results = profiled_objects(request, beside.config_maps)
    except BadOutput as error:
        return Expansion(problems=(Problem("metadata.name", str(error)),))
    objects = [*request_objects(request, settings, beside.config_maps), *results]
    for each in results:
        if each["kind"] == DynamoGraphDeployment.KIND.name:
            below = expanded(each, facts, settings, beside)
            if below.problems:
                text = f"the graph that profiling found: {'; '.join(map(str, below.problems))}"
                return Expansion(problems=(Problem("metadata.name", text),))
            objects += below.objects
    return Expansion(tuple(objects))


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
