"""What comes of a request, without a cluster: its Job with all that it needs, and the results' graph."""

from collections.abc import Mapping

import msgspec

from dynamo_graphs.api import names
from dynamo_graphs.api.request import (
    ConfigMapReference,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
)
from dynamo_graphs.plan.request import RequestState, accepted_spec
from dynamo_graphs.plan.request_base import base_config_map, completed_base
from dynamo_graphs.plan.request_graph import config_map, deployed, target
from dynamo_graphs.plan.request_output import ProfilingResult, named_config_maps
from dynamo_graphs.plan.request_result import read_output
from dynamo_graphs.render.profiling import account_objects, placement, profiling_job
from dynamo_graphs.render.profiling_config import BASE_FILE
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object

ConfigMaps = Mapping[str, Mapping[str, str]]
"""The data of the ConfigMaps in the namespace of a request, by name."""


def request_objects(
    request: DynamoGraphDeploymentRequest, settings: RenderSettings, config_maps: ConfigMaps
) -> tuple[Object, ...]:
    """The objects for profiling, in order: the ServiceAccount of the Job, the base graph, the Job."""
    spec = accepted_spec(request)
    base = _base(request, spec, config_maps)
    reference = None if base is None else ConfigMapReference(base["metadata"]["name"], BASE_FILE)
    return (
        *account_objects(request.metadata.namespace, spec, settings),
        *(() if base is None else (base,)),
        profiling_job(_accepted(request), spec, settings, reference),
    )


def profiled_objects(
    request: DynamoGraphDeploymentRequest, config_maps: ConfigMaps
) -> tuple[Object, ...]:
    """What the operator creates of profiling results: the ConfigMaps, then the graph. Empty without results.

    Raises:
        BadOutput: there is no graph in the results that can be used.
    """
    spec = accepted_spec(request)
    at = target(request, spec)
    generated, found = request.status.generated_deployment, request.status.additional_resources
    if generated is None:
        result = _result(request, spec, config_maps)
        if result is None:
            return ()
        generated, found = result.graph, result.config_maps
    objects = [config_map(request, each, at.namespace) for each in named_config_maps(found)]
    if spec.auto_apply and request.status.state != RequestState.DELETED:
        status = msgspec.structs.replace(request.status, generated_deployment=generated)
        known = msgspec.structs.replace(request, status=status)
        objects.append(deployed(known, spec, at))
    return tuple(objects)


def _result(
    request: DynamoGraphDeploymentRequest,
    spec: DynamoGraphDeploymentRequestSpec,
    config_maps: ConfigMaps,
) -> ProfilingResult | None:
    data = config_maps.get(names.profiling_output(request.metadata.name))
    if data is None:
        return None
    return read_output(request, spec, data, placement(spec.profiling_config))


def _base(
    request: DynamoGraphDeploymentRequest,
    spec: DynamoGraphDeploymentRequestSpec,
    config_maps: ConfigMaps,
) -> Object | None:
    """The ConfigMap with the user's base graph as profiling is to find it. None means: the user's own."""
    given = spec.profiling_config.config_map_ref
    text = config_maps.get(given.name, {}).get(given.key) if given is not None else None
    done = completed_base(text, spec, placement(spec.profiling_config)) if text else None
    return None if done is None else base_config_map(request, BASE_FILE, done)


def _accepted(request: DynamoGraphDeploymentRequest) -> DynamoGraphDeploymentRequest:
    """The request as it is once its spec is accepted: then the status has its generation."""
    if request.status.observed_generation:
        return request
    status = msgspec.structs.replace(
        request.status, observed_generation=request.metadata.generation or 1
    )
    return msgspec.structs.replace(request, status=status)
