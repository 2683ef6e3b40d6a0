"""The operator's work on a document, from end to end: it validates, renders and reports."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from dynamo_graphs.offline import component_tree, graph_tree
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.diagnosis import diagnose
from dynamo_operator.component.service import graph_selector
from dynamo_operator.component.status import NO_DEPLOYMENT, component_status
from dynamo_operator.component.status import refused_status as refused_component
from dynamo_operator.component.validate import component_problems
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.features.scaling.decide import ScalingInputs
from dynamo_operator.features.scaling.decide import decide as decide_scaling
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import missing
from dynamo_operator.graph.status import (
    component_views,
    configuration_warning,
    graph_status,
    refused_status,
    status_events,
)
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.plan import ModelInputs
from dynamo_operator.models.status import invalid_status, model_status, model_status_events, remembered
from dynamo_operator.models.validate import model_problems
from dynamo_operator.requests import status as request_status
from dynamo_operator.requests import status as requested_graph
from dynamo_operator.requests.api import (
    RESULTS_FILE,
    STATUS_FILE,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    ProfilingConfig,
    RequestState,
)
from dynamo_operator.requests.render import profiling_job
from dynamo_operator.requests.results import (
    BadOutput,
    ProfilingProgress,
    completed,
    progress,
    read_output,
    target,
)
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Object, from_json
from reviews.asking import verdict
from reviews.rows import request as a_request
from specs import a_graph, a_service

Act = Callable[[Object], Callable[[], object]]
"""Prepares what is done with a document; what it returns does it and is measured."""

SETTINGS = RenderSettings(
    mpi_secret_name="mpi-keys",
    virtual_service_gateway="istio-system/gateway",
    epp_cluster_role_name="epp",
    planner_cluster_role_name="planner",
    largest_object_bytes=0,
)
FACTS = Facts(
    lws_served=True, grove_served=True, kai_served=True, istio_served=True, inference_pools_served=True
)
_A_REQUEST = msgspec.convert(a_request(), DynamoGraphDeploymentRequest)
_STATES = (None, *RequestState)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def judging(document: Object) -> Callable[[], object]:
    """A review of a new object, and one of a change of an object that was like this before."""
    labelled = {**document, "metadata": {**document["metadata"], "generateName": "x"}}

    def judge() -> None:
        verdict(document, settings=SETTINGS)
        verdict(labelled, document, settings=SETTINGS)

    return judge


def reconciling(document: Object) -> Callable[[], object]:
    """What a controller does: the rules, then all objects and the status, or the refusal."""
    return _RECONCILED[document["kind"]](document)


def _graph(document: Object) -> Callable[[], object]:
    graph = msgspec.convert(document, DynamoGraphDeployment)

    def reconcile() -> None:
        if problems := graph_problems(graph, SETTINGS):
            refused_status(graph, problems)
            return
        made = graph_tree(graph, FACTS, SETTINGS)
        missing(graph, FACTS)
        configuration_warning(graph)
        below = [each for each in made if each["kind"] == DynamoComponentDeployment.KIND.name]
        named = {key: below[index % len(below)] for index, key in enumerate(graph.spec.services) if below}
        components = {
            key: (each["metadata"]["name"], msgspec.convert(each, DynamoComponentDeployment))
            for key, each in named.items()
        }
        said = graph_status(graph, component_views(graph, components), (), now=NOW)
        status_events(graph, graph)
        graph_selector(graph, dict.fromkeys(graph.spec.services, 1))
        msgspec.json.encode(said.status)

    return reconcile


def _component(document: Object) -> Callable[[], object]:
    component = msgspec.convert(document, DynamoComponentDeployment)

    def reconcile() -> None:
        if problems := component_problems(component, SETTINGS):
            refused_component(component, problems)
            return
        component_tree(component, FACTS, SETTINGS)
        component_status(component, NO_DEPLOYMENT, component.status.service, ())

    return reconcile


def _request(document: Object) -> Callable[[], object]:
    request = from_json(msgspec.json.encode(document), DynamoGraphDeploymentRequest)
    spec = request.spec
    assert spec is not None
    answer: Object = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment"}
    answer |= {"metadata": {"name": "x"}, "spec": {"services": {"w": a_service()}}}

    def reconcile() -> None:
        request_status.accepted(request, spec)
        profiling_job(request, spec, SETTINGS)
        completed(answer, spec)
        target(request, spec)
        if request.status.state in _STATES:
            request_status.restated(request)
        requested_graph.mirrored(request, a_graph({"w": a_service()}))

    return reconcile


def _model(document: Object) -> Callable[[], object]:
    model = msgspec.convert(document, DynamoModel)
    spec = model.spec
    assert spec is not None

    def reconcile() -> None:
        if problems := model_problems(model):
            invalid_status(model, problems)
        known = tuple(remembered(model).values())
        model_status(model, spec, ModelInputs(), NOW, endpoints=known, former=known)
        tuple(model_status_events(model, model))

    return reconcile


def _adapter(document: Object) -> Callable[[], object]:
    adapter = msgspec.convert(document, DynamoGraphDeploymentScalingAdapter)
    inputs = ScalingInputs(a_graph({"w": a_service()}))
    return lambda: decide_scaling(adapter, inputs, NOW)


def diagnosing(document: Object) -> Callable[[], object]:
    """The status of a pod that is not ready."""
    pod: Any = msgspec.convert(document, Pod)
    return lambda: diagnose([pod], nodes=1, now=NOW)


def placing(tolerations: int) -> Callable[[], object]:
    """What a generated graph gets of a request, where both have so many tolerations."""
    placed = tuple({"key": f"a{number}"} for number in range(tolerations))
    own = {"tolerations": [{"key": f"b{number}"} for number in range(tolerations)]}
    answer: Object = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment"}
    answer |= {"metadata": {"name": "x"}, "spec": {"services": {"w": a_service(extraPodSpec=own)}}}
    spec = DynamoGraphDeploymentRequestSpec("m", "vllm", ProfilingConfig("p:1", tolerations=placed))
    return lambda: completed(answer, spec)


def harvesting(text: str) -> Callable[[], object]:
    """What is read of the files of a profiler."""
    data = {RESULTS_FILE: text, STATUS_FILE: text}
    spec = DynamoGraphDeploymentRequestSpec("m", "vllm", ProfilingConfig("p:1"))

    def harvest() -> None:
        progress(data)
        with suppress(BadOutput):
            harvested = read_output(_A_REQUEST, spec, data)
            now = "2026-01-01T00:00:00Z"
            request_status.generated(_A_REQUEST, harvested, ProfilingProgress(), target=None, now=now)

    return harvest


_RECONCILED: dict[str, Act] = {
    DynamoGraphDeployment.KIND.name: _graph,
    DynamoComponentDeployment.KIND.name: _component,
    DynamoGraphDeploymentRequest.KIND.name: _request,
    DynamoModel.KIND.name: _model,
    DynamoGraphDeploymentScalingAdapter.KIND.name: _adapter,
}
