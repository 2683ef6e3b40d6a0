"""What profiling has found for a request, with what the user wants of it beyond that."""

from collections.abc import Mapping

from dynamo_graphs.api import names
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from dynamo_graphs.plan.request_graph import completed, with_names
from dynamo_graphs.plan.request_output import ProfilingResult, found
from kube_runtime.kind import Object


def read_output(
    request: DynamoGraphDeploymentRequest,
    spec: DynamoGraphDeploymentRequestSpec,
    data: Mapping[str, str],
    placed: Object,
) -> ProfilingResult:
    """The graph from the profiling results, with the user's overrides.

    `placed` are the fields of the profiling pod that say where it runs.

    Raises:
        BadOutput: there is no graph in it that can be used.
    """
    name = request.metadata.name
    config_map = names.profiling_output(name)
    output = found(data, config_map, is_mocked=spec.use_mocker, name=name)
    return output.completed(completed(output.graph, spec, placed))


def with_new_names(output: ProfilingResult, renamed: Mapping[str, str]) -> ProfilingResult:
    """Rename ConfigMaps in the output, by their old names."""
    return output.renamed(with_names(output.graph, renamed), renamed)
