"""Everything that the controllers would apply for one document, without a cluster: `dynamoctl render`.

The functions are those of the controllers, in the same order. Between a graph and its components, the API
server fills in defaults and keeps the owner; both are done here. A graph is planned as if nothing of it ran
yet. The settled state of one that runs is the same, but for what `docs/cli.md` lists.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from dynamo_graphs.schema import schema_problems
from dynamo_graphs.written import unreadable, written_of
from dynamo_operator import names, version
from dynamo_operator.admission.written import rules_of_written
from dynamo_operator.component import decide as components
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.exposure import exposure_problems, graph_exposure_problems
from dynamo_operator.component.plan import ComponentInputs
from dynamo_operator.component.service import component_of, owned_by
from dynamo_operator.component.status import NO_ORCHESTRATOR
from dynamo_operator.component.validate import component_problems, lacks_orchestrator
from dynamo_operator.crds import defaulted
from dynamo_operator.features.decision import AdapterInputs, GraphInputs
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph import decide as graphs
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.requests.api import (
    ConfigMapReference,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    RequestState,
    accepted_spec,
    annotation,
    as_text,
    recorded,
    with_spec,
)
from dynamo_operator.requests.extras import SAVED
from dynamo_operator.requests.render import BASE_FILE, account_objects, missing_settings, profiling_job
from dynamo_operator.requests.results import (
    BadOutput,
    base_config_map,
    config_map,
    deployed,
    named_config_maps,
    read_output,
    target,
)
from dynamo_operator.requests.status import accepted
from dynamo_operator.requests.validate import request_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import Problem, ProblemKind
from dynamo_operator.versions.shapes import ConversionError
from kube_runtime.types.meta import Object, R, from_json, key_of

Adapters = Mapping[str, DynamoGraphDeploymentScalingAdapter]
"""The existing scaling adapters of a graph, by service."""

RENDERED = tuple(
    type_.KIND.name
    for type_ in (DynamoGraphDeployment, DynamoComponentDeployment, DynamoGraphDeploymentRequest)
)
"""The kinds for which the operator creates objects."""

ConfigMaps = Mapping[str, Mapping[str, str]]
"""The data of the ConfigMaps in the namespace of a request, by name."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The objects of a document, or the problems for which there are none."""

    objects: tuple[Object, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Beside:
    """Existing objects in the namespace of a document: scaling adapters, by graph, and ConfigMaps."""

    adapters: dict[str, Adapters] = field(default_factory=dict[str, Adapters])
    config_maps: ConfigMaps = field(default_factory=dict)


NOTHING = Beside()


def installed_settings() -> RenderSettings:
    """The settings of an operator that the charts installed into `dynamo-system` with their defaults."""
    name = "dynamo-platform-dynamo-operator"
    return RenderSettings(
        mpi_secret_name="mpi-run-ssh-secret",  # noqa: S106  a name
        mpi_secret_namespace="dynamo-system",  # noqa: S106  a name
        mpi_secret_made=True,
        grove_termination_delay_seconds=14_400,
        allowed_gateways="*",
        planner_cluster_role_name=f"{name}-planner",
        epp_cluster_role_name=f"{name}-epp",
        dgdr_profiling_cluster_role_name=f"{name}-dgdr-profiling",
        dgdr_profiling_nodes_cluster_role_name=f"{name}-dgdr-profiling-nodes",
        operator_image=f"dynamo-operator:{version()}",
        disruption_budget_max_unavailable="1",
        operator_account=f"dynamo-system/{name}-controller-manager",
    )


def expanded(document: Object, facts: Facts, settings: RenderSettings, beside: Beside = NOTHING) -> Expansion:
    """Return the objects of a graph, a component or a request, each component followed by its own.

    The document may have either version; problems have its paths. Other kinds have no objects; only their
    schema is checked.
    """
    problems = schema_problems(document)
    if problems or document["kind"] not in RENDERED:
        return Expansion(problems=problems)
    try:
        written = written_of(document)
    except ConversionError as error:
        return Expansion(problems=(unreadable(error),))
    if written is None:
        return _expanded(document, facts, settings, beside)
    rules = rules_of_written(document["kind"])
    if problems := tuple(rules.problems(written.written, facts.grove_served)):
        return Expansion(problems=problems)
    expansion = _expanded(written.seen, facts, settings, beside)
    return Expansion(expansion.objects, tuple(map(written.problem, expansion.problems)))


def _expanded(document: Object, facts: Facts, settings: RenderSettings, beside: Beside) -> Expansion:
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
    original: DynamoGraphDeployment, facts: Facts, settings: RenderSettings, adapters: Adapters
) -> Expansion:
    graph = graphs.with_provider(original, facts)
    exposed = graph_exposure_problems(graph, settings)
    if problems := (*graph_problems(graph, settings), *exposed):
        return Expansion(problems=problems)
    objects: list[Object] = []
    wrong: list[Problem] = []
    for desired in own_objects(original, facts, settings, adapters):
        objects.append(desired)
        if desired["kind"] != DynamoComponentDeployment.KIND.name:
            continue
        component = component_of(graph, defaulted(desired))
        if problems := _component_problems(component, facts, settings):
            service = f"spec.services.{component.spec.service_name}"
            for problem in problems:  # paths in the component become paths in the graph
                rest = problem.path.removeprefix("spec").removeprefix(".")
                path = f"{service}.{rest}".rstrip(".")
                wrong.append(Problem(path, problem.message, problem.kind))
        else:
            objects += component_tree(component, facts, settings)
    return Expansion(() if wrong else tuple(objects), tuple(wrong))


def own_objects(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings, adapters: Adapters
) -> tuple[Object, ...]:
    """The objects that a graph's controller applies, components included, in its order.

    `adapters` are treated as controlled by the graph.
    """
    present = {adapter.metadata.name: owned_by(graph, adapter) for adapter in adapters.values()}
    provider = graphs.workload_provider(graph, facts)
    inputs = GraphInputs(prepared(graph, facts, provider), provider=provider, adapters=AdapterInputs(present))
    made = graphs.decide(graph, inputs, settings, datetime.now(UTC), lambda _: ())
    created = (adapter for adapter in made.adapters.desired if key_of(adapter).name not in present)
    return (*created, *made.claims, *made.accounts, *made.models, *made.objects)


def prepared(graph: DynamoGraphDeployment, facts: Facts, provider: str) -> Facts:
    """The facts of a cluster that has all that a graph requires, and does not create."""
    return replace(
        facts,
        grove_served=facts.grove_served or provider == names.GROVE,
        lws_served=True,
        inference_pools_served=True,
        claims=frozenset(claim.name for claim in graph.spec.pvcs),
        kai_queues=facts.kai_queues | {names.kai_queue(graph)},
        missing_ssh_keys="",
        ssh_keys_refusal="",
    )


def graph_tree(graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings) -> tuple[Object, ...]:
    """All objects of a graph down to its workloads; those that components share appear once."""
    objects = list(own_objects(graph, facts, settings, {}))
    for desired in tuple(objects):
        if desired["kind"] == DynamoComponentDeployment.KIND.name:
            objects += component_tree(component_of(graph, desired), facts, settings)
    return tuple({(desired["kind"], key_of(desired)): desired for desired in objects}.values())


def component_tree(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """All objects of a component, without owner references."""
    inputs = ComponentInputs(replace(facts, lws_served=True))  # its lack is reported with the problems
    made = components.decide(component, inputs, settings, lambda _: ())
    return (*made.models, *made.around, *made.workloads)


def _request(
    request: DynamoGraphDeploymentRequest, facts: Facts, settings: RenderSettings, beside: Beside
) -> Expansion:
    spec = request.spec
    if spec is None:
        return Expansion()
    if problems := request_problems(request, settings):
        return Expansion(problems=problems)
    request = _as_accepted(request, spec)
    if lacks := missing_settings(spec, settings):
        return Expansion(problems=(Problem("spec", lacks, ProblemKind.REQUIRED),))
    try:
        results = _profiled_objects(request, beside.config_maps)
    except BadOutput as error:
        return Expansion(problems=(Problem("metadata.name", str(error)),))
    objects = [*_request_objects(request, settings, beside.config_maps), *results]
    for result in results:
        if result["kind"] == DynamoGraphDeployment.KIND.name:
            below = expanded(result, facts, settings, beside)
            if below.problems:
                text = f"the graph that profiling found: {'; '.join(map(str, below.problems))}"
                return Expansion(problems=(Problem("metadata.name", text),))
            objects += below.objects
    return Expansion(tuple(objects))


def _as_accepted(
    request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
) -> DynamoGraphDeploymentRequest:
    """The request as it is once it was accepted, if it is of v1beta1: its Job depends on the version."""
    if SAVED not in request.metadata.annotations or recorded(request) is not None:
        return request
    accepted_ = replace(request, status=accepted(request, spec, is_later=True).status)
    annotations = {**request.metadata.annotations, **annotation(with_spec(accepted_))}
    return replace(accepted_, metadata=replace(request.metadata, annotations=annotations))


def _request_objects(
    request: DynamoGraphDeploymentRequest, settings: RenderSettings, config_maps: ConfigMaps
) -> tuple[Object, ...]:
    """The objects for profiling, in order: the ServiceAccount of the Job, the base graph, the Job."""
    spec = accepted_spec(request)
    base = base_config_map(request, spec, config_maps)
    reference = None if base is None else ConfigMapReference(base["metadata"]["name"], BASE_FILE)
    if not request.status.observed_generation:  # its spec is accepted once its status has the generation
        generation = request.metadata.generation or 1
        status = replace(request.status, observed_generation=generation)
        request = replace(request, status=status)
    return (
        *account_objects(request.metadata.namespace, spec, settings),
        *(() if base is None else (base,)),
        profiling_job(request, spec, settings, reference),
    )


def _profiled_objects(request: DynamoGraphDeploymentRequest, config_maps: ConfigMaps) -> tuple[Object, ...]:
    """ConfigMaps, then the graph. Raises: BadOutput if the results contain no usable graph."""
    spec = accepted_spec(request)
    at = target(request, spec)
    generated, additional = request.status.generated_deployment, request.status.additional_resources
    if generated is None:
        data = config_maps.get(names.profiling_output(request.metadata.name))
        if data is None:
            return ()
        result = read_output(request, spec, data)
        generated, additional = result.graph, result.config_maps
    objects = [config_map(request, output, at.namespace) for output in named_config_maps(additional)]
    if spec.auto_apply and request.status.state != RequestState.DELETED:
        status = replace(request.status, graph_text=as_text(generated))
        profiled = replace(request, status=status)
        objects.append(deployed(profiled, spec, at))
    return tuple(objects)


def _component_problems(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Problem, ...]:
    exposed = exposure_problems(component.spec, "spec", settings)
    problems = (*component_problems(component, settings), *exposed)
    if not lacks_orchestrator(component.spec, facts):
        return problems
    message = f"{NO_ORCHESTRATOR}; choose one with --orchestrator"
    lack = Problem("spec.multinode.nodeCount", message, ProblemKind.NOT_SUPPORTED)
    return (*problems, lack)


def _decoded(type_: type[R], document: Object) -> R:
    """Decode an object as the controller reads it from the API server."""
    return from_json(msgspec.json.encode(defaulted(document)), type_)


def identity(item: Object) -> tuple[str, str, str, str]:
    """The key by which two documents are the same object."""
    metadata = item["metadata"]
    return item["apiVersion"], item["kind"], metadata.get("namespace", ""), metadata["name"]
